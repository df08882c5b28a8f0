-- The transactions of an asset between two places.

-- name: rank
-- How many transactions with an asset have a tx_id below $3, or all of them if it is null: a binary search for the last
-- chunk that begins below it, 15 probes for two million transactions. No row if the asset is unknown.
--   $1 policy  $2 name
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT asset_no, coalesce($3::bigint, 9223372036854775807) AS before
    FROM policy JOIN asset USING (policy_no) WHERE policy_id = $1 AND name = $2
), search AS (
    SELECT asset_no, before, 0 AS low, coalesce((
               SELECT chunk FROM asset_tx WHERE asset_tx.asset_no = asked.asset_no ORDER BY chunk DESC LIMIT 1
           ), 0) AS high
    FROM asked
    UNION ALL
    SELECT search.asset_no, before, CASE WHEN begins_at < before THEN middle ELSE low END,
           CASE WHEN begins_at < before THEN high ELSE middle - 1 END
    FROM search
    CROSS JOIN LATERAL (SELECT (low + high + 1) / 2 AS middle) half
    CROSS JOIN LATERAL (
        SELECT tx_id_at(entries, 0) AS begins_at FROM asset_tx
        WHERE asset_tx.asset_no = search.asset_no AND chunk = middle
    ) chunk
    WHERE low < high
)
SELECT (low << 6) + (
           SELECT count(*) FROM asset_tx_range(asset_no, low::bigint << 6, (low::bigint << 6) + 63) WHERE tx_id < before
       ) AS transactions
FROM search
WHERE low = high

-- name: listed
-- A page of all assets in the order of their first mints, oldest first: three chunks at most, and two look-ups for each
-- asset, at any offset; $1 limit, $2 offset, $3 whether the offset counts from the newest.
-- NOTE: LIMIT 1 makes the look-ups, as Postgres can't know that a page is short.
WITH listed AS MATERIALIZED (
    SELECT (chunk << 6) + cardinality(asset_nos) AS assets FROM minted_asset ORDER BY chunk DESC LIMIT 1
), page AS MATERIALIZED (
    SELECT CASE WHEN $3 THEN assets - $2::bigint - $1::bigint ELSE $2 END AS lowest FROM listed
)
SELECT policy.policy_id, asset.name, asset.supply::text AS supply
FROM page
CROSS JOIN LATERAL (
    SELECT (chunk::bigint << 6) + place - 1 AS seq, asset_no
    FROM minted_asset CROSS JOIN unnest(asset_nos) WITH ORDINALITY AS entry (asset_no, place)
    WHERE chunk BETWEEN greatest(lowest, 0) >> 6 AND lowest + $1 - 1 >> 6
) entry
CROSS JOIN LATERAL (SELECT * FROM asset WHERE asset.asset_no = entry.asset_no LIMIT 1) asset
CROSS JOIN LATERAL (SELECT * FROM policy WHERE policy.policy_no = asset.policy_no LIMIT 1) policy
WHERE seq BETWEEN lowest AND lowest + $1 - 1
ORDER BY seq

-- name: described
-- Of each asset of policies $1 with names $2, in their order: whether metadata of a mint name it (CIP-25), and the
-- present datum of its reference token, which has the name $3 or is null (CIP-68), as in `asset` of
-- api/chain/assets.sql. Cost: some six look-ups for each.
SELECT EXISTS (SELECT FROM mint WHERE mint.asset_no = asset.asset_no AND named) AS is_named, datum.body AS datum
FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS wanted (policy_id, name, reference_name, place)
LEFT JOIN LATERAL (SELECT policy_no FROM policy WHERE policy.policy_id = wanted.policy_id LIMIT 1) policy ON true
LEFT JOIN LATERAL (
    SELECT asset_no FROM asset WHERE asset.policy_no = policy.policy_no AND asset.name = wanted.name LIMIT 1
) asset ON true
LEFT JOIN LATERAL (
    SELECT r.datum_hash
    FROM asset reference JOIN reference_output r USING (asset_no)
    WHERE reference.policy_no = policy.policy_no AND reference.name = wanted.reference_name AND r.spent_tx_id IS NULL
    ORDER BY r.tx_id DESC, r.output_index DESC LIMIT 1
) held ON true
LEFT JOIN LATERAL (SELECT body FROM datum WHERE datum.hash = held.datum_hash LIMIT 1) datum ON true
ORDER BY place
