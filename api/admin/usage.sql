-- name: credentials_totals
-- Every credential of an admin key with its total requests, most requests first, then newest, ties by id. Cost: a range
-- of one index, from its beginning to the end of the page, and the credentials whose totals have further parts: none as
-- a rule.
WITH divided AS MATERIALIZED (
    SELECT credential_id, min(created_at) AS created_at, sum(successful)::bigint AS successful,
           sum(failed)::bigint AS failed
    FROM partner.usage_total
    WHERE credential_id IN (SELECT credential_id FROM partner.usage_total WHERE admin_key_id = $1 AND part > 0)
    GROUP BY credential_id
), page AS (
    SELECT credential_id, created_at, successful, failed
    FROM (
        (
            SELECT credential_id, created_at, successful, failed
            FROM partner.usage_total
            WHERE admin_key_id = $1 AND part = 0 AND credential_id NOT IN (SELECT credential_id FROM divided)
            ORDER BY successful + failed DESC, created_at DESC, credential_id DESC
            LIMIT $2::bigint + $3::bigint
        )
        UNION ALL
        SELECT credential_id, created_at, successful, failed FROM divided
    ) AS either
    ORDER BY successful + failed DESC, created_at DESC, credential_id DESC
    LIMIT $2 OFFSET $3
)
SELECT page.credential_id, credential.name AS credential_name, credential.api_key_prefix, credential.user_account_id,
       user_account.name AS user_account_name, page.successful + page.failed AS total_requests,
       page.successful AS successful_requests, page.failed AS failed_requests, credential.last_used_at
FROM page
JOIN partner.credential ON credential.id = page.credential_id
JOIN partner.user_account ON user_account.id = credential.user_account_id
ORDER BY page.successful + page.failed DESC, page.created_at DESC, page.credential_id DESC

-- name: credentials_usage
-- Every credential of an admin key with its requests from $2 (null: since the first) up to $3 (null: until now), most
-- requests first, then newest, ties by id.
SELECT credential.id AS credential_id, credential.name AS credential_name, credential.api_key_prefix,
       credential.user_account_id, user_account.name AS user_account_name,
       used.successful + used.failed AS total_requests, used.successful AS successful_requests,
       used.failed AS failed_requests, credential.last_used_at
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(successful), 0)::bigint AS successful, coalesce(sum(failed), 0)::bigint AS failed
    FROM partner.usage_of(credential.id, coalesce($2, timestamptz '-infinity'), coalesce($3, timestamptz 'infinity'))
) AS used
WHERE credential.admin_key_id = $1
ORDER BY total_requests DESC, credential.created_at DESC, credential.id DESC
LIMIT $4 OFFSET $5

-- name: credential_count
SELECT credentials AS total FROM partner.admin_key WHERE id = $1

-- name: credential
-- No row: foreign or missing.
SELECT credential.id AS credential_id, credential.name AS credential_name, credential.api_key_prefix,
       credential.user_account_id, user_account.name AS user_account_name, credential.created_at
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
WHERE credential.id = $1 AND credential.admin_key_id = $2

-- name: days
-- The days (UTC) of a period with requests of a credential, newest first.
SELECT day AS date, (sum(successful) + sum(failed))::bigint AS total_requests,
       sum(successful)::bigint AS successful_requests, sum(failed)::bigint AS failed_requests
FROM partner.usage_of($1, $2, $3)
GROUP BY day
ORDER BY day DESC

-- name: user_usage
-- Accounts of an admin key $1, each with the requests of all its credentials in a period, $2 to $3. {which} is the
-- condition that selects them, {page} their order and limits.
SELECT user_account.id AS user_account_id, user_account.name AS user_name, user_account.external_id,
       (coalesce(sum(used.successful), 0) + coalesce(sum(used.failed), 0))::bigint AS total_requests,
       coalesce(sum(used.successful), 0)::bigint AS successful_requests,
       coalesce(sum(used.failed), 0)::bigint AS failed_requests,
       coalesce(sum(used.took_us), 0)::bigint AS took_us,
       count(credential.id) FILTER (
           WHERE credential.revoked_at IS NULL AND (credential.expires_at IS NULL OR credential.expires_at > now())
       ) AS credential_count
FROM partner.user_account
LEFT JOIN partner.credential ON credential.user_account_id = user_account.id
LEFT JOIN LATERAL (
    SELECT sum(successful) AS successful, sum(failed) AS failed, sum(took_us) AS took_us
    FROM partner.usage_of(credential.id, $2, $3)
) AS used ON true
WHERE user_account.admin_key_id = $1 AND {which}
GROUP BY user_account.id
{page}

-- name: active_user_count
SELECT count(*) AS total FROM partner.user_account WHERE admin_key_id = $1 AND status = 'active'
