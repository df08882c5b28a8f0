-- name: fork
SELECT epoch_no, major FROM protocol_fork

-- name: around
-- The first block from slot $1 to before slot $2, and the last block before slot $1.
SELECT first.slot_no AS first_slot_no, first.hash AS first_hash, last.slot_no AS last_slot_no, last.hash AS last_hash
FROM (VALUES (true)) one (row)
LEFT JOIN LATERAL (SELECT slot_no, hash FROM block WHERE slot_no >= $1 AND slot_no < $2 ORDER BY slot_no LIMIT 1) first
    ON true
LEFT JOIN LATERAL (SELECT slot_no, hash FROM block WHERE slot_no < $1 ORDER BY slot_no DESC LIMIT 1) last ON true

-- name: span
-- The first and the last tx_id of all votes; the last before the first if there are none.
SELECT coalesce(min(tx_id), 0) AS first_tx_id, coalesce(max(tx_id), -1) AS last_tx_id
FROM (SELECT tx_id FROM vote_delegation UNION ALL SELECT tx_id FROM representative_event) votes

-- name: events
-- The events of votes from tx_id $1 to before $2, in their order; the retirement of a representative comes before the
-- ends of delegations that it causes.
SELECT tx_id, place, kind, stake_no, representative FROM vote_delegation WHERE tx_id >= $1 AND tx_id < $2
UNION ALL
SELECT tx_id, place, kind, NULL, representative FROM representative_event
WHERE kind <> 'update' AND tx_id >= $1 AND tx_id < $2
ORDER BY tx_id, place, stake_no NULLS FIRST
