-- Fingerprints of assets.

-- name: ranges
-- Ranges of $1 numbers of assets.
SELECT number AS first_asset_no, number + $1::integer AS next_asset_no
FROM generate_series((SELECT min(asset_no) FROM asset), (SELECT max(asset_no) FROM asset), $1::integer) AS number

-- name: assets
-- The bytes from which a fingerprint follows, null without a policy, and its stored number, for assets from asset_no $1
-- to before $2.
SELECT asset_no, policy_id || name AS asset, fingerprint
FROM asset LEFT JOIN policy USING (policy_no)
WHERE asset_no >= $1 AND asset_no < $2
ORDER BY asset_no
