-- The names that row numbers stand for.

-- name: names
-- The addresses with the numbers $1 and the assets with the numbers $2; nothing if the numbering is no longer $3. Cost:
-- one look-up by primary key for each address, two for each asset.
SELECT address_no AS number, raw, NULL::bytea AS policy_id, NULL::bytea AS asset_name
FROM address
WHERE address_no = ANY ($1::integer[]) AND EXISTS (SELECT FROM tip WHERE numbering = $3)
UNION ALL
SELECT asset_no, NULL, policy_id, name
FROM asset JOIN policy USING (policy_no)
WHERE asset_no = ANY ($2::integer[]) AND EXISTS (SELECT FROM tip WHERE numbering = $3)
