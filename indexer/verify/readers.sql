-- The parts of history.

-- name: parts
-- Ranges of about $1 transactions, cut between blocks. Together they cover all numbers from 0 on, including those of
-- transactions without a block.
SELECT CASE WHEN lag(part) OVER in_order IS NULL THEN 0 ELSE min(slot_no) << 16 END AS first_tx_id,
       coalesce(lead(min(slot_no)) OVER in_order << 16, 9223372036854775807) AS next_tx_id,
       sum(tx_count)::bigint AS transactions
FROM (SELECT slot_no, tx_count, (sum(tx_count) OVER (ORDER BY slot_no) - 1) / $1::bigint AS part FROM block) b
GROUP BY part
WINDOW in_order AS (ORDER BY part)
ORDER BY part
