-- name: state
-- The supply and the live stake of a network.
SELECT tip.block_no, coalesce(live_stake.lovelace, 0) AS live_stake, ledger_state.slot_no AS read_slot_no,
       ledger_state.reserves, ledger_state.treasury
FROM tip LEFT JOIN live_stake ON true LEFT JOIN ledger_state ON true

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration

-- name: active_stake
-- The stake that counts in epoch $1. Cost: the pools with stake in that epoch.
SELECT (SELECT coalesce(sum(active_stake), 0) FROM pool_epoch WHERE epoch_no = $1)::bigint
       + (SELECT coalesce(sum(lovelace), 0) FROM pool_reward WHERE epoch_no = $1)::bigint AS lovelace
