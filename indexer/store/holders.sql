-- Held quantities: {holder} is the table, {held_no} its column asset_no or policy_no,
-- {owner_no} its column address_no or account_no.

-- name: move_holders
-- Move the quantities ($3, as text) of assets $1 at addresses or accounts $2, one for each pair, and the same by
-- policy; no row stays at 0. Returns the moves in lists that have buckets, and in lists that may get some now, since an
-- address or account that opens a bucket is among the moves; each with the quantity after it.
--
-- NOTE: each row is found as the first one in a range of the primary key that contains only this row. If the columns
-- were compared for equality, the planner might prefer the index by quantity, and read the whole list of an asset for
-- each of its holders.
WITH moved AS MATERIALIZED (
    SELECT asset_no, policy_no, {owner_no}, quantity::numeric AS quantity
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_no, {owner_no}, quantity)
        JOIN asset USING (asset_no)
), of_assets AS MATERIALIZED (
    SELECT asset_no, {owner_no}, moved.quantity AS moved, h.ctid AS row_ctid,
           coalesce(h.quantity, 0) + moved.quantity AS quantity
    FROM moved
    LEFT JOIN LATERAL (
        SELECT h.ctid, h.quantity FROM {holder} h
        WHERE (h.{owner_no}, h.asset_no) BETWEEN (moved.{owner_no}, moved.asset_no)
            AND (moved.{owner_no}, moved.asset_no)
        ORDER BY h.{owner_no}, h.asset_no LIMIT 1
    ) h ON true
), of_policies AS MATERIALIZED (
    SELECT policy_no, {owner_no}, moved.quantity AS moved, h.ctid AS row_ctid,
           coalesce(h.quantity, 0) + moved.quantity AS quantity
    FROM (SELECT policy_no, {owner_no}, sum(quantity) AS quantity FROM moved GROUP BY policy_no, {owner_no}) moved
    LEFT JOIN LATERAL (
        SELECT h.ctid, h.quantity FROM policy_{holder} h
        WHERE (h.policy_no, h.{owner_no}) BETWEEN (moved.policy_no, moved.{owner_no})
            AND (moved.policy_no, moved.{owner_no})
        ORDER BY h.policy_no, h.{owner_no} LIMIT 1
    ) h ON true
    WHERE moved.quantity <> 0
), removed AS (
    DELETE FROM {holder} h USING of_assets m WHERE h.ctid = m.row_ctid AND m.quantity = 0
), changed AS (
    UPDATE {holder} h SET quantity = m.quantity FROM of_assets m WHERE h.ctid = m.row_ctid AND m.quantity <> 0
), added AS (
    INSERT INTO {holder} (asset_no, {owner_no}, quantity) SELECT asset_no, {owner_no}, quantity FROM of_assets
        WHERE row_ctid IS NULL
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

-- name: move_credential_holders
-- Move the quantities ($3, as text) of assets $1 at payment credentials $2, one for each pair; no row stays at 0. They
-- are in no list of holders.
WITH moved AS MATERIALIZED (
    SELECT moved.asset_no, moved.credential_no, h.ctid AS row_ctid,
           coalesce(h.quantity, 0) + moved.quantity::numeric AS quantity
    FROM unnest($1::integer[], $2::integer[], $3::text[]) AS moved (asset_no, credential_no, quantity)
    LEFT JOIN credential_holder h USING (credential_no, asset_no)
), removed AS (
    DELETE FROM credential_holder h USING moved m WHERE h.ctid = m.row_ctid AND m.quantity = 0
), changed AS (
    UPDATE credential_holder h SET quantity = m.quantity FROM moved m WHERE h.ctid = m.row_ctid AND m.quantity <> 0
)
INSERT INTO credential_holder (asset_no, credential_no, quantity)
SELECT asset_no, credential_no, quantity FROM moved WHERE row_ctid IS NULL

-- name: listed
-- The rows of all lists of holders.
SELECT {held_no} AS list_no, quantity AS rank, {owner_no} AS tie, opens_bucket({owner_no}) AS opens FROM {holder}

-- name: places
-- The places in lists that holders have left or entered: the moves that move_holders returns.
SELECT list_no, place.quantity AS rank, owner_no AS tie, opens_bucket(owner_no) AS opens, holders
FROM unnest($1::integer[], $2::integer[], $3::text[], $4::text[]) AS m (list_no, owner_no, quantity, after)
CROSS JOIN LATERAL (VALUES (after::numeric - m.quantity::numeric, -1), (after::numeric, 1)) AS place (quantity, holders)
WHERE place.quantity > 0
