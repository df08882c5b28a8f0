-- name: tip
-- The last committed block; no row while nothing is indexed, or while histories are still being built.
SELECT slot_no, block_hash
FROM tip
WHERE phase = 'live'
