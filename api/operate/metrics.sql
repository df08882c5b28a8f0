-- name: expiring
-- Credentials that are valid and expire within 7 and 30 days, of all partners: a range of one index.
SELECT count(*) FILTER (WHERE expires_at <= now() + interval '7 days') AS within_7_days, count(*) AS within_30_days
FROM partner.credential
WHERE revoked_at IS NULL AND expires_at > now() AND expires_at <= now() + interval '30 days'

-- name: pool_metadata
-- For each network, the registered metadata of pools by state, in all and of registrations seen in the last 7 days.
-- Reads the table: a row or few for each pool.
SELECT network_id,
       count(*) FILTER (WHERE content IS NOT NULL) AS fetched,
       count(*) FILTER (WHERE failure_code IS NOT NULL) AS failed,
       count(*) FILTER (WHERE tried_at IS NULL) AS waiting,
       count(*) FILTER (WHERE content IS NOT NULL AND found_at > now() - interval '7 days') AS new_fetched,
       count(*) FILTER (WHERE failure_code IS NOT NULL AND found_at > now() - interval '7 days') AS new_failed,
       count(*) FILTER (WHERE tried_at IS NULL AND found_at > now() - interval '7 days') AS new_waiting
FROM partner.pool_metadata
WHERE replaced_at IS NULL
GROUP BY network_id
