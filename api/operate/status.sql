-- name: clock
SELECT clock_timestamp() AS at

-- name: verifications
-- The last verification of each network that has one: at most one row per network.
SELECT network_id, began_at, ended_at, slot_no, block_no, node_blocks, differing FROM partner.verification

-- name: minutes
-- Blocks and transactions by minute, for the hour that begins with slot $1. A slot lasts a second, so at most 3,600
-- rows are read.
SELECT ((slot_no - $1) / 60)::integer AS minute, count(*)::integer AS blocks, sum(tx_count)::bigint AS transactions
FROM block
WHERE slot_no >= $1 AND slot_no < $1 + 3600
GROUP BY 1
ORDER BY 1
