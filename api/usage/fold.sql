-- Each statement folds some rows, $1 at most, of further parts of a table into part 0, in order of the key, so that a
-- fold and a batch never deadlock. Rows that a batch or another fold holds are left for the next time.

-- name: minutes
WITH locked AS (
    SELECT credential_id, minute, part
    FROM partner.usage
    WHERE part > 0
    ORDER BY credential_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), folded AS (
    DELETE FROM partner.usage USING locked
    WHERE usage.credential_id = locked.credential_id AND usage.minute = locked.minute AND usage.part = locked.part
    RETURNING usage.credential_id, usage.minute, usage.successful, usage.failed, usage.took_us
)
INSERT INTO partner.usage AS kept (credential_id, minute, successful, failed, took_us)
SELECT credential_id, minute, sum(successful), sum(failed), sum(took_us)
FROM folded
GROUP BY credential_id, minute
ORDER BY credential_id, minute
ON CONFLICT (credential_id, minute, part) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us

-- name: days
WITH locked AS (
    SELECT credential_id, day, part
    FROM partner.usage_day
    WHERE part > 0
    ORDER BY credential_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), folded AS (
    DELETE FROM partner.usage_day USING locked
    WHERE usage_day.credential_id = locked.credential_id AND usage_day.day = locked.day AND usage_day.part = locked.part
    RETURNING usage_day.credential_id, usage_day.day, usage_day.successful, usage_day.failed, usage_day.took_us,
              usage_day.limited
)
INSERT INTO partner.usage_day AS kept (credential_id, day, successful, failed, took_us, limited)
SELECT credential_id, day, sum(successful), sum(failed), sum(took_us), sum(limited)
FROM folded
GROUP BY credential_id, day
ORDER BY credential_id, day
ON CONFLICT (credential_id, day, part) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us,
    limited = kept.limited + excluded.limited

-- name: totals
WITH locked AS (
    SELECT credential_id, part
    FROM partner.usage_total
    WHERE part > 0
    ORDER BY admin_key_id, credential_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), folded AS (
    DELETE FROM partner.usage_total USING locked
    WHERE usage_total.credential_id = locked.credential_id AND usage_total.part = locked.part
    RETURNING usage_total.credential_id, usage_total.admin_key_id, usage_total.created_at, usage_total.successful,
              usage_total.failed
)
INSERT INTO partner.usage_total AS kept (credential_id, admin_key_id, created_at, successful, failed)
SELECT credential_id, admin_key_id, created_at, sum(successful), sum(failed)
FROM folded
GROUP BY credential_id, admin_key_id, created_at
ORDER BY credential_id
ON CONFLICT (credential_id, part) DO UPDATE
SET successful = kept.successful + excluded.successful, failed = kept.failed + excluded.failed

-- name: hours
WITH locked AS (
    SELECT credential_id, hour, endpoint_no, status_class, part
    FROM partner.usage_hour
    WHERE part > 0
    ORDER BY credential_id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), folded AS (
    DELETE FROM partner.usage_hour USING locked
    WHERE usage_hour.credential_id = locked.credential_id AND usage_hour.hour = locked.hour
      AND usage_hour.endpoint_no = locked.endpoint_no AND usage_hour.status_class = locked.status_class
      AND usage_hour.part = locked.part
    RETURNING usage_hour.credential_id, usage_hour.hour, usage_hour.endpoint_no, usage_hour.status_class,
              usage_hour.requests, usage_hour.took_us, usage_hour.durations, usage_hour.events,
              usage_hour.stream_minutes
)
INSERT INTO partner.usage_hour AS kept
    (credential_id, hour, endpoint_no, status_class, requests, took_us, durations, events, stream_minutes)
SELECT credential_id, hour, endpoint_no, status_class, sum(requests), sum(took_us), partner.durations_sum(durations),
       sum(events), sum(stream_minutes)
FROM folded
GROUP BY credential_id, hour, endpoint_no, status_class
ORDER BY credential_id, hour, endpoint_no, status_class
ON CONFLICT (credential_id, hour, endpoint_no, status_class, part) DO UPDATE
SET requests = kept.requests + excluded.requests,
    took_us = kept.took_us + excluded.took_us,
    durations = partner.durations_add(kept.durations, excluded.durations),
    events = kept.events + excluded.events,
    stream_minutes = kept.stream_minutes + excluded.stream_minutes
