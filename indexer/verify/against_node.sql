-- The rows of a window of blocks, and points to find it by, for the comparison with the node.

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
    FROM tip, generate_series(4, 24) AS power, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - (1 << power)) b
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

-- name: blocks
SELECT slot_no, block_no, tx_count, pool_no, hash FROM block WHERE slot_no BETWEEN $1 AND $2

-- name: boundaries
SELECT slot_no, block_no, hash FROM epoch_boundary_block WHERE slot_no BETWEEN $1 AND $2

-- name: era_before
-- The era of the block before slot $1.
SELECT slot_no, era FROM era_start WHERE slot_no < $1 ORDER BY slot_no DESC LIMIT 1

-- name: eras
SELECT slot_no, era FROM era_start WHERE slot_no BETWEEN $1 AND $2

-- name: transactions
SELECT tx_id, fee, size, hash, outputs, inputs, mint, extra, attached FROM tx WHERE tx_id >= $1 AND tx_id < $2

-- name: reference_outputs
SELECT asset_no, tx_id, output_index, datum_hash FROM reference_output WHERE tx_id >= $1 AND tx_id < $2

-- name: datums
-- Datums that first occurred in a transaction from tx_id $1 to before $2, and those with a hash in $3.
SELECT hash, tx_id, body FROM datum WHERE (tx_id >= $1 AND tx_id < $2) OR hash = ANY ($3::bytea[])

-- name: scripts
-- The same for scripts.
SELECT hash, tx_id, language, body FROM script WHERE (tx_id >= $1 AND tx_id < $2) OR hash = ANY ($3::bytea[])

-- name: genesis_outputs
SELECT tx_hash, tx_id, address, lovelace FROM genesis_output

-- name: stake_events
SELECT tx_id, stake_no, pool_no, epoch_no, place, kind
FROM stake_event WHERE tx_id >= $1 AND tx_id < $2

-- name: vote_delegations
SELECT tx_id, stake_no, place, kind, representative
FROM vote_delegation WHERE tx_id >= $1 AND tx_id < $2 AND kind IN ('delegation', 'deregistration')

-- name: representative_events
SELECT tx_id, place, kind, lovelace, representative, anchor_url, anchor_hash
FROM representative_event WHERE tx_id >= $1 AND tx_id < $2

-- name: pool_updates
SELECT tx_id, pool_no, place, parameters FROM pool_update WHERE tx_id >= $1 AND tx_id < $2

-- name: pool_retirements
SELECT tx_id, pool_no, epoch_no, place FROM pool_retirement WHERE tx_id >= $1 AND tx_id < $2
