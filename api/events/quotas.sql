-- name: lock
-- Those of the credentials $1 that have a quota, and ask to be told of it: $2 begins the keys of their subjects. In
-- order of the key, so that two batches never deadlock.
SELECT id FROM partner.credential
WHERE id = ANY ($1::uuid[]) AND quota_requests IS NOT NULL
  AND EXISTS (
      SELECT FROM unnest($2::bytea[]) AS begins (prefix)
      JOIN partner.subject ON network_id = credential.network_id AND key = prefix || uuid_send(credential.id))
ORDER BY id FOR NO KEY UPDATE

-- name: reached
-- Which of the credentials $1 have used $3 percent of their quota in its period, and were not told of this kind, $2, in
-- it; notes that they are. $4 begins the keys of their subjects. Cost: the days of the period.
WITH used AS (
    SELECT credential.id, credential.network_id, quota_requests, quota_per, period.since, period.until,
           (SELECT coalesce(sum(successful + failed - limited), 0)::bigint FROM partner.usage_day
            WHERE credential_id = credential.id AND day >= (period.since AT TIME ZONE 'UTC')::date) AS requests
    FROM partner.credential CROSS JOIN LATERAL (
        SELECT date_trunc(quota_per, now(), 'UTC') AS since,
               date_trunc(quota_per, now(), 'UTC') + ('1 ' || quota_per)::interval AS until
    ) AS period
    WHERE credential.id = ANY ($1::uuid[])
), reached AS (
    SELECT used.*, kind, percent
    FROM used JOIN unnest($2::text[], $3::integer[], $4::bytea[]) AS level (kind, percent, prefix)
              ON requests::numeric * 100 >= quota_requests::numeric * percent
    WHERE EXISTS (
        SELECT FROM partner.subject JOIN partner.subscription USING (subscription_no)
        WHERE subject.network_id = used.network_id AND subject.key = prefix || uuid_send(used.id)
          AND subscription.state IN ('catching_up', 'live'))
), noted AS (
    INSERT INTO partner.event_notice_once (credential_id, kind, period) SELECT id, kind, since FROM reached
    ON CONFLICT DO NOTHING
    RETURNING credential_id, kind
)
SELECT noted.credential_id, network_id, noted.kind, quota_requests AS requests, quota_per AS per, requests AS used,
       since AS period_start, until AS resets_at
FROM noted JOIN reached ON reached.id = noted.credential_id AND reached.kind = noted.kind
ORDER BY noted.credential_id, percent
