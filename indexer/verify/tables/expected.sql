-- The meaning of numbers in packed rows.

-- name: asset_names
SELECT asset_no, policy_id, name FROM asset JOIN policy USING (policy_no) WHERE asset_no = ANY ($1::integer[])

-- name: stakes
SELECT raw, stake_no FROM stake WHERE raw = ANY ($1::bytea[])

-- name: scripts_of
-- The numbers of the scripts that lock addresses $1, without those of keys.
SELECT address_no, script_key(raw) AS script_key FROM address
WHERE address_no = ANY ($1::integer[]) AND script_key(raw) IS NOT NULL
