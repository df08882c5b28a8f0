-- The credentials of addresses, the reference tokens, and the owners of long histories, by their numbers.

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

-- name: long_histories
-- The owners, {owner_no}, of a {history} that is long without the transactions from tx_id $1 on, in order. One of its
-- chunks says so, whose entries before $1 are counted.
SELECT DISTINCT {owner_no} FROM {history}
WHERE is_long_history((chunk << 6) + length(tx_ids) / 8)
  AND (tx_id_at(tx_ids, length(tx_ids) - 8) < $1::bigint OR is_long_history((chunk << 6) + (
      SELECT count(*) FROM generate_series(0, length(tx_ids) / 8 - 1) AS place WHERE tx_id_at(tx_ids, place * 8) < $1
  )::integer))
ORDER BY {owner_no}
