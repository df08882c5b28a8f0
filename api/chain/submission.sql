-- name: is_indexed
-- Whether a transaction is in a block. One row. O(1), by index.
SELECT EXISTS (SELECT FROM tx WHERE hash = $1) AS found;
