-- Held quantities and the buckets of long lists. The statements for assets and for policies are the same twice.

-- name: move_holders
-- Net quantities as text; no row stays at 0.
MERGE INTO holder USING (
    SELECT asset_id, address_id, quantity::numeric
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_id, address_id, quantity)
) moved ON holder.asset_id = moved.asset_id AND holder.address_id = moved.address_id
WHEN MATCHED AND holder.quantity + moved.quantity = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET quantity = holder.quantity + moved.quantity
WHEN NOT MATCHED THEN INSERT (asset_id, address_id, quantity)
    VALUES (moved.asset_id, moved.address_id, moved.quantity)

-- name: moved_of_policies
-- What moves of assets, added up by policy.
SELECT policy_id, address_id, sum(quantity::numeric)::text
FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_id, address_id, quantity) JOIN asset USING (asset_id)
GROUP BY policy_id, address_id
HAVING sum(quantity::numeric) <> 0

-- name: move_policy_holders
-- Net quantities as text; no row stays at 0.
MERGE INTO policy_holder USING (
    SELECT policy_id, address_id, quantity::numeric
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (policy_id, address_id, quantity)
) moved ON policy_holder.policy_id = moved.policy_id AND policy_holder.address_id = moved.address_id
WHEN MATCHED AND policy_holder.quantity + moved.quantity = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET quantity = policy_holder.quantity + moved.quantity
WHEN NOT MATCHED THEN INSERT (policy_id, address_id, quantity)
    VALUES (moved.policy_id, moved.address_id, moved.quantity)

