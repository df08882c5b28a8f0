-- name: rules
-- The limits and restrictions of a credential of an admin key. No row: foreign or missing.
SELECT id, name, revoked_at IS NOT NULL AS revoked, rate_limit_per_minute, expires_at, quota_requests, quota_per,
       ip_networks, scopes
FROM partner.credential
WHERE id = $1 AND admin_key_id = $2
{locked}

-- name: set_limits
UPDATE partner.credential SET rate_limit_per_minute = $2, expires_at = $3, quota_requests = $4, quota_per = $5
WHERE id = $1

-- name: set_restrictions
UPDATE partner.credential SET ip_networks = $2, scopes = $3 WHERE id = $1
