-- The parts of history.

-- name: parts
-- Ranges of about $1 transactions, cut between blocks.
SELECT min(slot_no) << 16 AS first_tx_id, (max(slot_no) + 1) << 16 AS next_tx_id, sum(tx_count)::bigint AS transactions
FROM (SELECT slot_no, tx_count, (sum(tx_count) OVER (ORDER BY slot_no) - 1) / $1::bigint AS part FROM block) b
WHERE tx_count > 0
GROUP BY part
ORDER BY part
