-- name: epochs
-- The sums of the epochs $1, ascending, and their first and last blocks; no row for an epoch without an indexed block.
-- Their slots are $2 to below $3, in the same order. Cost: a look-up each. LIMIT 1 keeps it to look-ups.
SELECT tip.block_hash AS tip_hash, tip.block_no AS tip_block_no,
       epoch.epoch_no, epoch.blocks, epoch.tx_count, epoch.fees, epoch.output::text,
       first.slot_no AS first_slot_no, first.block_no AS first_block_no, first.hash AS first_hash,
       last.slot_no AS last_slot_no, last.block_no AS last_block_no, last.hash AS last_hash
FROM tip
CROSS JOIN unnest($1::integer[], $2::bigint[], $3::bigint[]) AS asked (epoch_no, first_slot_no, beyond_slot_no)
CROSS JOIN LATERAL (SELECT * FROM epoch WHERE epoch.epoch_no = asked.epoch_no LIMIT 1) epoch
CROSS JOIN LATERAL (
    SELECT * FROM block WHERE slot_no >= asked.first_slot_no AND slot_no < asked.beyond_slot_no ORDER BY slot_no LIMIT 1
) first
CROSS JOIN LATERAL (
    SELECT * FROM block WHERE slot_no >= asked.first_slot_no AND slot_no < asked.beyond_slot_no
    ORDER BY slot_no DESC LIMIT 1
) last
ORDER BY epoch.epoch_no

-- name: parameters
-- The parameters of epoch $1, null if they are not known, with the last block of the snapshot.
SELECT tip.block_hash AS tip_hash, parameters::text, nonce FROM tip LEFT JOIN epoch_parameters ON epoch_no = $1
