-- What exists of assets, how many each policy has, and the buckets of its list: by supply, greatest first, then by name.

-- name: move_supplies
-- A first transaction, once there, stays until a rollback takes it; where one is given there was none.
WITH moved AS (
    SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[])
        AS moved (asset_id, quantity, mints, burns, first_tx_id, first_mint_tx_id)
), changed AS (
    UPDATE asset SET
        supply = asset.supply + moved.quantity::numeric,
        mint_count = asset.mint_count + moved.mints,
        burn_count = asset.burn_count + moved.burns,
        first_tx_id = coalesce(asset.first_tx_id, moved.first_tx_id),
        first_mint_tx_id = coalesce(asset.first_mint_tx_id, moved.first_mint_tx_id)
    FROM moved
    WHERE asset.asset_id = moved.asset_id
    RETURNING policy_id, moved.first_tx_id
), born AS (
    SELECT policy_id, count(*) AS assets FROM changed WHERE first_tx_id IS NOT NULL GROUP BY policy_id
)
UPDATE policy SET asset_count = asset_count + born.assets FROM born WHERE policy.policy_id = born.policy_id

-- name: forget_firsts
-- After a rollback to before $2, of the assets that it touched: those without any transaction left exist no more.
WITH forgotten AS (
    UPDATE asset SET
        first_tx_id = CASE WHEN first_tx_id < $2 THEN first_tx_id END,
        first_mint_tx_id = CASE WHEN first_mint_tx_id < $2 THEN first_mint_tx_id END
    WHERE asset_id = ANY ($1::integer[]) AND (first_tx_id >= $2 OR first_mint_tx_id >= $2)
    RETURNING policy_id, first_tx_id
), gone AS (
    SELECT policy_id, count(*) AS assets FROM forgotten WHERE first_tx_id IS NULL GROUP BY policy_id
)
UPDATE policy SET asset_count = asset_count - gone.assets FROM gone WHERE policy.policy_id = gone.policy_id

-- name: move_asset_buckets
-- After supplies moved by $2, and of assets $3 is true for those that did not exist before: every bucket that an asset left or
-- entered is counted anew, a walk of some thousand rows each, and so are all of a list that has become long enough. One
-- that no longer is has none. Short lists cost two probes each.
WITH moved AS MATERIALIZED (
    SELECT asset_id, policy_id, name, CASE WHEN NOT born THEN supply - moved.quantity::numeric END AS before,
           CASE WHEN first_tx_id IS NOT NULL THEN supply END AS after
    FROM unnest($1::integer[], $2::text[], $3::boolean[]) AS moved (asset_id, quantity, born) JOIN asset USING (asset_id)
), list AS MATERIALIZED (
    SELECT policy_id,
           (SELECT count(*) FROM (
               SELECT FROM asset a
               WHERE a.policy_id = m.policy_id AND first_tx_id IS NOT NULL AND opens_bucket(a.asset_id) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM asset_bucket b WHERE b.policy_id = m.policy_id) AS counted
    FROM (SELECT DISTINCT policy_id FROM moved WHERE before IS DISTINCT FROM after) m
), gone AS (
    DELETE FROM asset_bucket b USING list
    WHERE b.policy_id = list.policy_id AND counted
      AND (NOT long OR (b.policy_id, b.rank, b.name) IN (
          SELECT policy_id, -before, name FROM moved WHERE before IS DISTINCT FROM after
      ))
), opening AS MATERIALIZED (
    -- An asset that opens a bucket has ended the one before it.
    SELECT policy_id, opened.rank, opened.name
    FROM moved
    JOIN list USING (policy_id)
    CROSS JOIN LATERAL (VALUES (before), (after)) AS place (supply)
    CROSS JOIN LATERAL (
        SELECT -a.supply AS rank, a.name FROM asset a
        WHERE a.policy_id = moved.policy_id AND first_tx_id IS NOT NULL AND opens_bucket(a.asset_id)
          AND (-a.supply, a.name) <= (-place.supply, moved.name)
        ORDER BY -a.supply DESC, a.name DESC
        LIMIT 1 + opens_bucket(moved.asset_id)::integer
    ) opened
    WHERE long AND counted AND before IS DISTINCT FROM after
    UNION
    SELECT policy_id, -supply, name
    FROM list JOIN asset USING (policy_id)
    WHERE long AND NOT counted AND first_tx_id IS NOT NULL AND opens_bucket(asset_id)
    UNION
    SELECT policy_id, '-Infinity', '' FROM list WHERE long
)
INSERT INTO asset_bucket (policy_id, rank, name, assets)
SELECT policy_id, opening.rank, opening.name, (
    SELECT count(*) FROM asset a
    WHERE a.policy_id = opening.policy_id AND first_tx_id IS NOT NULL
      AND (-a.supply, a.name) >= (opening.rank, opening.name)
      AND (-a.supply, a.name) < (coalesce(next.rank, 'Infinity'), coalesce(next.name, ''))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT -a.supply AS rank, a.name FROM asset a
    WHERE a.policy_id = opening.policy_id AND a.first_tx_id IS NOT NULL AND opens_bucket(a.asset_id)
      AND (-a.supply, a.name) > (opening.rank, opening.name)
    ORDER BY -a.supply, a.name
    LIMIT 1
) next ON true
ON CONFLICT (policy_id, rank, name) DO UPDATE SET assets = excluded.assets

-- name: count_assets
UPDATE policy SET asset_count = found.assets
FROM (SELECT policy_id, count(first_tx_id) AS assets FROM asset GROUP BY policy_id) found
WHERE policy.policy_id = found.policy_id AND policy.asset_count <> found.assets

-- name: fill_asset_buckets
-- The buckets of all lists at once.
WITH list AS (
    SELECT policy_id FROM asset WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_id)
    GROUP BY policy_id HAVING count(*) >= 4
), numbered AS (
    SELECT policy_id, asset_id, -supply AS rank, name, count(*) FILTER (WHERE opens_bucket(asset_id)) OVER (
        PARTITION BY policy_id ORDER BY -supply, name
    ) AS bucket
    FROM asset JOIN list USING (policy_id)
    WHERE first_tx_id IS NOT NULL
), counted AS (
    SELECT policy_id, bucket, count(*) AS assets FROM numbered GROUP BY policy_id, bucket
)
INSERT INTO asset_bucket (policy_id, rank, name, assets)
SELECT policy_id, coalesce(rank, '-Infinity'), coalesce(name, ''), assets
FROM counted LEFT JOIN (SELECT * FROM numbered WHERE opens_bucket(asset_id)) opening USING (policy_id, bucket)
