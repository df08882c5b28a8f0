-- The statements that write the blocks of a chain. Each batch is one commit, and so is each part of a rollback.

-- name: position
SELECT slot_no, block_hash, block_no, first_block_no, tx_count, phase, finalize_step FROM tip

-- name: points
-- Points of our chain, newest first: dense near the tip, twice as far apart each step towards the origin.
-- A block comes before the epoch boundary block of its slot, whose number is lower.
SELECT slot_no, hash AS block_hash
FROM (
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(0, 9) AS back, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - back) b
    UNION
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(4, 24) AS power, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - (1 << power)) b
    UNION
    SELECT e.slot_no, e.block_no, e.hash FROM (SELECT * FROM epoch_boundary_block ORDER BY slot_no DESC LIMIT 3) e
    UNION
    (SELECT slot_no, block_no, hash FROM block ORDER BY slot_no LIMIT 1)
) points
ORDER BY slot_no DESC, block_no DESC

-- name: boundary_at
-- Whether a point is an epoch boundary block, which comes before the block of the same slot.
SELECT slot_no, hash AS block_hash FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2

-- name: block_at
-- The block of our chain at a point, epoch boundary blocks included.
SELECT block_no FROM block WHERE slot_no = $1 AND hash = $2
UNION ALL
SELECT block_no FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2

-- name: last_at_or_before
-- The last block at or before a slot.
SELECT slot_no, hash AS block_hash FROM block WHERE slot_no <= $1 ORDER BY slot_no DESC LIMIT 1

-- name: size_after
-- What lies after a slot. Reads every block there.
SELECT count(*) AS blocks, coalesce(sum(tx_count), 0)::bigint AS transactions FROM block WHERE slot_no > $1

-- name: newest_above
-- The blocks above a point, newest first, as many as one commit may undo.
SELECT slot_no, hash AS block_hash FROM block WHERE slot_no >= $1 ORDER BY slot_no DESC LIMIT $2

-- name: add_entries
-- Add entries to chunks of a history, or begin chunks with them.
--   {history} {numbered} {entries} {bytes}  the table, its column for the address or asset, its packed column, the size of an entry
INSERT INTO {history} AS present ({numbered}, chunk, {entries})
SELECT * FROM unnest($1::integer[], $2::integer[], $3::bytea[])
ON CONFLICT ({numbered}, chunk) DO UPDATE SET {entries} = present.{entries} || excluded.{entries}

-- name: cut_entries
-- Cut the last $2 entries off the histories of $1, whose chunks are full but for the last.
WITH kept AS MATERIALIZED (
    SELECT undone.id, last.length - undone.entries AS length
    FROM unnest($1::integer[], $2::integer[]) AS undone (id, entries)
    CROSS JOIN LATERAL (
        SELECT (chunk << 6) + length({entries}) / {bytes} AS length FROM {history}
        WHERE {numbered} = undone.id ORDER BY chunk DESC LIMIT 1
    ) last
), gone AS (
    DELETE FROM {history} h USING kept WHERE h.{numbered} = kept.id AND h.chunk >= kept.length + 63 >> 6
)
UPDATE {history} h SET {entries} = substr(h.{entries}, 1, (kept.length & 63) * {bytes})
FROM kept
WHERE h.{numbered} = kept.id AND h.chunk = kept.length >> 6 AND kept.length & 63 > 0

-- name: move_balances
UPDATE stake SET balance = stake.balance + moved.lovelace
FROM unnest($1::integer[], $2::bigint[]) AS moved (id, lovelace)
WHERE stake.stake_no = moved.id

-- name: settle_balances
UPDATE stake SET balance = stake.balance + moved.lovelace
FROM (SELECT stake_no, sum(lovelace) AS lovelace FROM balance_staged GROUP BY stake_no) moved
WHERE stake.stake_no = moved.stake_no AND moved.lovelace <> 0

-- name: spend_references
-- The reference outputs with these transaction hashes and indexes are spent by these transactions.
UPDATE reference_output r SET spent_tx_id = spent.by
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS spent (tx_hash, output_index, by) JOIN tx ON tx.hash = spent.tx_hash
WHERE r.tx_id = tx.tx_id AND r.output_index = spent.output_index

-- name: unspend_references
-- Reference outputs that were spent from tx_id $1 on.
UPDATE reference_output SET spent_tx_id = NULL WHERE spent_tx_id >= $1

-- name: known
-- Those of some hashes that are in {table}.
SELECT {table}.hash FROM unnest($1::bytea[]) AS wanted (hash) JOIN {table} ON {table}.hash = wanted.hash

-- name: delete_transactions
-- Delete the rows with a tx_id from $1 on, found by primary key or BRIN range. Staged amounts have no tx_id: the rollback has
-- staged them with the opposite sign.
WITH gone_tx AS (DELETE FROM tx WHERE tx_id >= $1),
     gone_mint AS (DELETE FROM mint WHERE tx_id >= $1),
     gone_reference_output AS (DELETE FROM reference_output WHERE tx_id >= $1),
     gone_datum AS (DELETE FROM datum WHERE tx_id >= $1),
     gone_script AS (DELETE FROM script WHERE tx_id >= $1),
     gone_address_tx_staged AS (DELETE FROM address_tx_staged WHERE tx_id >= $1),
     gone_asset_tx_staged AS (DELETE FROM asset_tx_staged WHERE tx_id >= $1),
     gone_withdrawal_staged AS (DELETE FROM account_withdrawal_staged WHERE tx_id >= $1)
DELETE FROM mint_staged WHERE tx_id >= $1

-- name: delete_blocks
-- Delete the blocks from slot $1 on, except the epoch boundary block $2 of that slot if it is the new tip.
WITH gone AS (DELETE FROM block WHERE slot_no >= $1)
DELETE FROM epoch_boundary_block WHERE slot_no >= $1 AND hash <> $2

-- name: move_tip
INSERT INTO tip AS present (slot_no, block_no, block_hash, first_block_no, tx_count, phase)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, block_no = excluded.block_no, block_hash = excluded.block_hash,
    tx_count = present.tx_count + excluded.tx_count

-- name: count_rollback
-- A rollback of $2 blocks, in the row of depths up to $1.
INSERT INTO rollback_depth AS counted (blocks_at_most, rollbacks, blocks, last_at, last_blocks) VALUES ($1, 1, $2::integer, now(), $2::integer)
ON CONFLICT (blocks_at_most) DO UPDATE SET
    rollbacks = counted.rollbacks + 1, blocks = counted.blocks + excluded.blocks,
    last_at = excluded.last_at, last_blocks = excluded.last_blocks

-- name: renumber
UPDATE tip SET numbering = gen_random_uuid()

-- name: move_tip_back
UPDATE tip SET slot_no = $1, block_hash = $2, tx_count = tx_count - $3,
    block_no = coalesce((SELECT block_no FROM block WHERE slot_no = $1 AND hash = $2),
                        (SELECT block_no FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2))

-- name: forget_verification
-- The last verification of network $1 was of an index that is gone.
DELETE FROM partner.verification WHERE network_id = $1
