-- name: epoch
-- The sums of epoch $1 and its first and last block; no row if none of its blocks is indexed. Its slots are $2 to below
-- $3. Cost: a look-up each.
SELECT tip.block_no AS tip_block_no, epoch.epoch_no, epoch.blocks, epoch.tx_count, epoch.fees, epoch.output::text,
       first.slot_no AS first_slot_no, first.block_no AS first_block_no, first.hash AS first_hash,
       last.slot_no AS last_slot_no, last.block_no AS last_block_no, last.hash AS last_hash
FROM tip
JOIN epoch ON epoch.epoch_no = $1
CROSS JOIN LATERAL (SELECT * FROM block WHERE slot_no >= $2 AND slot_no < $3 ORDER BY slot_no LIMIT 1) first
CROSS JOIN LATERAL (SELECT * FROM block WHERE slot_no >= $2 AND slot_no < $3 ORDER BY slot_no DESC LIMIT 1) last

-- name: parameters
SELECT parameters::text FROM epoch_parameters WHERE epoch_no = $1
