-- What pools publish of themselves. Only the first statement reads a chain.

-- name: registrations
-- The latest registration of each pool, newest first, at most $1. Reads all pools, with a look-up each: there are a few
-- thousand. No row unless the network is served.
SELECT pool.pool_id, latest.parameters
FROM pool
CROSS JOIN LATERAL (
    SELECT tx_id, place, parameters FROM pool_update WHERE pool_update.pool_no = pool.pool_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
WHERE EXISTS (SELECT FROM tip WHERE phase = 'live')
ORDER BY latest.tx_id DESC, latest.place DESC
LIMIT $1

-- name: take_turn
-- A row if nobody has taken a turn for $1 seconds.
INSERT INTO partner.pool_metadata_turn AS last (taken_at) VALUES (now())
ON CONFLICT (one) DO UPDATE SET taken_at = now() WHERE last.taken_at <= now() - make_interval(secs => $1)
RETURNING true AS ours

-- name: relist
-- Delist no pools but $1.
DELETE FROM partner.delisted_pool WHERE pool_id <> ALL ($1::bytea[])

-- name: delist
-- Delist the pools $1.
INSERT INTO partner.delisted_pool (pool_id) SELECT unnest($1::bytea[]) ON CONFLICT DO NOTHING

-- name: delisted
SELECT pool_id FROM partner.delisted_pool

-- name: add
-- Rows for hashes $2 and URLs $3 of network $1 that have none, to be fetched at once.
INSERT INTO partner.pool_metadata (network_id, hash, url, try_at)
SELECT $1, hash, url, now() FROM unnest($2::bytea[], $3::bytea[]) AS found (hash, url)
WHERE NOT EXISTS (
    SELECT FROM partner.pool_metadata present
    WHERE present.network_id = $1 AND present.hash = found.hash AND present.url = found.url
)
ON CONFLICT DO NOTHING

-- name: return
-- Rows that are registered again, such as after a rollback.
UPDATE partner.pool_metadata AS present SET replaced_at = NULL
FROM unnest($2::bytea[], $3::bytea[]) AS found (hash, url)
WHERE present.network_id = $1 AND present.hash = found.hash AND present.url = found.url
  AND present.replaced_at IS NOT NULL

-- name: replace
-- Mark the rows of network $1 that no pool's latest registration has.
UPDATE partner.pool_metadata AS present SET replaced_at = now()
WHERE network_id = $1 AND replaced_at IS NULL AND NOT EXISTS (
    SELECT FROM unnest($2::bytea[], $3::bytea[]) AS found (hash, url)
    WHERE found.hash = present.hash AND found.url = present.url
)

-- name: drop_replaced
-- Delete what was replaced 30 days ago, or before the last $2 of network $1.
DELETE FROM partner.pool_metadata
WHERE network_id = $1 AND replaced_at IS NOT NULL AND (
    replaced_at < now() - interval '30 days'
    OR replaced_at < (
        SELECT replaced_at FROM partner.pool_metadata
        WHERE network_id = $1 AND replaced_at IS NOT NULL ORDER BY replaced_at DESC LIMIT 1 OFFSET $2 - 1
    )
)

-- name: claim
-- At most $1 rows that are due, longest due first. No other process claims them for $2 seconds.
WITH due AS (
    SELECT network_id, hash, url FROM partner.pool_metadata
    WHERE try_at <= now() AND replaced_at IS NULL
    ORDER BY try_at LIMIT $1
    FOR UPDATE SKIP LOCKED
)
UPDATE partner.pool_metadata AS claimed SET try_at = now() + make_interval(secs => $2)
FROM due
WHERE claimed.network_id = due.network_id AND claimed.hash = due.hash AND claimed.url = due.url
RETURNING claimed.network_id, claimed.hash, claimed.url, claimed.attempts

-- name: keep_content
-- The document $4 of a row, as the URL $5 gave it. It is not fetched again.
UPDATE partner.pool_metadata
SET content = $4, source = $5, tried_at = now(), attempts = attempts + 1, try_at = NULL, failure_code = NULL,
    failure = NULL
WHERE network_id = $1 AND hash = $2 AND url = $3

-- name: keep_failure
-- Why there is no document of a row: code $4 and reason $5. It is tried again after $6 seconds, never if that is null.
UPDATE partner.pool_metadata
SET failure_code = $4, failure = $5, tried_at = now(), attempts = attempts + 1,
    try_at = now() + make_interval(secs => $6)
WHERE network_id = $1 AND hash = $2 AND url = $3
