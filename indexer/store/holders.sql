-- Held quantities and the buckets of long lists: {holder} is the table, {held_no} its column asset_no or policy_no,
-- {owner_no} its column address_no or account_no.

-- name: move_holders
-- Move the quantities ($3, as text) of assets $1 at addresses or accounts $2, one for each pair, and the same by policy; no row
-- stays at 0. Returns the moves in lists that have buckets, and in lists that may get some now, since an address or account
-- that opens a bucket is among the moves; each with the quantity after it.
--
-- NOTE: each row is found as the first one in a range of the primary key that contains only this row. If the columns were
-- compared for equality, the planner might prefer the index by quantity, and read the whole list of an asset for each of its
-- holders.
WITH moved AS MATERIALIZED (
    SELECT asset_no, policy_no, {owner_no}, quantity::numeric AS quantity
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_no, {owner_no}, quantity) JOIN asset USING (asset_no)
), of_assets AS MATERIALIZED (
    SELECT asset_no, {owner_no}, moved.quantity AS moved, h.ctid AS row_ctid, coalesce(h.quantity, 0) + moved.quantity AS quantity
    FROM moved
    LEFT JOIN LATERAL (
        SELECT h.ctid, h.quantity FROM {holder} h
        WHERE (h.{owner_no}, h.asset_no) BETWEEN (moved.{owner_no}, moved.asset_no) AND (moved.{owner_no}, moved.asset_no)
        ORDER BY h.{owner_no}, h.asset_no LIMIT 1
    ) h ON true
), of_policies AS MATERIALIZED (
    SELECT policy_no, {owner_no}, moved.quantity AS moved, h.ctid AS row_ctid, coalesce(h.quantity, 0) + moved.quantity AS quantity
    FROM (SELECT policy_no, {owner_no}, sum(quantity) AS quantity FROM moved GROUP BY policy_no, {owner_no}) moved
    LEFT JOIN LATERAL (
        SELECT h.ctid, h.quantity FROM policy_{holder} h
        WHERE (h.policy_no, h.{owner_no}) BETWEEN (moved.policy_no, moved.{owner_no}) AND (moved.policy_no, moved.{owner_no})
        ORDER BY h.policy_no, h.{owner_no} LIMIT 1
    ) h ON true
    WHERE moved.quantity <> 0
), removed AS (
    DELETE FROM {holder} h USING of_assets m WHERE h.ctid = m.row_ctid AND m.quantity = 0
), changed AS (
    UPDATE {holder} h SET quantity = m.quantity FROM of_assets m WHERE h.ctid = m.row_ctid AND m.quantity <> 0
), added AS (
    INSERT INTO {holder} (asset_no, {owner_no}, quantity) SELECT asset_no, {owner_no}, quantity FROM of_assets WHERE row_ctid IS NULL
), removed_of_policies AS (
    DELETE FROM policy_{holder} h USING of_policies m WHERE h.ctid = m.row_ctid AND m.quantity = 0
), changed_of_policies AS (
    UPDATE policy_{holder} h SET quantity = m.quantity FROM of_policies m WHERE h.ctid = m.row_ctid AND m.quantity <> 0
), added_of_policies AS (
    INSERT INTO policy_{holder} (policy_no, {owner_no}, quantity)
    SELECT policy_no, {owner_no}, quantity FROM of_policies WHERE row_ctid IS NULL
)
SELECT false AS of_policy, asset_no AS held_no, {owner_no} AS owner, moved::text AS quantity, quantity::text AS after
FROM of_assets m
WHERE asset_no IN (SELECT asset_no FROM of_assets WHERE opens_bucket({owner_no}))
   OR EXISTS (SELECT FROM {holder}_bucket b WHERE b.asset_no = m.asset_no)
UNION ALL
SELECT true, policy_no, {owner_no}, moved::text, quantity::text
FROM of_policies m
WHERE policy_no IN (SELECT policy_no FROM of_policies WHERE opens_bucket({owner_no}))
   OR EXISTS (SELECT FROM policy_{holder}_bucket b WHERE b.policy_no = m.policy_no)

