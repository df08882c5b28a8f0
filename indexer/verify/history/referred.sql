-- name: outputs_of
-- The packed outputs of those of the transactions $1 that exist, and nulls for outputs of the genesis.
SELECT tx_id, outputs FROM tx WHERE tx_id = ANY ($1::bigint[])
UNION ALL
SELECT tx_id, NULL FROM genesis_output WHERE tx_id = ANY ($1::bigint[])
