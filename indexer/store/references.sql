-- Outputs with reference tokens (CIP-68) or reference scripts that are spent.

-- name: spend_references
-- The outputs with these transaction hashes and indexes are spent by these transactions. Returns how many rows they
-- have.
WITH spent AS MATERIALIZED (
    SELECT tx.tx_id, output_index, by
    FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS spent (tx_hash, output_index, by)
    JOIN tx ON tx.hash = spent.tx_hash
), tokens AS (
    UPDATE reference_output r SET spent_tx_id = spent.by
    FROM spent WHERE r.tx_id = spent.tx_id AND r.output_index = spent.output_index
    RETURNING 1
), scripts AS (
    UPDATE script_output s SET spent_tx_id = spent.by
    FROM spent WHERE s.tx_id = spent.tx_id AND s.output_index = spent.output_index
    RETURNING 1
)
SELECT (SELECT count(*) FROM tokens) + (SELECT count(*) FROM scripts) AS rows

-- name: unspend
-- Those of {table} from before tx_id $1 are not spent by transactions from there on.
UPDATE {table} SET spent_tx_id = NULL WHERE spent_tx_id >= $1 AND tx_id < $1
