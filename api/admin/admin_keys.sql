-- name: admin_keys
-- Newest first, ties by id. Until a bootstrap key is used, its record is only that of the command line.
SELECT id, entity_name, key_prefix, permissions, is_bootstrap, created_at, last_used_at,
       revoked_at IS NOT NULL AS revoked, revoked_at
FROM partner.admin_key
WHERE NOT is_bootstrap OR key_hash IS NOT NULL
ORDER BY created_at DESC, id DESC
LIMIT $1 OFFSET $2

-- name: admin_key_count
SELECT count(*) AS total FROM partner.admin_key WHERE NOT is_bootstrap OR key_hash IS NOT NULL

-- name: create
INSERT INTO partner.admin_key (entity_name, permissions, key_prefix, key_hash)
VALUES ($1, $2, $3, $4)
RETURNING id, entity_name, key_prefix, permissions, is_bootstrap, created_at, last_used_at,
          revoked_at IS NOT NULL AS revoked, revoked_at

-- name: is_bootstrap
SELECT is_bootstrap FROM partner.admin_key WHERE id = $1

-- name: revoke
-- No row: missing, already revoked, or the bootstrap key.
UPDATE partner.admin_key SET revoked_at = now()
WHERE id = $1 AND revoked_at IS NULL AND NOT is_bootstrap
RETURNING id, entity_name, key_prefix, permissions, is_bootstrap, created_at, last_used_at,
          revoked_at IS NOT NULL AS revoked, revoked_at

-- name: operator
-- The record under which the command line acts; created here unless a bootstrap key has created it.
INSERT INTO partner.admin_key (is_bootstrap, entity_name, key_prefix, permissions)
VALUES (true, 'bootstrap', 'iiak_admin_', $1)
ON CONFLICT (is_bootstrap) WHERE is_bootstrap DO UPDATE SET permissions = excluded.permissions
RETURNING id, entity_name
