-- name: place
-- The block of a transaction with the hash $1 and the block before it, with the tip of the same snapshot; nulls if no
-- transaction has the hash, no row if the network is not served. Cost: a look-up each.
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.block_no AS tip_block_no,
       block.slot_no, block.block_no, block.hash AS block_hash, block.tx_count, before.slot_no AS previous_slot_no,
       before.hash AS previous_hash
FROM tip
LEFT JOIN (tx JOIN block ON block.slot_no = tx_id >> 16) ON tx.hash = $1
LEFT JOIN block before ON before.block_no = block.block_no - 1
WHERE tip.phase = 'live'
