-- name: state
-- The supply and the live stake of a network. What scripts lock is null if the index begins later than the chain.
SELECT tip.block_no, coalesce(live_stake.lovelace, 0) AS live_stake, ledger_state.slot_no AS read_slot_no,
       ledger_state.reserves, ledger_state.treasury,
       CASE WHEN tip.first_block_no = 0 THEN tip.script_lovelace END AS locked
FROM tip LEFT JOIN live_stake ON true LEFT JOIN ledger_state ON true

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration

-- name: shelley
-- The genesis configuration of Shelley, null if it is not known; no row if the network is not served.
SELECT (SELECT configuration::text FROM genesis_configuration WHERE era = 'shelley') AS configuration
FROM tip WHERE phase = 'live'

-- name: stake_snapshots
-- What decides the stakes that count in the epochs $1, in this order: the last block before slots $2, at which their
-- snapshots were taken, and the last reading of rewards.
SELECT (SELECT hash FROM block WHERE slot_no < asked.slot_no ORDER BY slot_no DESC LIMIT 1) AS last_hash,
       tip.numbering, ledger_state.xmin::text::bigint AS told_by
FROM unnest($1::integer[], $2::bigint[]) WITH ORDINALITY AS asked (epoch_no, slot_no, place)
CROSS JOIN tip LEFT JOIN ledger_state ON true
ORDER BY place

-- name: active_stakes
-- The stakes that count in the epochs $1, in this order. Cost: the pools with stake in those epochs.
SELECT (SELECT coalesce(sum(active_stake), 0) FROM pool_epoch WHERE pool_epoch.epoch_no = asked.epoch_no)::bigint
       + (SELECT coalesce(sum(lovelace), 0) FROM pool_reward WHERE pool_reward.epoch_no = asked.epoch_no)::bigint
       AS lovelace
FROM unnest($1::integer[]) WITH ORDINALITY AS asked (epoch_no, place)
ORDER BY place
