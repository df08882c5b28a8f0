-- The rows that verify reads to compare history with itself.

-- name: rows
-- The packed transactions from tx_id $1 to before $2, in order.
SELECT tx_id, outputs, inputs, mint, extra, hash, fee, attached FROM tx WHERE tx_id >= $1 AND tx_id < $2 ORDER BY tx_id

-- name: indexed_hashes
-- The hashes, out of $1, of indexed transactions and genesis outputs.
SELECT wanted.hash FROM unnest($1::bytea[]) AS wanted (hash)
WHERE EXISTS (SELECT FROM tx WHERE tx.hash = wanted.hash)
   OR EXISTS (SELECT FROM genesis_output g WHERE g.tx_hash = wanted.hash)

-- name: outputs_of
SELECT outputs FROM tx WHERE hash = $1

-- name: genesis_output_of
SELECT tx_id, tx_hash, address, lovelace, address_no
FROM genesis_output g LEFT JOIN address ON address.raw = g.address WHERE tx_hash = $1

-- name: address_of
SELECT raw FROM address WHERE address_no = $1
