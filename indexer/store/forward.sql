-- The statements of forward.py that are not of one concern.

-- name: move_tip
INSERT INTO tip AS present (slot_no, block_no, block_hash, first_block_no, tx_count, phase)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, block_no = excluded.block_no, block_hash = excluded.block_hash,
    tx_count = present.tx_count + excluded.tx_count
