-- Supplies of assets, the number of assets of each policy, and the places in its list (by supply, greatest first, then
-- name).

-- name: move_supplies
-- An asset keeps its first transaction and its first mint until a rollback removes them.
WITH moved AS (
    SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[])
        AS moved (asset_no, quantity, mints, burns, first_tx_id, first_mint_tx_id)
), changed AS (
    UPDATE asset SET
        supply = asset.supply + moved.quantity::numeric,
        mint_count = asset.mint_count + moved.mints,
        burn_count = asset.burn_count + moved.burns,
        first_tx_id = coalesce(asset.first_tx_id, moved.first_tx_id),
        first_mint_tx_id = coalesce(asset.first_mint_tx_id, moved.first_mint_tx_id)
    FROM moved
    WHERE asset.asset_no = moved.asset_no
    RETURNING policy_no, moved.first_tx_id
), added AS (
    SELECT policy_no, count(*) AS assets FROM changed WHERE first_tx_id IS NOT NULL GROUP BY policy_no
)
UPDATE policy SET asset_count = asset_count + added.assets FROM added WHERE policy.policy_no = added.policy_no

-- name: undo_supplies
-- Move the supplies of assets $1, which are all that a rollback to before $5 touches. Assets without a transaction left
-- cease to exist. Returns the assets that changed, and whether they were first minted there.
WITH undone AS (
    SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[])
        AS undone (asset_no, quantity, mints, burns)
), changed AS (
    UPDATE asset SET
        supply = asset.supply + undone.quantity::numeric,
        mint_count = asset.mint_count + undone.mints,
        burn_count = asset.burn_count + undone.burns,
        first_tx_id = CASE WHEN asset.first_tx_id < $5 THEN asset.first_tx_id END,
        first_mint_tx_id = CASE WHEN asset.first_mint_tx_id < $5 THEN asset.first_mint_tx_id END
    FROM undone
    WHERE asset.asset_no = undone.asset_no AND (undone.mints <> 0 OR undone.burns <> 0 OR asset.first_tx_id >= $5)
    RETURNING asset.asset_no, policy_no, asset.first_tx_id,
              undone.mints < 0 AND asset.first_mint_tx_id IS NULL AS is_unminted
), removed AS (
    SELECT policy_no, count(*) AS assets FROM changed WHERE first_tx_id IS NULL GROUP BY policy_no
), smaller AS (
    UPDATE policy SET asset_count = asset_count - removed.assets FROM removed WHERE policy.policy_no = removed.policy_no
)
SELECT asset_no, is_unminted FROM changed

-- name: list_minted
-- Add the assets $1, whose first mints are in the transactions $2, to the list of minted ones.
WITH listed AS (
    SELECT (chunk << 6) + cardinality(asset_nos) AS assets FROM minted_asset ORDER BY chunk DESC LIMIT 1
), added AS (
    SELECT asset_no,
           coalesce((SELECT assets FROM listed), 0) - 1 + row_number() OVER (ORDER BY tx_id, policy_id, name) AS seq
    FROM unnest($1::integer[], $2::bigint[]) AS minted (asset_no, tx_id)
    JOIN asset USING (asset_no)
    JOIN policy USING (policy_no)
)
INSERT INTO minted_asset (chunk, asset_nos)
SELECT seq >> 6, array_agg(asset_no ORDER BY seq) FROM added GROUP BY 1
ON CONFLICT (chunk) DO UPDATE SET asset_nos = minted_asset.asset_nos || excluded.asset_nos

-- name: cut_minted
-- Take the last $1 assets off that list.
WITH kept AS (
    SELECT (chunk << 6) + cardinality(asset_nos) - $1::integer AS assets
    FROM minted_asset ORDER BY chunk DESC LIMIT 1
), removed AS (
    DELETE FROM minted_asset USING kept WHERE chunk > assets - 1 >> 6
)
UPDATE minted_asset SET asset_nos = asset_nos[:assets - (chunk << 6)] FROM kept WHERE chunk = assets - 1 >> 6

-- name: fill_minted
INSERT INTO minted_asset (chunk, asset_nos)
SELECT seq >> 6, array_agg(asset_no ORDER BY seq)
FROM (
    SELECT asset_no, row_number() OVER (ORDER BY first_mint_tx_id, policy_id, name) - 1 AS seq
    FROM asset JOIN policy USING (policy_no)
    WHERE first_mint_tx_id IS NOT NULL
) minted
GROUP BY 1
ORDER BY 1

-- name: listed
-- The rows of all lists of a policy's assets: those that exist.
SELECT policy_no AS list_no, -supply AS rank, name AS tie, opens_bucket(asset_no) AS opens FROM asset
WHERE first_tx_id IS NOT NULL

-- name: places
-- The places in lists that assets $1 have left or entered. Their supplies have moved by $2; $3 is true for those that
-- did not exist before.
SELECT policy_no AS list_no, place.rank, name AS tie, opens_bucket(asset_no) AS opens, assets
FROM (
    SELECT asset_no, policy_no, name, -(CASE WHEN NOT is_new THEN supply - moved.quantity::numeric END) AS before,
           CASE WHEN first_tx_id IS NOT NULL THEN -supply END AS after
    FROM unnest($1::integer[], $2::text[], $3::boolean[]) AS moved (asset_no, quantity, is_new)
    JOIN asset USING (asset_no)
) ranked
CROSS JOIN LATERAL (VALUES (before, -1), (after, 1)) AS place (rank, assets)
WHERE before IS DISTINCT FROM after AND place.rank IS NOT NULL

-- name: count_assets
UPDATE policy SET asset_count = found.assets
FROM (SELECT policy_no, count(first_tx_id) AS assets FROM asset GROUP BY policy_no) found
WHERE policy.policy_no = found.policy_no AND policy.asset_count <> found.assets
