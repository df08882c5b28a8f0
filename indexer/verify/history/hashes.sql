-- Datums and scripts that transactions from tx_id $1 to before $2 showed first.

-- name: datums
SELECT tx_id, hash, body FROM datum WHERE tx_id >= $1 AND tx_id < $2

-- name: scripts
SELECT tx_id, hash, language, body FROM script WHERE tx_id >= $1 AND tx_id < $2
