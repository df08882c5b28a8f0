-- The meaning of numbers in packed rows.

-- name: asset_names
SELECT asset_no, policy_id, name FROM asset JOIN policy USING (policy_no) WHERE asset_no = ANY ($1::integer[])

-- name: stakes
SELECT raw, stake_no FROM stake WHERE raw = ANY ($1::bytea[])
