-- The statements of forward.py that are not of one concern.

-- name: move_tip
-- $5 transactions have changed the lovelace that scripts lock by $7; the genesis may lock some, too.
INSERT INTO tip AS present (slot_no, block_no, block_hash, first_block_no, tx_count, phase, script_lovelace)
VALUES ($1, $2, $3, $4, $5, $6, $7::bigint + (
    SELECT coalesce(sum(lovelace), 0)::bigint FROM genesis_output WHERE script_key(address) IS NOT NULL
))
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, block_no = excluded.block_no, block_hash = excluded.block_hash,
    tx_count = present.tx_count + excluded.tx_count, script_lovelace = present.script_lovelace + $7::bigint
