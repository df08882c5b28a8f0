-- The blocks that pools made.

-- name: pool_no
-- The number of a pool $1, registered now or earlier.
SELECT pool_no FROM pool
WHERE pool_id = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)

-- name: first_epoch
-- The epoch in which the list of the blocks of the pool with number $1 is at the offset $2, and how many blocks of that
-- epoch precede the offset; no row beyond the end. Cost: the pool's epochs, regardless of its blocks.
SELECT epoch_no, $2::bigint - (beyond - blocks) AS skipped
FROM (
    SELECT epoch_no, blocks, sum(blocks) OVER (ORDER BY epoch_no {order}) AS beyond
    FROM pool_epoch WHERE pool_no = $1 AND blocks > 0
) made
WHERE beyond > $2
ORDER BY epoch_no {order}
LIMIT 1

-- name: hashes
-- A page of the blocks of the pool with number $1 in the slots from $2 to below $3, by slot; $4 limit, $5 offset, which
-- is less than the number of its blocks in an epoch. Cost: the page and the offset.
SELECT hash FROM block
WHERE pool_no = $1 AND slot_no >= $2 AND slot_no < $3
ORDER BY slot_no {order}
LIMIT $4 OFFSET $5
