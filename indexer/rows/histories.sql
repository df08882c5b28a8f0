-- The length of each history: one probe at its end.

-- name: entry_lengths
SELECT wanted.id AS number, coalesce((
    SELECT (chunk << 6) + length({entries}) / {bytes} FROM {history} WHERE {numbered} = wanted.id ORDER BY chunk DESC LIMIT 1
), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)

-- name: mint_lengths
SELECT wanted.id AS number, coalesce((SELECT max(seq) + 1 FROM mint WHERE asset_no = wanted.id), 0) AS length
FROM unnest($1::integer[]) AS wanted (id)
