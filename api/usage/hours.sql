-- What is added to the usage by hour.

-- name: part
-- The part of the usage tables that takes what is added now: 0 or, while a session holds a snapshot that is older than
-- $1 seconds, a further one, the same for $2 calls.
SELECT CASE WHEN EXISTS (SELECT FROM partner.held_snapshot WHERE held_s > $1::float8)
            THEN nextval('partner.usage_part') / $2 + 1 ELSE 0 END AS part

-- name: name_endpoints
-- Number the endpoints that have none yet.
INSERT INTO partner.endpoint (name)
SELECT name FROM unnest($1::text[]) AS batch (name)
WHERE NOT EXISTS (SELECT FROM partner.endpoint WHERE endpoint.name = batch.name)
ORDER BY name
ON CONFLICT (name) DO NOTHING

-- name: add
-- In order of the key, so that two commits never deadlock. A credential that does not exist (a damaged record with a
-- correct checksum) is left out. Each histogram of durations is the text of an array.
INSERT INTO partner.usage_hour AS kept
    (part, credential_id, hour, endpoint_no, status_class, requests, took_us, durations, events,
     stream_minutes)
SELECT $1, credential.id, to_timestamp(batch.hour * 3600), endpoint.endpoint_no, batch.status_class, batch.requests,
       batch.took_us, batch.durations::bigint[], batch.events, batch.stream_minutes
FROM unnest($2::uuid[], $3::bigint[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[],
            $10::bigint[])
     AS batch (credential_id, hour, endpoint, status_class, requests, took_us, durations, events, stream_minutes)
JOIN partner.credential ON credential.id = batch.credential_id
JOIN partner.endpoint ON endpoint.name = batch.endpoint
ORDER BY credential.id, batch.hour, endpoint.endpoint_no, batch.status_class
ON CONFLICT (credential_id, hour, endpoint_no, status_class, part) DO UPDATE
SET requests = kept.requests + excluded.requests,
    took_us = kept.took_us + excluded.took_us,
    durations = partner.durations_add(kept.durations, excluded.durations),
    events = kept.events + excluded.events,
    stream_minutes = kept.stream_minutes + excluded.stream_minutes
