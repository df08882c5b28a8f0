-- What transactions paid as deposits.

-- name: deposits
-- The net deposits for stake credentials, and the number of pool updates, of transactions from tx_id $1 to before $2.
SELECT tx_id, coalesce(sum(registrations), 0)::bigint AS registrations,
       coalesce(sum(pool_updates), 0)::bigint AS pool_updates
FROM (
    SELECT tx_id, CASE kind WHEN 'registration' THEN 1 WHEN 'deregistration' THEN -1 ELSE 0 END AS registrations, 0 AS pool_updates
    FROM stake_event WHERE tx_id >= $1 AND tx_id < $2
    UNION ALL
    SELECT tx_id, 0, 1 FROM pool_update WHERE tx_id >= $1 AND tx_id < $2
) said
GROUP BY tx_id