-- name: move_holder_buckets
-- Runs after move_holders, with the moves that it returns. The count of a bucket changes by one for each holder that
-- leaves or enters it. If that holder opens a bucket, the buckets around it are counted again: a scan of some thousand
-- rows. A list that has become long gets buckets; one that has become short loses them.
WITH moved AS MATERIALIZED (
    SELECT {held_no}, {owner_no}, opens_bucket({owner_no}) AS opens, after::numeric AS after,
           after::numeric - quantity::numeric AS before
    FROM unnest($1::integer[], $2::integer[], $3::text[], $4::text[]) AS m ({held_no}, {owner_no}, quantity, after)
), list AS MATERIALIZED (
    SELECT {held_no},
           (SELECT count(*) FROM (
               SELECT FROM {holder} h WHERE h.{held_no} = m.{held_no} AND opens_bucket(h.{owner_no}) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM {holder}_bucket b WHERE b.{held_no} = m.{held_no}) AS counted,
           opens
    FROM (SELECT {held_no}, bool_or(opens) AS opens FROM moved GROUP BY {held_no}) m
), removed AS (
    DELETE FROM {holder}_bucket b USING moved m JOIN list USING ({held_no})
    WHERE b.{held_no} = m.{held_no} AND counted
      AND (NOT long OR m.opens) -- a separate condition, which filters `moved` before it is joined with all buckets
      AND (NOT long OR (b.lowest_quantity = m.before AND b.lowest_{owner_no} = m.{owner_no}))
), place AS MATERIALIZED (
    SELECT {held_no}, place.quantity, m.{owner_no}, m.opens, place.holders
    FROM moved m
    JOIN list USING ({held_no})
    CROSS JOIN LATERAL (VALUES (m.before, -1), (m.after, 1)) AS place (quantity, holders)
    WHERE long AND counted AND place.quantity > 0
), opening AS MATERIALIZED (
    SELECT {held_no}, opened.quantity, opened.{owner_no}
    FROM place
    CROSS JOIN LATERAL (
        SELECT h.quantity, h.{owner_no} FROM {holder} h
        WHERE h.{held_no} = place.{held_no} AND opens_bucket(h.{owner_no})
          AND (h.quantity, h.{owner_no}) <= (place.quantity, place.{owner_no})
        ORDER BY h.quantity DESC, h.{owner_no} DESC
        LIMIT 2
    ) opened
    WHERE opens
    UNION
    SELECT {held_no}, h.quantity, h.{owner_no}
    FROM list JOIN {holder} h USING ({held_no})
    WHERE long AND NOT counted AND opens_bucket(h.{owner_no})
    UNION
    SELECT {held_no}, 0, 0 FROM list WHERE long AND (opens OR NOT counted)
), counted AS (
    UPDATE {holder}_bucket b SET holders = b.holders + moved.holders
    FROM (
        SELECT place.{held_no}, coalesce(opened.quantity, 0) AS quantity, coalesce(opened.{owner_no}, 0) AS {owner_no},
               sum(place.holders) AS holders
        FROM place
        LEFT JOIN LATERAL (
            SELECT h.quantity, h.{owner_no} FROM {holder} h
            WHERE h.{held_no} = place.{held_no} AND opens_bucket(h.{owner_no})
              AND (h.quantity, h.{owner_no}) <= (place.quantity, place.{owner_no})
            ORDER BY h.quantity DESC, h.{owner_no} DESC
            LIMIT 1
        ) opened ON true
        WHERE NOT opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE b.{held_no} = moved.{held_no} AND b.lowest_quantity = moved.quantity AND b.lowest_{owner_no} = moved.{owner_no}
      AND moved.holders <> 0
      AND (moved.{held_no}, moved.quantity, moved.{owner_no}) NOT IN (SELECT {held_no}, quantity, {owner_no} FROM opening)
)
INSERT INTO {holder}_bucket ({held_no}, lowest_quantity, lowest_{owner_no}, holders)
SELECT {held_no}, opening.quantity, opening.{owner_no}, (
    SELECT count(*) FROM {holder} h
    WHERE h.{held_no} = opening.{held_no} AND (h.quantity, h.{owner_no}) >= (opening.quantity, opening.{owner_no})
      AND (h.quantity, h.{owner_no}) < (coalesce(next.quantity, 'Infinity'), coalesce(next.{owner_no}, 0))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT h.quantity, h.{owner_no} FROM {holder} h
    WHERE h.{held_no} = opening.{held_no} AND opens_bucket(h.{owner_no})
      AND (h.quantity, h.{owner_no}) > (opening.quantity, opening.{owner_no})
    ORDER BY h.quantity, h.{owner_no}
    LIMIT 1
) next ON true
ON CONFLICT ({held_no}, lowest_quantity, lowest_{owner_no}) DO UPDATE SET holders = excluded.holders

-- name: fill_holder_buckets
-- Count the buckets of all lists at once.
WITH list AS (
    SELECT {held_no} FROM {holder} WHERE opens_bucket({owner_no}) GROUP BY {held_no} HAVING count(*) >= 4
), numbered AS (
    SELECT {held_no}, quantity, {owner_no},
           row_number() OVER (PARTITION BY {held_no} ORDER BY quantity, {owner_no}) AS place
    FROM {holder} JOIN list USING ({held_no})
), opening AS (
    SELECT {held_no}, quantity, {owner_no}, place FROM numbered WHERE opens_bucket({owner_no})
    UNION ALL
    SELECT {held_no}, 0, 0, 1 FROM list
), ending AS (
    SELECT {held_no}, max(place) + 1 AS place FROM numbered GROUP BY {held_no}
)
INSERT INTO {holder}_bucket ({held_no}, lowest_quantity, lowest_{owner_no}, holders)
SELECT {held_no}, quantity, {owner_no},
       coalesce(lead(opening.place) OVER in_order, ending.place) - opening.place
FROM opening JOIN ending USING ({held_no})
WINDOW in_order AS (PARTITION BY {held_no} ORDER BY quantity, {owner_no})

