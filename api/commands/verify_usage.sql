-- name: next_credentials
-- The next credentials in order of id.
SELECT id FROM partner.credential WHERE id > $1 ORDER BY id LIMIT $2

-- name: differences
-- Where the tables of usage of some credentials contradict each other, $2 rows at most. Figures are successful and
-- failed requests and their microseconds. Minutes and hours are compared on days of which all are kept. Cost: all rows
-- of the credentials.
WITH kept AS (
    SELECT coalesce((SELECT since FROM partner.usage_kept), '-infinity') AS minutes_since,
           coalesce((SELECT date_trunc('day', hours_since, 'UTC') + interval '1 day' FROM partner.usage_kept),
                    '-infinity') AS hours_since
), days AS (
    SELECT credential_id, day, sum(successful) AS successful, sum(failed) AS failed, sum(took_us) AS took_us,
           sum(limited) AS limited
    FROM partner.usage_day
    WHERE credential_id = ANY($1::uuid[])
    GROUP BY credential_id, day
), minutes AS (
    SELECT credential_id, (minute AT TIME ZONE 'UTC')::date AS day, sum(successful) AS successful,
           sum(failed) AS failed, sum(took_us) AS took_us
    FROM partner.usage, kept
    WHERE credential_id = ANY($1::uuid[]) AND minute >= minutes_since
    GROUP BY 1, 2
), hours AS (
    SELECT credential_id, (hour AT TIME ZONE 'UTC')::date AS day,
           coalesce(sum(requests) FILTER (WHERE status_class < 4), 0) AS successful,
           coalesce(sum(requests) FILTER (WHERE status_class >= 4), 0) AS failed, sum(took_us) AS took_us
    FROM partner.usage_hour, kept
    WHERE credential_id = ANY($1::uuid[]) AND hour >= hours_since AND requests > 0
    GROUP BY 1, 2
), totals AS (
    SELECT credential_id, sum(successful) AS successful, sum(failed) AS failed
    FROM partner.usage_total
    WHERE credential_id = ANY($1::uuid[])
    GROUP BY credential_id
), found AS (
    SELECT credential_id, day, 'minutes' AS compared,
           concat_ws(' ', minutes.successful, minutes.failed, minutes.took_us) AS has,
           'days' AS with_those, concat_ws(' ', of_day.successful, of_day.failed, of_day.took_us) AS expected
    FROM (SELECT days.* FROM days, kept WHERE day >= (minutes_since AT TIME ZONE 'UTC')::date) AS of_day
    FULL JOIN minutes USING (credential_id, day)
    WHERE (minutes.successful, minutes.failed, minutes.took_us)
          IS DISTINCT FROM (of_day.successful, of_day.failed, of_day.took_us)
    UNION ALL
    SELECT credential_id, day, 'hours', concat_ws(' ', hours.successful, hours.failed, hours.took_us), 'days',
           concat_ws(' ', of_day.successful, of_day.failed, of_day.took_us)
    FROM (SELECT days.* FROM days, kept WHERE day >= (hours_since AT TIME ZONE 'UTC')::date) AS of_day
    FULL JOIN hours USING (credential_id, day)
    WHERE (hours.successful, hours.failed, hours.took_us)
          IS DISTINCT FROM (of_day.successful, of_day.failed, of_day.took_us)
    UNION ALL
    SELECT credential_id, NULL, 'total', concat_ws(' ', totals.successful, totals.failed), 'days',
           concat_ws(' ', coalesce(of_days.successful, 0), coalesce(of_days.failed, 0))
    FROM (SELECT credential_id, sum(successful) AS successful, sum(failed) AS failed FROM days GROUP BY 1) AS of_days
    FULL JOIN totals USING (credential_id)
    WHERE (coalesce(totals.successful, 0), coalesce(totals.failed, 0))
          IS DISTINCT FROM (coalesce(of_days.successful, 0), coalesce(of_days.failed, 0))
    UNION ALL
    SELECT credential_id, (hour AT TIME ZONE 'UTC')::date, 'durations',
           (SELECT coalesce(sum(bucket & 281474976710655), 0) FROM unnest(durations) AS bucket)::text, 'hour',
           requests::text
    FROM partner.usage_hour
    WHERE credential_id = ANY($1::uuid[])
      AND (SELECT coalesce(sum(bucket & 281474976710655), 0) FROM unnest(durations) AS bucket) <> requests
    UNION ALL
    SELECT credential_id, day, 'limited', limited::text, 'failed at most', failed::text
    FROM days
    WHERE limited NOT BETWEEN 0 AND failed
)
SELECT credential_id, day, compared, has, with_those, expected
FROM found
ORDER BY credential_id, day, compared
LIMIT $2
