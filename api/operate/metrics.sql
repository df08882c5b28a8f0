-- name: expiring
-- Credentials that are valid and expire within 7 and 30 days, of all partners: a range of one index.
SELECT count(*) FILTER (WHERE expires_at <= now() + interval '7 days') AS within_7_days, count(*) AS within_30_days
FROM partner.credential
WHERE revoked_at IS NULL AND expires_at > now() AND expires_at <= now() + interval '30 days'
