-- What decides on a request with an API key. One row or none; by the unique index of hashes.
-- name: api_key_by_hash
SELECT credential.key_hash, credential.id AS credential_id, credential.network_id,
       credential.rate_limit_per_minute AS limit, credential.expires_at,
       credential.revoked_at IS NOT NULL AS revoked, coalesce(credential.expires_at <= now(), false) AS expired,
       user_account.status AS owner_status
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
WHERE credential.key_hash = $1

-- A partner's admin key unless it is revoked. The bootstrap key is never found here: the setting alone says what it is.
-- name: admin_key_by_hash
SELECT key_hash, id, entity_name, permissions
FROM partner.admin_key
WHERE key_hash = $1 AND revoked_at IS NULL AND NOT is_bootstrap

-- Whether a key was issued to a partner, revoked since or not.
-- name: is_partners
SELECT EXISTS (SELECT FROM partner.admin_key WHERE key_hash = $1 AND NOT is_bootstrap) AS found

-- Once a minute is enough for a time that people read, and spares the row a version per request.
-- name: touch_admin_key
UPDATE partner.admin_key SET last_used_at = now()
WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')

-- The operator's record, made or brought to the bootstrap key that the setting names now.
-- name: bootstrap_admin_key
INSERT INTO partner.admin_key (is_bootstrap, entity_name, key_prefix, key_hash, permissions, last_used_at)
VALUES (true, 'bootstrap', $1, $2, $3, now())
ON CONFLICT (is_bootstrap) WHERE is_bootstrap DO UPDATE
SET key_prefix = excluded.key_prefix, key_hash = excluded.key_hash, last_used_at = excluded.last_used_at
RETURNING id, entity_name
