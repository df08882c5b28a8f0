-- The packed histories.

-- name: ranges
-- Ranges of $1 row numbers of a {history}.
SELECT '{history}' AS history, number AS first_no, number + $1::integer AS next_no
FROM generate_series((SELECT min({owner_no}) FROM {history}), (SELECT max({owner_no}) FROM {history}),
    $1::integer) AS number

-- name: chunks
-- The chunks of a {history} from row number $1 to before $2, in order, and whether their {owner} exists.
SELECT {owner_no} AS number, chunk, {entries} AS entries, {owner}.{owner_no} IS NOT NULL AS owned
FROM {history} LEFT JOIN {owner} USING ({owner_no})
WHERE {owner_no} >= $1 AND {owner_no} < $2
ORDER BY {owner_no}, chunk
