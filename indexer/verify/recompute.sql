-- The meaning of numbers in packed rows.

-- name: asset_names
SELECT asset_no, policy_id, name FROM asset JOIN policy USING (policy_no) WHERE asset_no = ANY ($1::integer[])

-- name: accounts
-- The stake credentials of some addresses, where they have one.
SELECT address_no, stake_no FROM address WHERE address_no = ANY ($1::integer[]) AND stake_no IS NOT NULL

-- name: stakes
SELECT raw, stake_no FROM stake WHERE raw = ANY ($1::bytea[])
