-- name: credential
-- The credential itself. No row: foreign or missing.
SELECT ARRAY[id] AS ids FROM partner.credential WHERE id = $1 AND admin_key_id = $2

-- name: user_credentials
-- The credentials of an account. No row: foreign or missing.
SELECT ARRAY(SELECT id FROM partner.credential WHERE user_account_id = user_account.id) AS ids
FROM partner.user_account
WHERE id = $1 AND admin_key_id = $2

-- name: parts
-- A page of the usage of credentials, newest period first, then by endpoint (null unless $5) and class of status (null
-- unless $6). At least one row, for the total. Cost: the hours of the period.
WITH part AS (
    SELECT date_trunc($4, hour, 'UTC') AS period_start, CASE WHEN $5 THEN endpoint.name END AS endpoint,
           CASE WHEN $6 THEN status_class END AS status_class, sum(requests)::bigint AS requests,
           sum(took_us)::bigint AS took_us, partner.durations_sum(durations) AS durations,
           sum(events)::bigint AS events, sum(stream_minutes)::bigint AS stream_minutes
    FROM partner.usage_hour
    JOIN partner.endpoint USING (endpoint_no)
    WHERE credential_id = ANY($1::uuid[]) AND hour >= $2 AND hour < $3
    GROUP BY 1, 2, 3
), page AS (
    SELECT * FROM part ORDER BY period_start DESC, endpoint, status_class LIMIT $7 OFFSET $8
)
SELECT counted.total, page.period_start, page.endpoint, page.status_class, page.requests, page.took_us, page.durations,
       page.events, page.stream_minutes
FROM (SELECT count(*) AS total FROM part) AS counted
LEFT JOIN page ON true
ORDER BY page.period_start DESC, page.endpoint, page.status_class

-- name: used_credentials
-- The next credentials of an admin key that were used in a period, in order of id, after a given one.
SELECT credential.id AS credential_id, credential.name AS credential_name, credential.user_account_id,
       user_account.external_id
FROM partner.credential
JOIN partner.user_account ON user_account.id = credential.user_account_id
WHERE credential.admin_key_id = $1 AND credential.id > $2
  AND EXISTS (SELECT FROM partner.usage_hour WHERE credential_id = credential.id AND hour >= $3 AND hour < $4)
ORDER BY credential.id
LIMIT $5

-- name: export
-- The next parts of a credential's usage after period $5, endpoint $6 and class $7, in that order. Cost: the hours of
-- the period.
SELECT date_trunc($4, hour, 'UTC') AS period_start, endpoint_no, endpoint.name AS endpoint, status_class,
       sum(requests)::bigint AS requests, sum(took_us)::bigint AS took_us,
       partner.durations_sum(durations) AS durations, sum(events)::bigint AS events,
       sum(stream_minutes)::bigint AS stream_minutes
FROM partner.usage_hour
JOIN partner.endpoint USING (endpoint_no)
WHERE credential_id = $1 AND hour >= $2 AND hour < $3
GROUP BY 1, 2, 3, 4
HAVING (date_trunc($4, hour, 'UTC'), endpoint_no, status_class) > ($5, $6, $7)
ORDER BY 1, 2, 4
LIMIT $8
