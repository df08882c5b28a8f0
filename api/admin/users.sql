-- The fields of an account in the order of its Struct, for an owner. No row: foreign or missing.
-- name: user_by_id
SELECT user_account.id, user_account.admin_key_id, admin_key.entity_name AS admin_entity_name,
       user_account.external_id, user_account.name, user_account.email, user_account.metadata,
       user_account.created_at, user_account.updated_at, user_account.status, user_account.billing_plan
FROM partner.user_account
JOIN partner.admin_key ON admin_key.id = user_account.admin_key_id
WHERE user_account.id = $1 AND user_account.admin_key_id = $2

-- name: user_by_external_id
SELECT id FROM partner.user_account WHERE external_id = $1 AND admin_key_id = $2

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

-- The account as it is, until this commit ends, so that fields which are not given stay what they are.
-- name: lock
SELECT id FROM partner.user_account WHERE id = $1 AND admin_key_id = $2 FOR NO KEY UPDATE

-- name: update
UPDATE partner.user_account
SET name = $3, external_id = $4, email = $5, metadata = $6, billing_plan = $7, updated_at = now()
WHERE id = $1 AND admin_key_id = $2

-- No row where the account has that status already, or is foreign or missing.
-- name: set_status
UPDATE partner.user_account SET status = $3, updated_at = now()
WHERE id = $1 AND admin_key_id = $2 AND status <> $3
RETURNING id

-- The keys that an account's suspension ends. Creating one waits for the suspension (credentials.sql), so none is missed.
-- name: key_hashes
SELECT key_hash FROM partner.credential WHERE user_account_id = $1 AND revoked_at IS NULL
