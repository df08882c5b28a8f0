-- The blocks that bound what is verified.

-- name: last
-- The last block, by its row and not by that of the tip, which is compared with it. Within a slot, the epoch boundary
-- block comes first.
SELECT slot_no, hash AS block_hash, ebb
FROM (
    (SELECT slot_no, hash, false AS ebb FROM block ORDER BY slot_no DESC LIMIT 1)
    UNION ALL
    (SELECT slot_no, hash, true FROM epoch_boundary_block ORDER BY slot_no DESC LIMIT 1)
) ends
ORDER BY slot_no DESC, ebb
LIMIT 1

-- name: has
-- Whether a live index has the block at slot $1 with hash $2, of an epoch boundary if $3; a null hash is no block.
SELECT EXISTS (SELECT FROM tip WHERE phase = 'live') AND ($2::bytea IS NULL OR EXISTS (
    SELECT FROM block WHERE slot_no = $1 AND hash = $2 AND NOT $3::boolean
    UNION ALL
    SELECT FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2 AND $3
)) AS has
