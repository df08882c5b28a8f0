-- Reference outputs (CIP-68) that are spent.

-- name: spend_references
-- The reference outputs with these transaction hashes and indexes are spent by these transactions.
UPDATE reference_output r SET spent_tx_id = spent.by
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS spent (tx_hash, output_index, by)
JOIN tx ON tx.hash = spent.tx_hash
WHERE r.tx_id = tx.tx_id AND r.output_index = spent.output_index

-- name: unspend_references
-- Reference outputs from before tx_id $1 are not spent by transactions from there on.
UPDATE reference_output SET spent_tx_id = NULL WHERE spent_tx_id >= $1 AND tx_id < $1
