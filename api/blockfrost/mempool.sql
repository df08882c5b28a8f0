-- name: made
-- The packed outputs of transactions by hash, and those of the genesis, with the numbering of the same snapshot: a
-- look-up for each. Unknown transactions are omitted.
SELECT wanted.hash AS tx_hash, (SELECT numbering FROM tip) AS numbering, tx.outputs,
       genesis.address AS genesis_address, genesis.lovelace AS genesis_lovelace
FROM unnest($1::bytea[]) AS wanted (hash)
LEFT JOIN tx ON tx.hash = wanted.hash
LEFT JOIN genesis_output genesis ON genesis.tx_hash = wanted.hash
WHERE tx.hash IS NOT NULL OR genesis.tx_hash IS NOT NULL
