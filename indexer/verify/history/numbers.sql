-- The credentials of addresses, and the reference tokens, by their numbers.

-- name: ends
-- The number after the last address, and that after the last asset.
SELECT (SELECT coalesce(max(address_no) + 1::bigint, 0) FROM address) AS address_nos,
       (SELECT coalesce(max(asset_no) + 1::bigint, 0) FROM asset) AS asset_nos

-- name: of_addresses
-- The addresses from number $1 to before $2 that have a {column}, and these numbers, in the same order.
-- Numbers that do not fit into the file are left out; other checks report them. NOTE: in one row, since a row for each
-- takes three times as long to read.
SELECT coalesce(array_agg(address_no), '{}') AS address_nos, coalesce(array_agg({column}), '{}') AS numbers
FROM address WHERE address_no >= $1::bigint AND address_no < $2::bigint AND {column} BETWEEN 0 AND 2147483646

-- name: policies
-- The assets from number $1 to before $2, and their policies, in the same order.
SELECT coalesce(array_agg(asset_no), '{}') AS asset_nos, coalesce(array_agg(policy_no), '{}') AS policy_nos
FROM asset WHERE asset_no >= $1::bigint AND asset_no < $2::bigint

-- name: reference_tokens
-- Assets whose names begin with $1.
SELECT asset_no FROM asset WHERE asset_no >= 0 AND substring(name FOR 4) = $1
