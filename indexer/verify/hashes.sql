-- Datums and scripts that transactions from tx_id $1 to before $2 showed first.

-- name: datums
SELECT hash, body FROM datum WHERE tx_id >= $1 AND tx_id < $2

-- name: scripts
SELECT hash, language, body FROM script WHERE tx_id >= $1 AND tx_id < $2
