-- name: prices
-- The protocol parameters of epoch $1 or, if they are not known, of the next known one, or else the last one. Cost:
-- the number of known epochs.
SELECT parameters::text FROM epoch_parameters ORDER BY epoch_no < $1, abs(epoch_no - $1) LIMIT 1
