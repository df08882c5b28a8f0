-- Scripts and datums.

-- name: found
-- The row of {table} with hash $1, with its first transaction and the tip of the same snapshot; nulls if no row has it,
-- no row if the network is not served.
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.block_no AS tip_block_no,
       block.slot_no, block.block_no, block.hash AS block_hash, tx.hash AS tx_hash, {table}.body{language}
FROM tip
LEFT JOIN ({table} JOIN tx USING (tx_id) JOIN block ON block.slot_no = tx_id >> 16) ON {table}.hash = $1
WHERE tip.phase = 'live'

-- name: bodies
-- Datums by hash: a look-up for each.
SELECT datum.hash, datum.body FROM unnest($1::bytea[]) AS wanted (hash) JOIN datum ON datum.hash = wanted.hash
