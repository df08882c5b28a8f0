-- name: credentials
-- The fields of credentials in the order of their Struct. No row: foreign or missing.
SELECT credential.id, credential.name, credential.description, credential.api_key_prefix, credential.created_at,
       credential.user_account_id, user_account.name AS user_account_name,
       user_account.external_id AS user_external_id, credential.admin_key_id,
       admin_key.entity_name AS admin_entity_name, credential.network_id, credential.last_used_at,
       credential.expires_at, credential.revoked_at IS NOT NULL AS revoked, credential.revoked_at,
       credential.rate_limit_per_minute, credential.metadata
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
JOIN partner.admin_key ON admin_key.id = credential.admin_key_id
WHERE {which}
{page}

-- name: matching
-- An admin key's credentials that match all filters. A null filter matches any; $2 includes revoked ones, unless a
-- status ($5) is given. Cost: the key's credentials, if a filter matches few.
credential.admin_key_id = $1
  AND ($2 OR $5::text IS NOT NULL OR credential.revoked_at IS NULL)
  AND ($3::uuid IS NULL OR credential.user_account_id = $3)
  AND ($4::integer IS NULL OR credential.network_id = $4)
  AND ($5::text IS NULL OR $5 = CASE WHEN credential.revoked_at IS NOT NULL THEN 'revoked'
                                     WHEN credential.expires_at <= now() THEN 'expired' ELSE 'active' END)
  AND ($6::text IS NULL OR strpos(lower(credential.name || chr(10) || coalesce(credential.description, '') || chr(10)
                                        || credential.api_key_prefix), lower($6)) > 0)
  AND ($7::integer IS NULL OR (credential.revoked_at IS NULL AND credential.expires_at > now()
                               AND credential.expires_at <= now() + make_interval(days => $7)))

-- name: credential_count
SELECT count(*) AS total FROM partner.credential WHERE {which}

-- name: create
-- No row if the account is foreign, missing or deleted. FOR SHARE waits for a suspension in progress, which must see
-- all keys of the account, and makes a later one wait.
WITH made AS (
    INSERT INTO partner.credential (user_account_id, admin_key_id, name, description, network_id, expires_at,
                                    rate_limit_per_minute, metadata, key_hash, api_key_prefix)
    SELECT id, admin_key_id, $3, $4, $5, $6, $7, $8, $9, $10
    FROM partner.user_account
    WHERE id = $1 AND admin_key_id = $2 AND deleted_at IS NULL
    FOR SHARE
    RETURNING id, admin_key_id, created_at
), counted AS (
    UPDATE partner.admin_key SET credentials = credentials + 1 FROM made WHERE admin_key.id = made.admin_key_id
)
INSERT INTO partner.usage_total (credential_id, admin_key_id, created_at)
SELECT id, admin_key_id, created_at FROM made
RETURNING credential_id AS id

-- name: update
-- $3 and $5 are true for the fields to change. No row: foreign, missing or revoked.
UPDATE partner.credential
SET name = CASE WHEN $3 THEN $4 ELSE name END, description = CASE WHEN $5 THEN $6 ELSE description END
WHERE id = $1 AND admin_key_id = $2 AND revoked_at IS NULL
RETURNING id

-- name: revoke
-- No row: foreign, missing or revoked.
UPDATE partner.credential SET revoked_at = now()
WHERE id = $1 AND admin_key_id = $2 AND revoked_at IS NULL
RETURNING id

-- name: rotate
-- Replace the key of a credential with $3, whose prefix is $4; the former one ends in $5 seconds. If that is 0, those
-- of earlier rotations end as well. No row: foreign, missing or revoked. Like `create`, this waits for a suspension of
-- the account in progress, and makes a later one wait. Changing key_hash takes the lock of FOR UPDATE, because key_hash
-- is unique. Taking a weaker lock first and upgrading it would deadlock with the usage aggregator, whose rows refer to
-- the credential.
WITH former AS (
    SELECT credential.id, credential.key_hash, credential.api_key_prefix
    FROM partner.credential
    JOIN partner.user_account ON user_account.id = credential.user_account_id
    WHERE credential.id = $1 AND credential.admin_key_id = $2 AND credential.revoked_at IS NULL
    FOR SHARE OF user_account
    FOR UPDATE OF credential
), replaced AS (
    UPDATE partner.credential SET key_hash = $3, api_key_prefix = $4 FROM former WHERE credential.id = former.id
), ended AS (
    UPDATE partner.former_key SET ends_at = now() FROM former
    WHERE credential_id = former.id AND ends_at > now() AND $5 = 0
), ending AS (
    INSERT INTO partner.former_key (key_hash, credential_id, ends_at)
    SELECT key_hash, id, now() + make_interval(secs => $5) FROM former
    RETURNING ends_at
)
SELECT former.api_key_prefix, ending.ends_at FROM former, ending

-- name: key_hashes
-- All keys of a credential that may be cached.
SELECT key_hash FROM partner.credential WHERE id = $1
UNION ALL
SELECT key_hash FROM partner.former_key WHERE credential_id = $1 AND ends_at > now() - interval '1 minute'
