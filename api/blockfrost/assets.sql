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
