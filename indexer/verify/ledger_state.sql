-- The rows that verify compares with the node's ledger.

-- name: state
SELECT epoch_no, next_stake_no, desired_pools, reserves, treasury FROM ledger_state

-- name: parameters
SELECT parameters::text FROM epoch_parameters WHERE epoch_no = $1

-- name: configurations
SELECT era, configuration::text FROM genesis_configuration

-- name: due
-- Whether any reward is still to be read.
SELECT stake_no FROM reward_due LIMIT 1

-- name: accounts
-- Accounts that are registered, or for which a reward is stored, a random $1 percent of them, with their reward.
SELECT raw, coalesce(reward.lovelace, 0) AS lovelace
FROM stake LEFT JOIN reward USING (stake_no)
WHERE random() * 100 < $1::double precision
  AND (pool_no IS NOT NULL OR reward.lovelace IS NOT NULL
       OR (SELECT kind FROM stake_event WHERE stake_event.stake_no = stake.stake_no
           ORDER BY tx_id DESC, place DESC LIMIT 1) <> 'deregistration')
ORDER BY stake_no

-- name: pool_rewards
SELECT pool_no, lovelace FROM pool_reward WHERE epoch_no = $1

-- name: node_comparison
-- The last comparison of live stakes with the node's ledger.
SELECT complete_epoch_no AS epoch_no, compared_pools AS pools, pools_stake_mismatch AS mismatched, difference
FROM ledger_state WHERE compared_pools IS NOT NULL
