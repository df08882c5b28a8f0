-- The rows that verify unpacks.

-- name: rows
-- The packed transactions from tx_id $1 to before $2, in order.
SELECT tx_id, outputs, inputs, mint, extra, hash, fee, attached, referred
FROM tx WHERE tx_id >= $1 AND tx_id < $2
ORDER BY tx_id

-- name: genesis_outputs
-- With the numbers of their addresses and stake credentials.
SELECT tx_id, tx_hash, address, lovelace, address_no, stake_no, credential_no,
       EXISTS (SELECT FROM address_tx WHERE address_tx.address_no = address.address_no) AS in_history
FROM genesis_output g LEFT JOIN address ON address.raw = g.address
