-- The blocks of a chain, for events. Each statement runs in a snapshot, and reads what it names by primary key.

-- name: chain
-- The tip and its last block; no row while the network is not served. An epoch boundary block is none of ours.
SELECT tip.numbering, block.slot_no, block.block_no, block.hash AS block_hash
FROM tip
CROSS JOIN LATERAL (SELECT slot_no, block_no, hash FROM block ORDER BY slot_no DESC LIMIT 1) block
WHERE tip.phase = 'live'

-- name: hashes
-- The hashes of the blocks in some slots, those that there are.
SELECT slot_no, hash AS block_hash FROM block WHERE slot_no = ANY ($1::bigint[])

-- name: blocks
-- At most $3 blocks after slot $1 and up to slot $2, in order, with the slots of the blocks before them.
SELECT block.slot_no, block.block_no, block.hash AS block_hash, pool.pool_id, block.tx_count,
       (SELECT before.slot_no FROM block before WHERE before.slot_no < block.slot_no
        ORDER BY before.slot_no DESC LIMIT 1) AS previous_slot_no
FROM (SELECT * FROM block WHERE slot_no > $1 AND slot_no <= $2 ORDER BY slot_no LIMIT $3) block
JOIN pool USING (pool_no)
ORDER BY block.slot_no

-- name: last_blocks
-- The last $1 blocks, oldest first.
SELECT slot_no, block_no, block_hash
FROM (SELECT slot_no, block_no, hash AS block_hash FROM block ORDER BY slot_no DESC LIMIT $1) last
ORDER BY slot_no

-- name: transactions
-- The transactions from tx_id $1 to below $2, in order.
SELECT tx_id, hash AS tx_hash, fee, size, inputs, outputs, mint, extra
FROM tx WHERE tx_id >= $1 AND tx_id < $2 ORDER BY tx_id

-- name: addresses
-- The addresses with some numbers.
SELECT address_no, raw FROM address WHERE address_no = ANY ($1::integer[])

-- name: assets
-- The assets with some numbers.
SELECT asset_no, policy_id, name FROM asset JOIN policy USING (policy_no) WHERE asset_no = ANY ($1::integer[])

-- name: registration_before
-- The last registration of a pool $1 before the transaction $2, and the last epoch up to $3 that retired it; no row if
-- there was none.
SELECT last.tx_id, (SELECT max(epoch_no) FROM pool_reaping
                    WHERE pool_reaping.pool_no = pool.pool_no AND epoch_no <= $3) AS retired_epoch_no
FROM pool JOIN LATERAL (
    SELECT tx_id FROM pool_update WHERE pool_update.pool_no = pool.pool_no AND tx_id < $2 ORDER BY tx_id DESC LIMIT 1
) last ON true
WHERE pool_id = $1
