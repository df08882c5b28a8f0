-- name: extra
-- The optional parts of a transaction, which have the places of its certificates. One row of a unique hash.
SELECT extra FROM tx WHERE hash = $1
