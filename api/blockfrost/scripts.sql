-- All scripts.

-- name: listed
-- A page of the hashes of all scripts in the order of their first transactions, oldest first: a range of an index; $1
-- limit, $2 offset, $3 whether the offset counts from the newest.
WITH page AS MATERIALIZED (
    SELECT CASE WHEN $3 THEN coalesce(max(seq), -1) + 1 - $2::bigint - $1::bigint ELSE $2 END AS lowest FROM script
)
SELECT script.hash FROM page JOIN script ON seq BETWEEN lowest AND lowest + $1 - 1 ORDER BY seq
