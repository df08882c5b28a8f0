-- name: begin
INSERT INTO partner.usage_batch (spool, next_offset) VALUES ($1, 0) ON CONFLICT (spool) DO NOTHING

-- Note the batch of a spool from offset $2 to $3; no row where it was noted before, or is not the next one.
-- name: note
UPDATE partner.usage_batch SET next_offset = $3, added_at = now()
WHERE spool = $1 AND next_offset = $2
RETURNING next_offset

-- In order of the key, so that two batches never wait for each other. A credential that never was (a damaged record
-- with a right checksum) is left out.
-- name: add
INSERT INTO partner.usage AS kept (credential_id, minute, successful, failed, took_us)
SELECT credential.id, to_timestamp(batch.minute * 60), batch.successful, batch.failed, batch.took_us
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
     AS batch (credential_id, minute, successful, failed, took_us)
JOIN partner.credential ON credential.id = batch.credential_id
ORDER BY credential.id, batch.minute
ON CONFLICT (credential_id, minute) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us

-- The same by day.
-- name: add_days
INSERT INTO partner.usage_day AS kept (credential_id, day, successful, failed, took_us)
SELECT credential.id, (to_timestamp(batch.minute * 60) AT TIME ZONE 'UTC')::date,
       sum(batch.successful), sum(batch.failed), sum(batch.took_us)
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
     AS batch (credential_id, minute, successful, failed, took_us)
JOIN partner.credential ON credential.id = batch.credential_id
GROUP BY 1, 2
ORDER BY 1, 2
ON CONFLICT (credential_id, day) DO UPDATE
SET successful = kept.successful + excluded.successful,
    failed = kept.failed + excluded.failed,
    took_us = kept.took_us + excluded.took_us

-- Locked in order of the key, for the same reason.
-- name: touch
WITH locked AS (
    SELECT id FROM partner.credential WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
), used AS (
    SELECT credential_id, to_timestamp(max(last_us) / 1000000.0) AS at
    FROM unnest($1::uuid[], $2::bigint[]) AS batch (credential_id, last_us)
    GROUP BY credential_id
)
UPDATE partner.credential SET last_used_at = greatest(last_used_at, used.at)
FROM locked JOIN used ON used.credential_id = locked.id
WHERE credential.id = locked.id
