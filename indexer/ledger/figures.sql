-- Figures of the index, to be compared with its node's.

-- name: pots
SELECT reserves, treasury FROM ledger_state

-- name: parameters
SELECT parameters::text, nonce, desired_pools
FROM ledger_state LEFT JOIN epoch_parameters ON epoch_parameters.epoch_no = $1

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration
