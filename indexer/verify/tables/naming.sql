-- What differs, in words.

-- name: asset_of
SELECT coalesce((
    SELECT encode(policy_id, 'hex') || '.' || encode(name, 'hex') FROM asset JOIN policy USING (policy_no)
    WHERE asset_no = $1
), 'number ' || $1::integer)

-- name: policy_of
SELECT coalesce((SELECT encode(policy_id, 'hex') FROM policy WHERE policy_no = $1), 'number ' || $1::integer)

-- name: stake_of
SELECT raw FROM stake WHERE stake_no = $1

-- name: address_of
SELECT raw FROM address WHERE address_no = $1

-- name: numbers_of
-- The numbers of the credentials of an address.
SELECT format('stake_no %s, credential_no %s', stake_no, credential_no) FROM address WHERE address_no = $1

-- name: made_by
-- The outputs of a transaction, or the one of the genesis.
SELECT hash, outputs, NULL::integer AS address_no, NULL::bigint AS lovelace FROM tx WHERE tx_id = $1
UNION ALL
SELECT tx_hash, NULL, address_no, lovelace FROM genesis_output LEFT JOIN address ON raw = address WHERE tx_id = $1

-- name: stored_output
-- The rows of an output that `spender` does not name, as one.
SELECT min(address_no) AS address_no,
       string_agg(format('%s lovelace, address_no %s, stake_no %s, credential_no %s, asset_nos %s', lovelace,
           address_no, stake_no, credential_no, asset_nos), ' and ' ORDER BY lovelace DESC) AS says
FROM left_output WHERE tx_id = $1 AND output_index = $2
HAVING count(*) > 0
