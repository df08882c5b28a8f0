-- name: hashes
-- The hashes of the blocks with the numbers $1 to $2, by number. Cost: a page.
SELECT hash FROM block WHERE block_no BETWEEN $1 AND $2 ORDER BY block_no {order}
