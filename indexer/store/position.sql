-- What the index has: its tip, and blocks of its chain.

-- name: position
SELECT slot_no, block_hash, block_no, first_block_no, tx_count, phase, finalize_step,
       coalesce((SELECT era FROM era_start ORDER BY slot_no DESC LIMIT 1), 'byron') AS era,
       EXISTS (SELECT FROM epoch_boundary_block e WHERE e.slot_no = tip.slot_no AND e.hash = tip.block_hash) AS ebb
FROM tip

-- name: points
-- Points of our chain, newest first: dense near the tip, with distances that double towards the origin, and those $1
-- blocks back. Within a slot, the block is newer than the epoch boundary block, and has the higher number.
SELECT slot_no, hash AS block_hash
FROM (
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(0, 9) AS back, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - back) b
    UNION
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(4, 24) AS power,
        LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - (1 << power)) b
    UNION
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, unnest($1::bigint[]) AS back, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - back) b
    UNION
    SELECT e.slot_no, e.block_no, e.hash FROM (SELECT * FROM epoch_boundary_block ORDER BY slot_no DESC LIMIT 3) e
    UNION
    (SELECT slot_no, block_no, hash FROM block ORDER BY slot_no LIMIT 1)
) points
ORDER BY slot_no DESC, block_no DESC

-- name: block_at
-- The block of our chain at a point, epoch boundary blocks included.
SELECT block_no,
       coalesce((SELECT era FROM era_start WHERE slot_no <= $1 ORDER BY slot_no DESC LIMIT 1), 'byron') AS era,
       false AS ebb
FROM block WHERE slot_no = $1 AND hash = $2
UNION ALL
SELECT block_no, 'byron', true FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2

-- name: numbered
-- The blocks of our chain with some numbers, the last one first. A look-up for each.
SELECT slot_no, block_no, hash AS block_hash FROM block WHERE block_no = ANY ($1::bigint[]) ORDER BY block_no DESC

-- name: last_at_or_before
-- The last block at or before a slot.
SELECT slot_no, hash AS block_hash FROM block WHERE slot_no <= $1 ORDER BY slot_no DESC LIMIT 1

-- name: counts_after
-- The blocks after a slot, and their transactions. Reads each of these blocks.
SELECT count(*) AS blocks, coalesce(sum(tx_count), 0)::bigint AS transactions FROM block WHERE slot_no > $1