-- name: move_holder_buckets
-- After move_holders with the same moves: buckets that holders left and entered count one less or more. Where one
-- that opens a bucket moved, those around it are counted anew: a walk of some thousand rows; and so are all of a
-- list that has become long enough. One that no longer is has none. Short lists cost two probes each.
WITH moved AS MATERIALIZED (
    -- NOTE: ctid is for the planner, who otherwise takes the index by quantity, which has all other columns, for cheaper
    -- than the primary key, and walks through all of a list.
    SELECT m.asset_id, m.address_id, opens_bucket(m.address_id) AS opens, h.ctid,
           h.quantity AS after, coalesce(h.quantity, 0) - m.quantity::numeric AS before
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS m (asset_id, address_id, quantity)
    LEFT JOIN holder h ON h.asset_id = m.asset_id AND h.address_id = m.address_id
), list AS MATERIALIZED (
    SELECT asset_id,
           (SELECT count(*) FROM (
               SELECT FROM holder h WHERE h.asset_id = m.asset_id AND opens_bucket(h.address_id) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM holder_bucket b WHERE b.asset_id = m.asset_id) AS counted,
           opens
    FROM (SELECT asset_id, bool_or(opens) AS opens FROM moved GROUP BY asset_id) m
), gone AS (
    DELETE FROM holder_bucket b USING moved m JOIN list USING (asset_id)
    WHERE b.asset_id = m.asset_id AND counted
      AND (NOT long OR (m.opens AND b.lowest_quantity = m.before AND b.lowest_address = m.address_id))
), place AS MATERIALIZED (
    SELECT asset_id, place.quantity, m.address_id, m.opens, place.holders
    FROM moved m
    JOIN list USING (asset_id)
    CROSS JOIN LATERAL (VALUES (m.before, -1), (m.after, 1)) AS place (quantity, holders)
    WHERE long AND counted AND place.quantity > 0
), opening AS MATERIALIZED (
    SELECT asset_id, opened.quantity, opened.address_id
    FROM place
    CROSS JOIN LATERAL (
        SELECT h.quantity, h.address_id FROM holder h
        WHERE h.asset_id = place.asset_id AND opens_bucket(h.address_id)
          AND (h.quantity, h.address_id) <= (place.quantity, place.address_id)
        ORDER BY h.quantity DESC, h.address_id DESC
        LIMIT 2
    ) opened
    WHERE opens
    UNION
    SELECT asset_id, h.quantity, h.address_id
    FROM list JOIN holder h USING (asset_id)
    WHERE long AND NOT counted AND opens_bucket(h.address_id)
    UNION
    SELECT asset_id, 0, 0 FROM list WHERE long AND (opens OR NOT counted)
), counted AS (
    UPDATE holder_bucket b SET holders = b.holders + moved.holders
    FROM (
        SELECT place.asset_id, coalesce(opened.quantity, 0) AS quantity, coalesce(opened.address_id, 0) AS address_id,
               sum(place.holders) AS holders
        FROM place
        LEFT JOIN LATERAL (
            SELECT h.quantity, h.address_id FROM holder h
            WHERE h.asset_id = place.asset_id AND opens_bucket(h.address_id)
              AND (h.quantity, h.address_id) <= (place.quantity, place.address_id)
            ORDER BY h.quantity DESC, h.address_id DESC
            LIMIT 1
        ) opened ON true
        WHERE NOT opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE b.asset_id = moved.asset_id AND b.lowest_quantity = moved.quantity AND b.lowest_address = moved.address_id
      AND moved.holders <> 0
      AND (moved.asset_id, moved.quantity, moved.address_id) NOT IN (SELECT asset_id, quantity, address_id FROM opening)
)
INSERT INTO holder_bucket (asset_id, lowest_quantity, lowest_address, holders)
SELECT asset_id, opening.quantity, opening.address_id, (
    SELECT count(*) FROM holder h
    WHERE h.asset_id = opening.asset_id AND (h.quantity, h.address_id) >= (opening.quantity, opening.address_id)
      AND (h.quantity, h.address_id) < (coalesce(next.quantity, 'Infinity'), coalesce(next.address_id, 0))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT h.quantity, h.address_id FROM holder h
    WHERE h.asset_id = opening.asset_id AND opens_bucket(h.address_id)
      AND (h.quantity, h.address_id) > (opening.quantity, opening.address_id)
    ORDER BY h.quantity, h.address_id
    LIMIT 1
) next ON true
ON CONFLICT (asset_id, lowest_quantity, lowest_address) DO UPDATE SET holders = excluded.holders

-- name: move_policy_holder_buckets
-- After move_policy_holders with the same moves: buckets that holders left and entered count one less or more. Where one
-- that opens a bucket moved, those around it are counted anew: a walk of some thousand rows; and so are all of a
-- list that has become long enough. One that no longer is has none. Short lists cost two probes each.
WITH moved AS MATERIALIZED (
    -- NOTE: ctid is for the planner, who otherwise takes the index by quantity, which has all other columns, for cheaper
    -- than the primary key, and walks through all of a list.
    SELECT m.policy_id, m.address_id, opens_bucket(m.address_id) AS opens, h.ctid,
           h.quantity AS after, coalesce(h.quantity, 0) - m.quantity::numeric AS before
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS m (policy_id, address_id, quantity)
    LEFT JOIN policy_holder h ON h.policy_id = m.policy_id AND h.address_id = m.address_id
), list AS MATERIALIZED (
    SELECT policy_id,
           (SELECT count(*) FROM (
               SELECT FROM policy_holder h WHERE h.policy_id = m.policy_id AND opens_bucket(h.address_id) LIMIT 4
           ) first) = 4 AS long,
           EXISTS (SELECT FROM policy_holder_bucket b WHERE b.policy_id = m.policy_id) AS counted,
           opens
    FROM (SELECT policy_id, bool_or(opens) AS opens FROM moved GROUP BY policy_id) m
), gone AS (
    DELETE FROM policy_holder_bucket b USING moved m JOIN list USING (policy_id)
    WHERE b.policy_id = m.policy_id AND counted
      AND (NOT long OR (m.opens AND b.lowest_quantity = m.before AND b.lowest_address = m.address_id))
), place AS MATERIALIZED (
    SELECT policy_id, place.quantity, m.address_id, m.opens, place.holders
    FROM moved m
    JOIN list USING (policy_id)
    CROSS JOIN LATERAL (VALUES (m.before, -1), (m.after, 1)) AS place (quantity, holders)
    WHERE long AND counted AND place.quantity > 0
), opening AS MATERIALIZED (
    SELECT policy_id, opened.quantity, opened.address_id
    FROM place
    CROSS JOIN LATERAL (
        SELECT h.quantity, h.address_id FROM policy_holder h
        WHERE h.policy_id = place.policy_id AND opens_bucket(h.address_id)
          AND (h.quantity, h.address_id) <= (place.quantity, place.address_id)
        ORDER BY h.quantity DESC, h.address_id DESC
        LIMIT 2
    ) opened
    WHERE opens
    UNION
    SELECT policy_id, h.quantity, h.address_id
    FROM list JOIN policy_holder h USING (policy_id)
    WHERE long AND NOT counted AND opens_bucket(h.address_id)
    UNION
    SELECT policy_id, 0, 0 FROM list WHERE long AND (opens OR NOT counted)
), counted AS (
    UPDATE policy_holder_bucket b SET holders = b.holders + moved.holders
    FROM (
        SELECT place.policy_id, coalesce(opened.quantity, 0) AS quantity, coalesce(opened.address_id, 0) AS address_id,
               sum(place.holders) AS holders
        FROM place
        LEFT JOIN LATERAL (
            SELECT h.quantity, h.address_id FROM policy_holder h
            WHERE h.policy_id = place.policy_id AND opens_bucket(h.address_id)
              AND (h.quantity, h.address_id) <= (place.quantity, place.address_id)
            ORDER BY h.quantity DESC, h.address_id DESC
            LIMIT 1
        ) opened ON true
        WHERE NOT opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE b.policy_id = moved.policy_id AND b.lowest_quantity = moved.quantity AND b.lowest_address = moved.address_id
      AND moved.holders <> 0
      AND (moved.policy_id, moved.quantity, moved.address_id) NOT IN (SELECT policy_id, quantity, address_id FROM opening)
)
INSERT INTO policy_holder_bucket (policy_id, lowest_quantity, lowest_address, holders)
SELECT policy_id, opening.quantity, opening.address_id, (
    SELECT count(*) FROM policy_holder h
    WHERE h.policy_id = opening.policy_id AND (h.quantity, h.address_id) >= (opening.quantity, opening.address_id)
      AND (h.quantity, h.address_id) < (coalesce(next.quantity, 'Infinity'), coalesce(next.address_id, 0))
)
FROM opening
LEFT JOIN LATERAL (
    SELECT h.quantity, h.address_id FROM policy_holder h
    WHERE h.policy_id = opening.policy_id AND opens_bucket(h.address_id)
      AND (h.quantity, h.address_id) > (opening.quantity, opening.address_id)
    ORDER BY h.quantity, h.address_id
    LIMIT 1
) next ON true
ON CONFLICT (policy_id, lowest_quantity, lowest_address) DO UPDATE SET holders = excluded.holders

-- name: fill_holder_buckets
-- The same for all lists at once.
WITH list AS (
    SELECT asset_id FROM holder WHERE opens_bucket(address_id) GROUP BY asset_id HAVING count(*) >= 4
), numbered AS (
    SELECT asset_id, quantity, address_id,
           row_number() OVER (PARTITION BY asset_id ORDER BY quantity, address_id) AS place
    FROM holder JOIN list USING (asset_id)
), opening AS (
    SELECT asset_id, quantity, address_id, place FROM numbered WHERE opens_bucket(address_id)
    UNION ALL
    SELECT asset_id, 0, 0, 1 FROM list
), ending AS (
    SELECT asset_id, max(place) + 1 AS place FROM numbered GROUP BY asset_id
)
INSERT INTO holder_bucket (asset_id, lowest_quantity, lowest_address, holders)
SELECT asset_id, quantity, address_id,
       coalesce(lead(opening.place) OVER in_order, ending.place) - opening.place
FROM opening JOIN ending USING (asset_id)
WINDOW in_order AS (PARTITION BY asset_id ORDER BY quantity, address_id)

-- name: fill_policy_holder_buckets
-- The same for all lists at once.
WITH list AS (
    SELECT policy_id FROM policy_holder WHERE opens_bucket(address_id) GROUP BY policy_id HAVING count(*) >= 4
), numbered AS (
    SELECT policy_id, quantity, address_id,
           row_number() OVER (PARTITION BY policy_id ORDER BY quantity, address_id) AS place
    FROM policy_holder JOIN list USING (policy_id)
), opening AS (
    SELECT policy_id, quantity, address_id, place FROM numbered WHERE opens_bucket(address_id)
    UNION ALL
    SELECT policy_id, 0, 0, 1 FROM list
), ending AS (
    SELECT policy_id, max(place) + 1 AS place FROM numbered GROUP BY policy_id
)
INSERT INTO policy_holder_bucket (policy_id, lowest_quantity, lowest_address, holders)
SELECT policy_id, quantity, address_id,
       coalesce(lead(opening.place) OVER in_order, ending.place) - opening.place
FROM opening JOIN ending USING (policy_id)
WINDOW in_order AS (PARTITION BY policy_id ORDER BY quantity, address_id)
