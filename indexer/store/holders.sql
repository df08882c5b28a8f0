-- Held quantities and the buckets of long lists, for assets and for policies: {holder} is the table holder or
-- policy_holder, {held_no} its column asset_no or policy_no.

-- name: move_holders
-- Net quantities as text; no row stays at 0.
MERGE INTO {holder} USING (
    SELECT {held_no}, address_no, quantity::numeric
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved ({held_no}, address_no, quantity)
) moved ON {holder}.{held_no} = moved.{held_no} AND {holder}.address_no = moved.address_no
WHEN MATCHED AND {holder}.quantity + moved.quantity = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET quantity = {holder}.quantity + moved.quantity
WHEN NOT MATCHED THEN INSERT ({held_no}, address_no, quantity)
    VALUES (moved.{held_no}, moved.address_no, moved.quantity)

-- name: moved_of_policies
-- The moves of assets, summed by policy.
SELECT policy_no, address_no, sum(quantity::numeric)::text AS quantity
FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_no, address_no, quantity) JOIN asset USING (asset_no)
GROUP BY policy_no, address_no
HAVING sum(quantity::numeric) <> 0

-- name: move_holder_buckets
-- Runs after move_holders, with the same moves. The count of a bucket changes by one for each holder that leaves or enters it.
-- If that holder opens a bucket, the buckets around it are counted again: a scan of some thousand rows. A list that has
-- become long gets buckets, one that has become short loses them. Short lists cost two probes each.
WITH moved AS MATERIALIZED (
    -- NOTE: ctid is for the planner. Without it the index by quantity covers the query, looks cheaper than the primary
    -- key, and is scanned through the whole list.
    SELECT m.{held_no}, m.address_no, opens_bucket(m.address_no) AS opens, h.ctid,
           h.quantity AS after, coalesce(h.quantity, 0) - m.quantity::numeric AS before
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS m ({held_no}, address_no, quantity)
    LEFT JOIN {holder} h ON h.{held_no} = m.{held_no} AND h.address_no = m.address_no
), list AS MATERIALIZED (
    SELECT {held_no},
           (SELECT count(*) FROM (
               SELECT FROM {holder} h WHERE h.{held_no} = m.{held_no} AND opens_bucket(h.address_no) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM {holder}_bucket b WHERE b.{held_no} = m.{held_no}) AS counted,
           opens
    FROM (SELECT {held_no}, bool_or(opens) AS opens FROM moved GROUP BY {held_no}) m
), gone AS (
    DELETE FROM {holder}_bucket b USING moved m JOIN list USING ({held_no})
    WHERE b.{held_no} = m.{held_no} AND counted
      AND (NOT long OR (m.opens AND b.lowest_quantity = m.before AND b.lowest_address_no = m.address_no))
), place AS MATERIALIZED (
    SELECT {held_no}, place.quantity, m.address_no, m.opens, place.holders
    FROM moved m
    JOIN list USING ({held_no})
    CROSS JOIN LATERAL (VALUES (m.before, -1), (m.after, 1)) AS place (quantity, holders)
    WHERE long AND counted AND place.quantity > 0
), opening AS MATERIALIZED (
    SELECT {held_no}, opened.quantity, opened.address_no
    FROM place
    CROSS JOIN LATERAL (
        SELECT h.quantity, h.address_no FROM {holder} h
        WHERE h.{held_no} = place.{held_no} AND opens_bucket(h.address_no)
          AND (h.quantity, h.address_no) <= (place.quantity, place.address_no)
        ORDER BY h.quantity DESC, h.address_no DESC
        LIMIT 2
    ) opened
    WHERE opens
    UNION
    SELECT {held_no}, h.quantity, h.address_no
    FROM list JOIN {holder} h USING ({held_no})
    WHERE long AND NOT counted AND opens_bucket(h.address_no)
    UNION
    SELECT {held_no}, 0, 0 FROM list WHERE long AND (opens OR NOT counted)
), counted AS (
    UPDATE {holder}_bucket b SET holders = b.holders + moved.holders
    FROM (
        SELECT place.{held_no}, coalesce(opened.quantity, 0) AS quantity, coalesce(opened.address_no, 0) AS address_no,
               sum(place.holders) AS holders
        FROM place
        LEFT JOIN LATERAL (
            SELECT h.quantity, h.address_no FROM {holder} h
            WHERE h.{held_no} = place.{held_no} AND opens_bucket(h.address_no)
              AND (h.quantity, h.address_no) <= (place.quantity, place.address_no)
            ORDER BY h.quantity DESC, h.address_no DESC
            LIMIT 1
        ) opened ON true
        WHERE NOT opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE b.{held_no} = moved.{held_no} AND b.lowest_quantity = moved.quantity AND b.lowest_address_no = moved.address_no
      AND moved.holders <> 0
      AND (moved.{held_no}, moved.quantity, moved.address_no) NOT IN (SELECT {held_no}, quantity, address_no FROM opening)
)
INSERT INTO {holder}_bucket ({held_no}, lowest_quantity, lowest_address_no, holders)
SELECT {held_no}, opening.quantity, opening.address_no, (
    SELECT count(*) FROM {holder} h
    WHERE h.{held_no} = opening.{held_no} AND (h.quantity, h.address_no) >= (opening.quantity, opening.address_no)
      AND (h.quantity, h.address_no) < (coalesce(next.quantity, 'Infinity'), coalesce(next.address_no, 0))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT h.quantity, h.address_no FROM {holder} h
    WHERE h.{held_no} = opening.{held_no} AND opens_bucket(h.address_no)
      AND (h.quantity, h.address_no) > (opening.quantity, opening.address_no)
    ORDER BY h.quantity, h.address_no
    LIMIT 1
) next ON true
ON CONFLICT ({held_no}, lowest_quantity, lowest_address_no) DO UPDATE SET holders = excluded.holders

-- name: fill_holder_buckets
-- Count the buckets of all lists at once.
WITH list AS (
    SELECT {held_no} FROM {holder} WHERE opens_bucket(address_no) GROUP BY {held_no} HAVING count(*) >= 4
), numbered AS (
    SELECT {held_no}, quantity, address_no,
           row_number() OVER (PARTITION BY {held_no} ORDER BY quantity, address_no) AS place
    FROM {holder} JOIN list USING ({held_no})
), opening AS (
    SELECT {held_no}, quantity, address_no, place FROM numbered WHERE opens_bucket(address_no)
    UNION ALL
    SELECT {held_no}, 0, 0, 1 FROM list
), ending AS (
    SELECT {held_no}, max(place) + 1 AS place FROM numbered GROUP BY {held_no}
)
INSERT INTO {holder}_bucket ({held_no}, lowest_quantity, lowest_address_no, holders)
SELECT {held_no}, quantity, address_no,
       coalesce(lead(opening.place) OVER in_order, ending.place) - opening.place
FROM opening JOIN ending USING ({held_no})
WINDOW in_order AS (PARTITION BY {held_no} ORDER BY quantity, address_no)

