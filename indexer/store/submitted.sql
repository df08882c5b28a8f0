-- Transactions that were submitted through the API.

-- name: any_submitted
-- Whether anything was submitted to this network.
SELECT EXISTS (SELECT FROM partner.submitted_tx WHERE network_id = $1) AS any

-- name: removed
-- The next $2 transactions with a tx_id from $1 on.
SELECT tx_id, hash FROM tx WHERE tx_id >= $1 ORDER BY tx_id LIMIT $2

-- name: note_rolled_back
-- Mark the submitted ones of these transactions as rolled back. Costs a look-up for each.
UPDATE partner.submitted_tx SET rolled_back_at = now() WHERE network_id = $1 AND tx_hash = ANY($2::bytea[])
