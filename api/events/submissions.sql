-- Submitted transactions in blocks: `hashes` and `present` read the chain, the others the partners' tables.

-- name: hashes
-- The hashes of the transactions from tx_id $1 to below $2.
SELECT tx_id, hash AS tx_hash FROM tx WHERE tx_id >= $1 AND tx_id < $2 ORDER BY tx_id

-- name: present
-- Those of the hashes $1 that a block contains. A look-up for each.
SELECT hash FROM tx WHERE hash = ANY ($1::bytea[])

-- name: submitted
-- The submissions of the transactions $2 to network $1, in a fixed order. A look-up for each.
SELECT tx_hash, user_account_id, invalid_hereafter::text AS invalid_hereafter
FROM partner.submitted_tx WHERE network_id = $1 AND tx_hash = ANY ($2::bytea[])
ORDER BY tx_hash, user_account_id

-- name: ended
-- The submissions to network $1 whose interval ends after slot $2, and up to slot $3, in a fixed order. A range of an
-- index.
SELECT tx_hash, user_account_id, invalid_hereafter::text AS invalid_hereafter,
       invalid_hereafter::bigint AS ends
FROM partner.submitted_tx
WHERE network_id = $1 AND invalid_hereafter > $2::bigint AND invalid_hereafter <= $3::bigint
  AND (accepted OR rolled_back_at IS NOT NULL)
ORDER BY invalid_hereafter, tx_hash, user_account_id
