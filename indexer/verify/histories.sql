-- The packed histories, for their checksums.

-- name: ranges
-- Ranges of $1 row numbers of a {history}.
SELECT '{history}' AS history, number AS first_no, number + $1::integer AS next_no
FROM generate_series((SELECT min({numbered}) FROM {history}), (SELECT max({numbered}) FROM {history}), $1::integer) AS number

-- name: chunks
-- The chunks of a {history} from row number $1 up to $2, in order, and whether their {owner} exists.
SELECT {numbered} AS number, chunk, {entries} AS entries, {owner}.{numbered} IS NOT NULL AS owned
FROM {history} LEFT JOIN {owner} USING ({numbered})
WHERE {numbered} >= $1 AND {numbered} < $2
ORDER BY {numbered}, chunk
