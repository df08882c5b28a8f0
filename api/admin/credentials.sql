-- The fields of a credential in the order of its Struct, for an owner. No row: foreign or missing.
-- name: credential_by_id
SELECT credential.id, credential.name, credential.description, credential.api_key_prefix, credential.created_at,
       credential.user_account_id, user_account.name AS user_account_name,
       user_account.external_id AS user_external_id, credential.admin_key_id,
       admin_key.entity_name AS admin_entity_name, credential.network_id, credential.last_used_at,
       credential.expires_at, credential.revoked_at IS NOT NULL AS revoked, credential.revoked_at,
       credential.rate_limit_per_minute, credential.metadata
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
JOIN partner.admin_key ON admin_key.id = credential.admin_key_id
WHERE credential.id = $1 AND credential.admin_key_id = $2

-- Newest first, ties by id; $2 says whether revoked ones are listed, too.
-- name: credentials
SELECT credential.id, credential.name, credential.description, credential.api_key_prefix, credential.created_at,
       credential.user_account_id, user_account.name AS user_account_name,
       user_account.external_id AS user_external_id, credential.admin_key_id,
       admin_key.entity_name AS admin_entity_name, credential.network_id, credential.last_used_at,
       credential.expires_at, credential.revoked_at IS NOT NULL AS revoked, credential.revoked_at,
       credential.rate_limit_per_minute, credential.metadata
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
JOIN partner.admin_key ON admin_key.id = credential.admin_key_id
WHERE credential.admin_key_id = $1 AND ($2 OR credential.revoked_at IS NULL)
ORDER BY credential.created_at DESC, credential.id DESC
LIMIT $3 OFFSET $4

-- name: credential_count
SELECT count(*) AS total
FROM partner.credential
WHERE admin_key_id = $1 AND ($2 OR revoked_at IS NULL)

-- No row where the account is foreign or missing. FOR SHARE waits for a suspension under way, which has to know all
-- keys of the account, and makes a later one wait.
-- name: create
INSERT INTO partner.credential (user_account_id, admin_key_id, name, description, network_id, expires_at,
                                rate_limit_per_minute, metadata, key_hash, api_key_prefix)
SELECT id, admin_key_id, $3, $4, $5, $6, $7, $8, $9, $10
FROM partner.user_account
WHERE id = $1 AND admin_key_id = $2
FOR SHARE
RETURNING id

-- $3 and $5 say which fields are given. No row: foreign, missing or revoked.
-- name: update
UPDATE partner.credential
SET name = CASE WHEN $3 THEN $4 ELSE name END, description = CASE WHEN $5 THEN $6 ELSE description END
WHERE id = $1 AND admin_key_id = $2 AND revoked_at IS NULL
RETURNING id

-- No row: foreign, missing or revoked.
-- name: revoke
UPDATE partner.credential SET revoked_at = now()
WHERE id = $1 AND admin_key_id = $2 AND revoked_at IS NULL
RETURNING key_hash
