-- Addresses that a rollback takes out of use. Each statement returns the addresses that it deletes.

-- name: delete_unused
-- Delete the addresses $1 whose histories, not cut yet, consist of their last $2 entries, except those of the genesis.
WITH deleted AS (
    DELETE FROM address USING unnest($1::integer[], $2::integer[]) AS undone (address_no, entries)
    WHERE address.address_no = undone.address_no
      AND entries = (
          SELECT (chunk << 6) + length(tx_ids) / 8 FROM address_tx
          WHERE address_tx.address_no = undone.address_no ORDER BY chunk DESC LIMIT 1
      )
      AND NOT EXISTS (SELECT FROM genesis_output WHERE genesis_output.address = address.raw)
    RETURNING stake_no, raw
), counted AS (
    UPDATE stake SET address_count = address_count - unused.addresses
    FROM (SELECT stake_no, count(*) AS addresses FROM deleted GROUP BY stake_no) unused
    WHERE stake.stake_no = unused.stake_no
)
SELECT raw FROM deleted

-- name: delete_unused_in_bulk
-- Delete those of the addresses $1 that no staged row has any more, except those of the genesis. Scans all staged rows:
-- in bulk, the node's tip is so far ahead that it never rolls back to a block before our tip.
WITH kept AS MATERIALIZED (
    SELECT DISTINCT address_no FROM address_tx_staged
        JOIN unnest($1::integer[]) AS undone (address_no) USING (address_no)
)
DELETE FROM address
WHERE address_no = ANY ($1::integer[]) AND address_no NOT IN (SELECT address_no FROM kept)
  AND NOT EXISTS (SELECT FROM genesis_output WHERE genesis_output.address = address.raw)
RETURNING raw
