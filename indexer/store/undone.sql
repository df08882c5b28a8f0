-- The data that a rollback reads.

-- name: transactions_from
-- The transactions that a rollback undoes: those from this tx_id on.
SELECT tx_id, hash, outputs, inputs, mint, extra FROM tx WHERE tx_id >= $1 ORDER BY tx_id

-- name: made_by
-- The tx_id of transactions and genesis outputs with these hashes.
SELECT hash AS tx_hash, tx_id FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx USING (hash)
UNION ALL
SELECT tx_hash, tx_id FROM unnest($1::bytea[]) AS wanted (tx_hash) JOIN genesis_output USING (tx_hash)
