-- Data of outputs that the answers of this API lack.

-- name: blocks_at
-- The blocks at slots: a look-up for each.
SELECT slot_no, block_no, hash FROM block WHERE slot_no = ANY ($1::bigint[])

-- name: placed
-- Transactions by hash: a look-up for each.
SELECT tx.hash, tx.tx_id, tx.attached FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash

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

-- name: spenders
-- The spent outputs of transaction $2, which is in slot $1. Cost: the spent outputs of a block, and a look-up for each
-- one found.
SELECT entry.output_index, tx.hash AS tx_hash
FROM spender_entry entry
JOIN tx ON tx.tx_id = entry.spender_tx_id
WHERE entry.slot_no = $1 AND entry.tx_id = $2
