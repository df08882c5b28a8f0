-- name: moved
-- The transactions of one block, from tx_id $1 to below $2, in order, with the numbering of their addresses. Cost: the
-- size of a block and of the outputs that it spends.
SELECT tip.numbering, tx.hash, tx.inputs, tx.outputs
FROM tip CROSS JOIN tx
WHERE tx_id >= $1 AND tx_id < $2
ORDER BY tx_id
