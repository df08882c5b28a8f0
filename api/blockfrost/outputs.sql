-- Data of outputs that the answers of this API lack.

-- name: blocks_at
-- The blocks at slots: a look-up for each.
SELECT slot_no, block_no, hash FROM block WHERE slot_no = ANY ($1::bigint[])

-- name: placed
-- Transactions by hash: a look-up for each.
SELECT tx.hash, tx.tx_id FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash

-- name: made
-- Transactions by tx_id, with their packed outputs: a look-up for each.
SELECT tx_id, hash, outputs, attached FROM tx WHERE tx_id = ANY ($1::bigint[])

-- name: of_genesis
-- Outputs of the genesis by the negative tx_id: a look-up for each.
SELECT g.tx_id, g.tx_hash, address.address_no, g.lovelace
FROM genesis_output g JOIN address ON address.raw = g.address
WHERE g.tx_id = ANY ($1::bigint[])

-- name: paid
-- The packed outputs of transactions by hash: a look-up for each.
SELECT tx.hash, tx.outputs FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash

-- name: before_and_after
-- What the outputs of the transactions with the hashes $3 carry, if anything; the spent outputs of transaction $2 in
-- slot $1, with the hashes of their spenders; and the last block of the snapshot, with output -1. Cost: a look-up for
-- each hash, the spent outputs of a block, and a look-up for each one found.
SELECT tx.hash, NULL::integer AS output_index, tx.attached
FROM unnest($3::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash
WHERE tx.attached IS NOT NULL
UNION ALL
SELECT tx.hash, entry.output_index, NULL
FROM spender_entry entry
JOIN tx ON tx.tx_id = entry.spender_tx_id
WHERE entry.slot_no = $1 AND entry.tx_id = $2
UNION ALL
SELECT block_hash, -1, NULL FROM tip
