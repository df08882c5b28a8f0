-- name: lengths
-- The length of histories: of addresses $1, accounts $2, withdrawals of accounts $3, assets $4, and mints of assets $5. One
-- probe at the end of each.
SELECT 0 AS history, wanted.id AS number, coalesce((
    SELECT (chunk << 6) + length(tx_ids) / 8 FROM address_tx WHERE address_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)
UNION ALL
SELECT 1, wanted.id, coalesce((
    SELECT (chunk << 6) + length(tx_ids) / 8 FROM account_tx WHERE stake_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0)
FROM unnest($2::integer[]) AS wanted (id)
UNION ALL
SELECT 2, wanted.id, coalesce((
    SELECT (chunk << 6) + length(entries) / 18 FROM account_withdrawal WHERE stake_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0)
FROM unnest($3::integer[]) AS wanted (id)
UNION ALL
SELECT 3, wanted.id, coalesce((
    SELECT (chunk << 6) + length(entries) / 18 FROM asset_tx WHERE asset_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0)
FROM unnest($4::integer[]) AS wanted (id)
UNION ALL
SELECT 4, wanted.id, coalesce((SELECT max(seq) + 1 FROM mint WHERE asset_no = wanted.id), 0)
FROM unnest($5::integer[]) AS wanted (id)
