-- The last committed block; no row while nothing is indexed, or while histories are being built and can't be asked.
-- name: tip
SELECT slot_no, block_hash
FROM tip
WHERE phase = 'live'
