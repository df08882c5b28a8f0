-- What is looked up to compare inputs with outputs.

-- name: indexed_hashes
-- The hashes, out of $1, of indexed transactions and genesis outputs.
SELECT wanted.hash FROM unnest($1::bytea[]) AS wanted (hash)
WHERE EXISTS (SELECT FROM tx WHERE tx.hash = wanted.hash)
   OR EXISTS (SELECT FROM genesis_output g WHERE g.tx_hash = wanted.hash)

-- name: address_of
SELECT raw FROM address WHERE address_no = $1
