-- name: published
-- For the pools $2 of network $1, with hashes $3 and URLs $4, in that order: the document with the hash, whichever URL
-- gave it, or why the URL gives none. Cost: three look-ups for each.
SELECT EXISTS (SELECT FROM partner.delisted_pool WHERE delisted_pool.pool_id = asked.pool_id) AS is_delisted,
       fetched.content, fetched.tried_at AS fetched_at, own.failure_code, own.failure
FROM unnest($2::bytea[], $3::bytea[], $4::bytea[]) WITH ORDINALITY AS asked (pool_id, hash, url, place)
LEFT JOIN partner.pool_metadata own ON own.network_id = $1 AND own.hash = asked.hash AND own.url = asked.url
LEFT JOIN LATERAL (
    SELECT content, tried_at FROM partner.pool_metadata same
    WHERE same.network_id = $1 AND same.hash = asked.hash AND same.content IS NOT NULL
    ORDER BY url LIMIT 1
) fetched ON true
ORDER BY asked.place
