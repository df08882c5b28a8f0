-- The length of each history: one probe at its end.

-- name: address_lengths
SELECT wanted.id AS number, coalesce((
    SELECT (chunk << 6) + length(tx_ids) / 8 FROM address_tx WHERE address_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)

-- name: asset_lengths
SELECT wanted.id AS number, coalesce((
    SELECT (chunk << 6) + length(entries) / 18 FROM asset_tx WHERE asset_no = wanted.id ORDER BY chunk DESC LIMIT 1
), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)

-- name: mint_lengths
SELECT wanted.id AS number, coalesce((SELECT max(seq) + 1 FROM mint WHERE asset_no = wanted.id), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)
