-- name: api_key_by_hash
-- The properties of an API key, current or former, that decide whether a request is admitted. At most one row, since
-- hashes are unique. Cost: two look-ups and, with a quota, the days of its period.
SELECT credential.id AS credential_id, credential.network_id,
       credential.rate_limit_per_minute AS limit, key.expires_at,
       credential.revoked_at IS NOT NULL AS revoked, coalesce(key.expires_at <= now(), false) AS expired,
       user_account.status AS user_status, credential.quota_requests,
       credential.quota_per, coalesce(period.since, now()) AS quota_since,
       coalesce(period.until, now()) AS quota_until, coalesce(used.requests, 0) AS quota_used,
       credential.ip_networks, credential.scopes
FROM (
    SELECT id, expires_at FROM partner.credential WHERE key_hash = $1
    UNION ALL
    SELECT credential.id, least(former_key.ends_at, credential.expires_at)
    FROM partner.former_key JOIN partner.credential ON credential.id = former_key.credential_id
    WHERE former_key.key_hash = $1
) AS key
JOIN partner.credential USING (id)
JOIN partner.user_account ON user_account.id = credential.user_account_id
LEFT JOIN LATERAL (
    SELECT date_trunc(credential.quota_per, now(), 'UTC') AS since,
           date_trunc(credential.quota_per, now(), 'UTC') + ('1 ' || credential.quota_per)::interval AS until
) AS period ON credential.quota_per IS NOT NULL
LEFT JOIN LATERAL (
    SELECT coalesce(sum(successful + failed - limited), 0)::bigint AS requests
    FROM partner.usage_day
    WHERE credential_id = credential.id AND day >= (period.since AT TIME ZONE 'UTC')::date
) AS used ON credential.quota_per IS NOT NULL

-- name: key_hashes
-- The hashes of the keys of a credential that may be valid: its own, and former ones during their overlaps.
SELECT key_hash FROM partner.credential WHERE id = $1
UNION ALL
SELECT key_hash FROM partner.former_key WHERE credential_id = $1 AND ends_at > now()

-- name: admin_key_by_hash
-- A partner's admin key, unless it is revoked. Never the bootstrap key, which is defined by the setting alone.
SELECT id, entity_name, permissions,
       last_used_at IS NULL OR last_used_at < now() - interval '1 minute' AS use_is_due
FROM partner.admin_key
WHERE key_hash = $1 AND revoked_at IS NULL AND NOT is_bootstrap

-- name: was_issued
-- Whether a key was ever issued to a partner.
SELECT EXISTS (SELECT FROM partner.admin_key WHERE key_hash = $1 AND NOT is_bootstrap) AS found

-- name: touch_admin_key
-- At most once a minute (use_is_due): precise enough for people, and it saves a new row version per request.
UPDATE partner.admin_key SET last_used_at = now()
WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')

-- name: bootstrap_admin_key
-- Store the current bootstrap key in the operator's record. No row if another request has just done so.
WITH changed AS (
    UPDATE partner.admin_key SET key_prefix = $1, key_hash = $2, last_used_at = now() WHERE is_bootstrap
    RETURNING id, entity_name
), made AS (
    INSERT INTO partner.admin_key (is_bootstrap, entity_name, key_prefix, key_hash, permissions, last_used_at)
    SELECT true, 'bootstrap', $1, $2, $3, now() WHERE NOT EXISTS (SELECT FROM changed)
    ON CONFLICT DO NOTHING
    RETURNING id, entity_name
)
SELECT id, entity_name FROM changed UNION ALL SELECT id, entity_name FROM made
