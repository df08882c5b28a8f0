-- The packed histories.

-- name: ranges
-- Ranges of $1 row numbers of a {history}.
SELECT '{history}' AS history, number AS first_no, number + $1::integer - 1 AS last_no
FROM generate_series((SELECT min({owner_no}) FROM {history}), (SELECT max({owner_no}) FROM {history}),
    $1::integer) AS number

-- name: chunks
-- The chunks of a {history} from row number $1 to $2, in order, and whether their {owner} exists.
SELECT h.{owner_no} AS number, 0::bigint AS rest, chunk, {entries} AS entries, owner.{key} IS NOT NULL AS owned
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
SELECT {owner_no} AS number, 0::bigint AS rest, chunk, {entries} AS entries, true AS owned
FROM {history}
WHERE {owner_no} BETWEEN $1 AND $2
ORDER BY {owner_no}, chunk

-- name: script_ranges
-- Ranges of $1 numbers that redeemer_tx has: a script's is the first half of its key, less 2^63, so that numbers and
-- keys have the same order.
SELECT 'redeemer_tx' AS history, min(number) AS first_no, max(number) AS last_no
FROM (
    SELECT number, row_number() OVER (ORDER BY number) / $1::integer AS range
    FROM (
        SELECT DISTINCT tx_id_at(script_key, 0) # (-9223372036854775808)::bigint AS number FROM redeemer_tx
    ) numbers
) numbered
GROUP BY range
ORDER BY range

-- name: script_chunks
-- The chunks of redeemer_tx from number $1 to $2, in order. `rest` is the second half of the key.
SELECT tx_id_at(script_key, 0) # (-9223372036854775808)::bigint AS number, tx_id_at(script_key, 8) AS rest, chunk,
       tx_ids AS entries, true AS owned
FROM redeemer_tx
WHERE script_key >= int8send($1::bigint # (-9223372036854775808)::bigint)
  AND script_key < int8send($2::bigint # (-9223372036854775808)::bigint) || '\xffffffffffffffffff'::bytea
ORDER BY script_key, chunk
