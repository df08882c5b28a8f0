-- name: begin
INSERT INTO partner.usage_batch (spool, next_offset) VALUES ($1, 0) ON CONFLICT (spool) DO NOTHING

-- name: move_mark
-- Move the mark of a spool from offset $2 to $3; no row if the mark is elsewhere.
UPDATE partner.usage_batch SET next_offset = $3, added_at = now()
WHERE spool = $1 AND next_offset = $2
RETURNING next_offset

-- name: add
-- In order of the key, so that two batches never deadlock. A credential that does not exist (a damaged record with a
-- correct checksum) is left out.
INSERT INTO partner.usage AS kept (part, credential_id, minute, successful, failed, took_us)
SELECT $1, credential.id, to_timestamp(batch.minute * 60), batch.successful, batch.failed, batch.took_us
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
     AS batch (credential_id, minute, successful, failed, took_us)
JOIN partner.credential ON credential.id = batch.credential_id
ORDER BY credential.id, batch.minute
ON CONFLICT (credential_id, minute, part) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us

-- name: add_days
-- The same by day.
INSERT INTO partner.usage_day AS kept (part, credential_id, day, successful, failed, took_us, limited)
SELECT $1, credential.id, (to_timestamp(batch.minute * 60) AT TIME ZONE 'UTC')::date,
       sum(batch.successful), sum(batch.failed), sum(batch.took_us), sum(batch.limited)
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
     AS batch (credential_id, minute, successful, failed, took_us, limited)
JOIN partner.credential ON credential.id = batch.credential_id
GROUP BY 2, 3
ORDER BY 2, 3
ON CONFLICT (credential_id, day, part) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us,
    limited = kept.limited + excluded.limited

-- name: add_totals
-- The same in total, since the credential was created.
INSERT INTO partner.usage_total AS kept (part, credential_id, admin_key_id, created_at, successful, failed)
SELECT $1, credential.id, credential.admin_key_id, credential.created_at, sum(batch.successful), sum(batch.failed)
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS batch (credential_id, successful, failed)
JOIN partner.credential ON credential.id = batch.credential_id
GROUP BY 2, 3, 4
ORDER BY 2
ON CONFLICT (credential_id, part) DO UPDATE
SET successful = kept.successful + excluded.successful, failed = kept.failed + excluded.failed

-- name: touch
-- In order of the key, so that two batches never deadlock. While further parts are written ($3 > 0), at most once a
-- minute.
WITH used AS (
    SELECT credential_id, to_timestamp(max(last_us) / 1000000.0) AS at
    FROM unnest($1::uuid[], $2::bigint[]) AS batch (credential_id, last_us)
    GROUP BY credential_id
), locked AS (
    SELECT credential.id, used.at
    FROM partner.credential
    JOIN used ON used.credential_id = credential.id
    WHERE last_used_at IS NULL OR used.at > last_used_at + make_interval(mins => least($3::bigint, 1)::integer)
    ORDER BY credential.id
    FOR NO KEY UPDATE OF credential
)
UPDATE partner.credential SET last_used_at = greatest(last_used_at, locked.at)
FROM locked
WHERE credential.id = locked.id
