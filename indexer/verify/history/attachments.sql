-- The rows for datums and scripts that outputs carry.

-- name: reference_outputs
-- Those of transactions from tx_id $1 to before $2.
SELECT tx_id, output_index, datum_hash FROM reference_output WHERE tx_id >= $1 AND tx_id < $2

-- name: script_outputs
SELECT tx_id, output_index, script_hash FROM script_output WHERE tx_id >= $1 AND tx_id < $2

-- name: missing
-- The hashes of $1 without a {kind} that was first shown by the transaction at the same place of $2 or an earlier one.
SELECT wanted.hash
FROM unnest($1::bytea[], $2::bigint[]) AS wanted (hash, tx_id)
WHERE NOT EXISTS (SELECT FROM {kind} WHERE {kind}.hash = wanted.hash AND {kind}.tx_id <= wanted.tx_id)
