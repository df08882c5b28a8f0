-- The fields of an account in the order of its Struct, for an owner. No row: foreign or missing.
-- name: user_by_id
SELECT user_account.id, user_account.admin_key_id, admin_key.entity_name AS admin_entity_name,
       user_account.external_id, user_account.name, user_account.email, user_account.metadata,
       user_account.created_at, user_account.updated_at, user_account.status, user_account.billing_plan
FROM partner.user_account
JOIN partner.admin_key ON admin_key.id = user_account.admin_key_id
WHERE user_account.id = $1 AND user_account.admin_key_id = $2

-- The same by the partner's own reference.
-- name: user_by_external_id
SELECT user_account.id, user_account.admin_key_id, admin_key.entity_name AS admin_entity_name,
       user_account.external_id, user_account.name, user_account.email, user_account.metadata,
       user_account.created_at, user_account.updated_at, user_account.status, user_account.billing_plan
FROM partner.user_account
JOIN partner.admin_key ON admin_key.id = user_account.admin_key_id
WHERE user_account.external_id = $1 AND user_account.admin_key_id = $2

-- Newest first, ties by id; a null status is any.
-- name: users
SELECT user_account.id, user_account.admin_key_id, admin_key.entity_name AS admin_entity_name,
       user_account.external_id, user_account.name, user_account.email, user_account.metadata,
       user_account.created_at, user_account.updated_at, user_account.status, user_account.billing_plan
FROM partner.user_account
JOIN partner.admin_key ON admin_key.id = user_account.admin_key_id
WHERE user_account.admin_key_id = $1 AND ($2::text IS NULL OR user_account.status = $2)
ORDER BY user_account.created_at DESC, user_account.id DESC
LIMIT $3 OFFSET $4

-- name: user_count
SELECT count(*) AS total
FROM partner.user_account
WHERE admin_key_id = $1 AND ($2::text IS NULL OR status = $2)

-- name: create
INSERT INTO partner.user_account (admin_key_id, name, external_id, email, metadata, billing_plan)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING id

-- $3, $5, $7, $9 and $11 say which fields are given. No row: foreign or missing.
-- name: update
UPDATE partner.user_account
SET name = CASE WHEN $3 THEN $4 ELSE name END,
    external_id = CASE WHEN $5 THEN $6 ELSE external_id END,
    email = CASE WHEN $7 THEN $8 ELSE email END,
    metadata = CASE WHEN $9 THEN $10 ELSE metadata END,
    billing_plan = CASE WHEN $11 THEN $12 ELSE billing_plan END,
    updated_at = now()
WHERE id = $1 AND admin_key_id = $2
RETURNING id

-- No row where the account has that status already, or is foreign or missing.
-- name: set_status
UPDATE partner.user_account SET status = $3, updated_at = now()
WHERE id = $1 AND admin_key_id = $2 AND status <> $3
RETURNING id

-- The keys that an account's suspension ends. Creating one waits for the suspension (credentials.sql), so none is missed.
-- name: key_hashes
SELECT key_hash FROM partner.credential WHERE user_account_id = $1 AND revoked_at IS NULL
