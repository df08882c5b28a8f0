-- Windows of blocks, and points to find them by, for the comparison with the node.

-- name: window_begins
-- The slot of every $2nd block from slot $1 on.
SELECT slot_no
FROM (SELECT slot_no, row_number() OVER (ORDER BY slot_no) - 1 AS place FROM block WHERE slot_no >= $1) numbered
WHERE place % $2::bigint = 0
ORDER BY slot_no

-- name: points_ahead
-- Points from slot $1 on, newest first: the last ten blocks, then blocks ever further apart, and each block before slot
-- $2.
SELECT slot_no, hash AS block_hash
FROM (
    SELECT b.slot_no, b.hash
    FROM tip, generate_series(0, 9) AS back, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - back) b
    UNION
    SELECT b.slot_no, b.hash
    FROM tip, generate_series(4, 24) AS power,
        LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - (1 << power)) b
    UNION
    SELECT slot_no, hash FROM block WHERE slot_no >= $1 AND slot_no < $2
) points
WHERE slot_no >= $1
ORDER BY slot_no DESC

-- name: points_before
-- Points before slot $1, newest first: the last ones, then ever further apart.
SELECT slot_no, hash AS block_hash
FROM (SELECT slot_no, hash, row_number() OVER (ORDER BY slot_no DESC) AS place
      FROM (SELECT slot_no, hash FROM block WHERE slot_no < $1 ORDER BY slot_no DESC LIMIT 2200) last) numbered
WHERE place <= 10 OR place & (place - 1) = 0
ORDER BY slot_no DESC

-- name: era_before
-- The era of the block before slot $1.
SELECT slot_no, era FROM era_start WHERE slot_no < $1 ORDER BY slot_no DESC LIMIT 1
