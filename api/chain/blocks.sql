-- name: block
-- A block with its neighbours and the tip of the same snapshot; nulls for an unknown block, no row if the network is
-- not served. Cost: a look-up each.
--   {condition}  the condition that identifies the block, by its hash, its number or its slot $1
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.block_no AS tip_block_no,
       block.slot_no, block.block_no, block.hash AS block_hash, block.tx_count, before.slot_no AS previous_slot_no,
       before.hash AS previous_hash, tip.first_block_no, block.size, pool.pool_id,
       EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = block.pool_no) AS registered, after.hash AS next_hash
FROM tip
LEFT JOIN block ON {condition}
LEFT JOIN pool USING (pool_no)
LEFT JOIN block before ON before.block_no = block.block_no - 1
LEFT JOIN block after ON after.block_no = block.block_no + 1
WHERE tip.phase = 'live'

-- name: paid
-- Fees and outputs of the transactions of one block, from tx_id $1 to below $2, with the last block of the snapshot.
-- Cost: the size of a block.
SELECT tip.block_hash AS tip_hash, tx.fee, tx.outputs FROM tip CROSS JOIN tx WHERE tx_id >= $1 AND tx_id < $2

-- name: transactions
-- Transactions of a block, from tx_id $1 to $2, in order.
SELECT hash, fee, size FROM tx WHERE tx_id BETWEEN $1 AND $2 ORDER BY tx_id
