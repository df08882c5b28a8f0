-- Which transactions spent the outputs of slots.

-- name: rows
-- The entries of the slots from $1 to before $2.
SELECT slot_no, entries FROM spender WHERE slot_no >= $1 AND slot_no < $2
