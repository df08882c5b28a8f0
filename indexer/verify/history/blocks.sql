-- Blocks, to be compared with their transactions.

-- name: blocks
SELECT slot_no, tx_count FROM block WHERE slot_no >= $1 AND slot_no < $2
