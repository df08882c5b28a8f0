-- name: users
-- The fields of accounts in the order of their Struct. No row: foreign, missing or deleted.
SELECT user_account.id, user_account.admin_key_id, admin_key.entity_name AS admin_entity_name,
       user_account.external_id, user_account.name, user_account.email, user_account.metadata,
       user_account.created_at, user_account.updated_at, user_account.status, user_account.billing_plan
FROM partner.user_account
JOIN partner.admin_key ON admin_key.id = user_account.admin_key_id
WHERE {which}
{page}

-- name: matching
-- An admin key's accounts that match all filters; a null filter means any. Cost: the key's accounts, if a filter
-- matches few.
user_account.admin_key_id = $1 AND user_account.deleted_at IS NULL
  AND ($2::text IS NULL OR user_account.status = $2)
  AND ($3::text IS NULL OR user_account.external_id = $3)
  AND ($4::text IS NULL OR strpos(lower(user_account.name || chr(10) || coalesce(user_account.external_id, '')
                                        || chr(10) || coalesce(user_account.email, '')), lower($4)) > 0)

-- name: user_count
SELECT count(*) AS total FROM partner.user_account WHERE {which}

-- name: create
INSERT INTO partner.user_account (admin_key_id, name, external_id, email, metadata, billing_plan)
VALUES ($1, $2, $3, $4, $5, $6)
RETURNING id

-- name: update
-- $3, $5, $7, $9 and $11 are true for the fields to change. No row: foreign, missing or deleted.
UPDATE partner.user_account
SET name = CASE WHEN $3 THEN $4 ELSE name END,
    external_id = CASE WHEN $5 THEN $6 ELSE external_id END,
    email = CASE WHEN $7 THEN $8 ELSE email END,
    metadata = CASE WHEN $9 THEN $10 ELSE metadata END,
    billing_plan = CASE WHEN $11 THEN $12 ELSE billing_plan END,
    updated_at = now()
WHERE id = $1 AND admin_key_id = $2 AND deleted_at IS NULL
RETURNING id

-- name: set_status
-- No row if the account already has that status, or is foreign, missing or deleted.
UPDATE partner.user_account SET status = $3, updated_at = now()
WHERE id = $1 AND admin_key_id = $2 AND deleted_at IS NULL AND status <> $3
RETURNING id

-- name: key_hashes
-- The keys that a suspension disables. Creating or rotating a key waits for the suspension (credentials.sql), so none
-- is missed.
SELECT key_hash FROM partner.credential WHERE user_account_id = $1 AND revoked_at IS NULL
UNION ALL
SELECT former_key.key_hash
FROM partner.former_key
JOIN partner.credential ON credential.id = former_key.credential_id
WHERE credential.user_account_id = $1 AND credential.revoked_at IS NULL
    AND former_key.ends_at > now() - interval '1 minute'

-- name: delete
-- Delete an account and erase its texts. No row: foreign, missing or deleted before.
UPDATE partner.user_account
SET deleted_at = now(), updated_at = now(), status = 'suspended', name = 'deleted', external_id = NULL, email = NULL,
    billing_plan = NULL, metadata = '{}'
WHERE id = $1 AND admin_key_id = $2 AND deleted_at IS NULL
RETURNING id, deleted_at

-- name: revoke_credentials
-- Revoke the credentials of a deleted account and erase their texts; returns which of them this has revoked. Rows are
-- locked in order of id, as the usage aggregator locks them, so the two never deadlock.
WITH before AS (
    SELECT id, revoked_at FROM partner.credential WHERE user_account_id = $1 ORDER BY id FOR NO KEY UPDATE
)
UPDATE partner.credential
SET revoked_at = coalesce(credential.revoked_at, now()), name = 'deleted', description = NULL, ip_networks = '{}',
    metadata = '{}'
FROM before
WHERE credential.id = before.id
RETURNING credential.id, before.revoked_at IS NULL AS just_now

-- name: drop_webhooks
-- Delete the webhooks of a deleted account: a URL may hold personal data.
DELETE FROM partner.webhook USING partner.subscription, partner.credential
WHERE webhook.subscription_no = subscription.subscription_no AND credential.id = subscription.credential_id
  AND credential.user_account_id = $1

-- name: erase_answers
-- Erase the stored answers about a deleted account or one of its credentials, $1: one about a webhook has its URL.
-- Requests of the partner that are in progress have locked the account, so no answer to them is missed.
UPDATE partner.idempotency_key SET answer = NULL WHERE target_id = ANY ($1::uuid[]) AND answer IS NOT NULL

-- name: forget_submitted
-- Forget the transactions that the keys of a deleted account have submitted. Skips those that are being changed, which
-- are pruned later, so that an indexer that rolls back never waits for a process that waits for it.
WITH of_account AS (
    SELECT network_id, tx_hash FROM partner.submitted_tx WHERE user_account_id = $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM partner.submitted_tx AS each USING of_account
WHERE each.network_id = of_account.network_id AND each.tx_hash = of_account.tx_hash AND each.user_account_id = $1

-- name: erase_names
-- Erase the names, references and networks of these accounts and credentials from audit entries.
UPDATE partner.audit_log
SET details = ((details::jsonb - '{name,external_id}'::text[]) #- '{old,ip_networks}' #- '{new,ip_networks}')::json
WHERE target_id = ANY($1::uuid[])
