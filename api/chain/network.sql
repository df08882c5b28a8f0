-- name: state
-- The supply and the stake of a network whose tip is in epoch $1. Cost: the pools with stake in that epoch.
SELECT tip.block_no, coalesce(live_stake.lovelace, 0) AS live_stake,
       (SELECT coalesce(sum(active_stake), 0) FROM pool_epoch WHERE epoch_no = $1)::bigint
       + (SELECT coalesce(sum(lovelace), 0) FROM pool_reward WHERE epoch_no = $1)::bigint AS active_stake,
       ledger_state.slot_no AS read_slot_no, ledger_state.reserves, ledger_state.treasury
FROM tip LEFT JOIN live_stake ON true LEFT JOIN ledger_state ON true

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration
