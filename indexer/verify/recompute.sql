-- What numbers in packed rows stand for.

-- name: asset_names
SELECT asset_no, policy_id, name FROM asset JOIN policy USING (policy_no) WHERE asset_no = ANY ($1::integer[])
