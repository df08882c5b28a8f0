-- Figures of the index, to be compared with its node's.

-- name: pots
SELECT reserves, treasury FROM ledger_state

-- name: parameters
SELECT parameters::text, (SELECT desired_pools FROM ledger_state) AS desired_pools FROM epoch_parameters WHERE epoch_no = $1

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration
