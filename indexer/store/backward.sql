-- The statements of a rollback.

-- name: block_back
-- The block that has $1 blocks after it.
SELECT slot_no, hash AS block_hash FROM block ORDER BY slot_no DESC OFFSET $1 LIMIT 1

-- name: delete_rows
-- Delete the rows of undone blocks: those from tx_id $1 on, the blocks from slot $2 on, the epoch boundary blocks after
-- the new tip's slot $3, and what began or was derived in epochs after its epoch $4. {deletes} has a DELETE for each
-- table that rows/tables.py declares so; rows are found by primary key or BRIN range.
WITH {deletes} SELECT

-- name: move_tip_back
UPDATE tip SET slot_no = $1, block_hash = $2, tx_count = tx_count - $3, script_lovelace = script_lovelace + $4,
    block_no = coalesce((SELECT block_no FROM block WHERE slot_no = $1 AND hash = $2),
                        (SELECT block_no FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2))

-- name: count_rollback
-- A rollback of $2 blocks, in the row of depths up to $1.
INSERT INTO rollback_depth AS counted (blocks_at_most, rollbacks, blocks, last_at, last_blocks)
VALUES ($1, 1, $2::integer, now(), $2::integer)
ON CONFLICT (blocks_at_most) DO UPDATE SET
    rollbacks = counted.rollbacks + 1, blocks = counted.blocks + excluded.blocks,
    last_at = excluded.last_at, last_blocks = excluded.last_blocks
