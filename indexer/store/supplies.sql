-- Supplies of assets, the number of assets of each policy, and the buckets of its list (by supply, greatest first, then name).

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
-- cease to exist. Returns the assets that changed.
WITH undone AS (
    SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[]) AS undone (asset_no, quantity, mints, burns)
), changed AS (
    UPDATE asset SET
        supply = asset.supply + undone.quantity::numeric,
        mint_count = asset.mint_count + undone.mints,
        burn_count = asset.burn_count + undone.burns,
        first_tx_id = CASE WHEN asset.first_tx_id < $5 THEN asset.first_tx_id END,
        first_mint_tx_id = CASE WHEN asset.first_mint_tx_id < $5 THEN asset.first_mint_tx_id END
    FROM undone
    WHERE asset.asset_no = undone.asset_no AND (undone.mints <> 0 OR undone.burns <> 0 OR asset.first_tx_id >= $5)
    RETURNING asset.asset_no, policy_no, asset.first_tx_id
), removed AS (
    SELECT policy_no, count(*) AS assets FROM changed WHERE first_tx_id IS NULL GROUP BY policy_no
), smaller AS (
    UPDATE policy SET asset_count = asset_count - removed.assets FROM removed WHERE policy.policy_no = removed.policy_no
)
SELECT asset_no FROM changed

-- name: move_asset_buckets
-- Runs after supplies have moved by $2; $3 is true for assets that did not exist before. As in holders.sql: the count
-- of a bucket changes by one for each asset that leaves or enters it. If that asset opens a bucket, the buckets around
-- it are counted again: a scan of some thousand rows. A list that has become long gets buckets; one that has become
-- short loses them.
WITH moved AS MATERIALIZED (
    SELECT policy_no, name, opens_bucket(asset_no) AS opens, before, after
    FROM (
        SELECT asset_no, policy_no, name, -(CASE WHEN NOT is_new THEN supply - moved.quantity::numeric END) AS before,
               CASE WHEN first_tx_id IS NOT NULL THEN -supply END AS after
        FROM unnest($1::integer[], $2::text[], $3::boolean[]) AS moved (asset_no, quantity, is_new) JOIN asset USING (asset_no)
    ) ranked
    WHERE before IS DISTINCT FROM after
), list AS MATERIALIZED (
    SELECT policy_no,
           (SELECT count(*) FROM (
               SELECT FROM asset a
               WHERE a.policy_no = m.policy_no AND first_tx_id IS NOT NULL AND opens_bucket(a.asset_no) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM asset_bucket b WHERE b.policy_no = m.policy_no) AS counted,
           opens
    FROM (SELECT policy_no, bool_or(opens) AS opens FROM moved GROUP BY policy_no) m
), removed AS (
    DELETE FROM asset_bucket b USING moved m JOIN list USING (policy_no)
    WHERE b.policy_no = m.policy_no AND counted
      AND (NOT long OR m.opens) -- a separate condition, which filters `moved` before it is joined with all buckets
      AND (NOT long OR (b.rank = m.before AND b.name = m.name))
), place AS MATERIALIZED (
    SELECT policy_no, place.rank, m.name, m.opens, place.assets
    FROM moved m JOIN list USING (policy_no) CROSS JOIN LATERAL (VALUES (m.before, -1), (m.after, 1)) AS place (rank, assets)
    WHERE long AND counted AND place.rank IS NOT NULL
), opening AS MATERIALIZED (
    SELECT policy_no, opened.rank, opened.name
    FROM place
    CROSS JOIN LATERAL (
        SELECT -a.supply AS rank, a.name FROM asset a
        WHERE a.policy_no = place.policy_no AND first_tx_id IS NOT NULL AND opens_bucket(a.asset_no)
          AND (-a.supply, a.name) <= (place.rank, place.name)
        ORDER BY -a.supply DESC, a.name DESC
        LIMIT 2
    ) opened
    WHERE opens
    UNION
    SELECT policy_no, -supply, name
    FROM list JOIN asset USING (policy_no)
    WHERE long AND NOT counted AND first_tx_id IS NOT NULL AND opens_bucket(asset_no)
    UNION
    SELECT policy_no, '-Infinity', '' FROM list WHERE long AND (opens OR NOT counted)
), counted AS (
    -- The first bucket of a list lacks its row if no asset was in it at the end of bulk.
    INSERT INTO asset_bucket AS b (policy_no, rank, name, assets)
    SELECT policy_no, rank, name, assets
    FROM (
        SELECT policy_no, coalesce(opened.rank, '-Infinity') AS rank, coalesce(opened.name, '') AS name,
               sum(place.assets) AS assets
        FROM place
        LEFT JOIN LATERAL (
            SELECT -a.supply AS rank, a.name FROM asset a
            WHERE a.policy_no = place.policy_no AND first_tx_id IS NOT NULL AND opens_bucket(a.asset_no)
              AND (-a.supply, a.name) <= (place.rank, place.name)
            ORDER BY -a.supply DESC, a.name DESC
            LIMIT 1
        ) opened ON true
        WHERE NOT opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE assets <> 0 AND (policy_no, rank, name) NOT IN (SELECT policy_no, rank, name FROM opening)
    ON CONFLICT (policy_no, rank, name) DO UPDATE SET assets = b.assets + excluded.assets
)
INSERT INTO asset_bucket (policy_no, rank, name, assets)
SELECT policy_no, opening.rank, opening.name, (
    SELECT count(*) FROM asset a
    WHERE a.policy_no = opening.policy_no AND first_tx_id IS NOT NULL
      AND (-a.supply, a.name) >= (opening.rank, opening.name)
      AND (-a.supply, a.name) < (coalesce(next.rank, 'Infinity'), coalesce(next.name, ''))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT -a.supply AS rank, a.name FROM asset a
    WHERE a.policy_no = opening.policy_no AND a.first_tx_id IS NOT NULL AND opens_bucket(a.asset_no)
      AND (-a.supply, a.name) > (opening.rank, opening.name)
    ORDER BY -a.supply, a.name
    LIMIT 1
) next ON true
ON CONFLICT (policy_no, rank, name) DO UPDATE SET assets = excluded.assets

-- name: count_assets
UPDATE policy SET asset_count = found.assets
FROM (SELECT policy_no, count(first_tx_id) AS assets FROM asset GROUP BY policy_no) found
WHERE policy.policy_no = found.policy_no AND policy.asset_count <> found.assets

-- name: fill_asset_buckets
-- Count the buckets of all lists at once.
WITH list AS (
    SELECT policy_no FROM asset WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_no)
    GROUP BY policy_no HAVING count(*) >= 4
), numbered AS (
    SELECT policy_no, asset_no, -supply AS rank, name, count(*) FILTER (WHERE opens_bucket(asset_no)) OVER (
        PARTITION BY policy_no ORDER BY -supply, name
    ) AS bucket
    FROM asset JOIN list USING (policy_no)
    WHERE first_tx_id IS NOT NULL
), counted AS (
    SELECT policy_no, bucket, count(*) AS assets FROM numbered GROUP BY policy_no, bucket
)
INSERT INTO asset_bucket (policy_no, rank, name, assets)
SELECT policy_no, coalesce(rank, '-Infinity'), coalesce(name, ''), assets
FROM counted LEFT JOIN (SELECT * FROM numbered WHERE opens_bucket(asset_no)) opening USING (policy_no, bucket)
