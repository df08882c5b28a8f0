-- The packed histories.

-- name: ranges
-- Ranges of $1 row numbers of a {history}.
SELECT '{history}' AS history, number AS first_no, number + $1::integer - 1 AS last_no
FROM generate_series((SELECT min({owner_no}) FROM {history}), (SELECT max({owner_no}) FROM {history}),
    $1::integer) AS number

-- name: chunks
-- The chunks of a {history} from row number $1 to $2, in order, and whether their {owner} exists.
SELECT h.{owner_no} AS number, chunk, {entries} AS entries, owner.{key} IS NOT NULL AS owned
FROM {history} h LEFT JOIN {owner} owner ON owner.{key} = h.{owner_no}
WHERE h.{owner_no} BETWEEN $1 AND $2
ORDER BY h.{owner_no}, chunk

-- name: sparse_ranges
-- Ranges of $1 numbers that a {history} has.
SELECT '{history}' AS history, min(number) AS first_no, max(number) AS last_no
FROM (
    SELECT {owner_no} AS number, row_number() OVER (ORDER BY {owner_no}) / $1::integer AS range
    FROM (SELECT DISTINCT {owner_no} FROM {history}) numbers
) numbered
GROUP BY range
ORDER BY range

-- name: chunks_without_owners
-- The chunks of a {history} from number $1 to $2, in order.
SELECT {owner_no} AS number, chunk, {entries} AS entries, true AS owned
FROM {history}
WHERE {owner_no} BETWEEN $1 AND $2
ORDER BY {owner_no}, chunk
