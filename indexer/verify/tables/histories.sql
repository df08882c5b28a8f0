-- The packed histories.

-- name: ranges
-- Ranges of $1 row numbers of a {history}.
SELECT '{history}' AS history, number AS first_no, number + $1::integer AS next_no
FROM generate_series((SELECT min({owner_no}) FROM {history}), (SELECT max({owner_no}) FROM {history}),
    $1::integer) AS number

-- name: chunks
-- The chunks of a {history} from row number $1 to before $2, in order, and whether their {owner} exists.
SELECT h.{owner_no} AS number, chunk, {entries} AS entries, owner.{key} IS NOT NULL AS owned
FROM {history} h LEFT JOIN {owner} owner ON owner.{key} = h.{owner_no}
WHERE h.{owner_no} >= $1 AND h.{owner_no} < $2
ORDER BY h.{owner_no}, chunk
