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

-- name: webhooks
-- The number of webhooks in each state. Reads all of them, a row each.
SELECT webhook.state, count(*) AS webhooks
FROM partner.webhook JOIN partner.subscription USING (subscription_no)
WHERE subscription.state <> 'ended'
GROUP BY webhook.state

-- name: webhook_attempts
-- The number of attempts by result.
SELECT result, attempts FROM partner.webhook_total

-- name: webhook_lag
-- For how long an event could have been sent and was not, in seconds: the longest of all webhooks whose last attempt
-- has not failed. A look-up for each webhook that waits.
SELECT coalesce(max(extract(epoch FROM now() - greatest(event.told_at, waiting.try_at))), 0)::float8 AS lag_s
FROM partner.webhook_waiting waiting
JOIN partner.event ON event.subscription_no = waiting.subscription_no AND event.number = waiting.delivered_number + 1
WHERE waiting.failures = 0 AND waiting.try_at <= now()
