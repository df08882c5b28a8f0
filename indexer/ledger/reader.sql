-- Data that blocks do not contain, read from the node's ledger.

-- name: state
SELECT epoch_no, next_stake_no, complete_epoch_no FROM ledger_state

-- name: store_configuration
-- Again in each epoch, since a later Ogmios tells more of it.
INSERT INTO genesis_configuration AS stored (era, configuration) VALUES ($1, $2::text::json)
ON CONFLICT (era) DO UPDATE SET configuration = excluded.configuration
WHERE stored.configuration::text <> excluded.configuration::text

-- name: store_parameters
-- Another node may refuse to tell the nonce.
INSERT INTO epoch_parameters AS stored (epoch_no, parameters, nonce) VALUES ($1, $2::text::json, $3)
ON CONFLICT (epoch_no) DO UPDATE SET
    parameters = excluded.parameters, nonce = coalesce(excluded.nonce, stored.nonce)

-- name: insert_epoch
-- All rewards are to be read again. Figures that the node did not report keep their values from an earlier epoch.
INSERT INTO ledger_state AS present (slot_no, epoch_no, next_stake_no, desired_pools, reserves, treasury)
VALUES ($1, $2, 0, $3, $4, $5)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, epoch_no = excluded.epoch_no, next_stake_no = excluded.next_stake_no,
    desired_pools = coalesce(excluded.desired_pools, present.desired_pools),
    reserves = coalesce(excluded.reserves, present.reserves), treasury = coalesce(excluded.treasury, present.treasury)

-- name: due
-- Accounts whose reward is to be read before all others, oldest first.
SELECT stake_no, raw FROM reward_due JOIN stake USING (stake_no) ORDER BY reward_due.slot_no, stake_no LIMIT $1

-- name: registered
-- The next accounts of an epoch's round: all that are registered. Rewards are also paid to those that no longer
-- delegate.
SELECT stake_no, raw FROM stake
WHERE stake_no >= $1
  AND (pool_no IS NOT NULL
       OR (SELECT kind FROM stake_event WHERE stake_event.stake_no = stake.stake_no
           ORDER BY tx_id DESC, place DESC LIMIT 1) <> 'deregistration')
ORDER BY stake_no LIMIT $2

-- name: delete_rewards
-- Delete the rewards of accounts that had none at slot $2, unless an account has changed since.
DELETE FROM reward WHERE stake_no = ANY ($1::integer[])
    AND NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = reward.stake_no AND reward_due.slot_no > $2)

-- name: store_rewards
-- Store rewards as of slot $3, unless an account has changed since.
INSERT INTO reward (stake_no, lovelace)
SELECT stake_no, lovelace
FROM unnest($1::integer[], $2::bigint[]) AS found (stake_no, lovelace)
WHERE NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = found.stake_no AND reward_due.slot_no > $3)
ON CONFLICT (stake_no) DO UPDATE SET lovelace = excluded.lovelace

-- name: clear_rewards_due
DELETE FROM reward_due WHERE stake_no = ANY ($1::integer[]) AND slot_no <= $2

-- name: set_next_stake_no
UPDATE ledger_state SET next_stake_no = $1

-- name: outputs_in_stake_snapshot
-- Every pool, with the lovelace of its delegators' outputs in the stake snapshot that counts in epoch $1.
SELECT pool_no, pool_id, coalesce(active_stake, 0) AS lovelace
FROM pool LEFT JOIN (SELECT pool_no, active_stake FROM pool_epoch WHERE epoch_no = $1) snapshot USING (pool_no)

-- name: delegations_at
-- The pools to which the accounts $1 delegate at the beginning of epoch $3, at tx_id $2, after pools were reaped.
SELECT stake.raw AS account, pool.pool_id
FROM stake CROSS JOIN LATERAL (
    SELECT pool_no, epoch_no FROM stake_event
    WHERE stake_event.stake_no = stake.stake_no AND tx_id < $2
    ORDER BY tx_id DESC, place DESC LIMIT 1
) last JOIN pool ON pool.pool_no = last.pool_no
WHERE stake.raw = ANY ($1::bytea[])
  AND NOT EXISTS (SELECT FROM pool_reaping r
                  WHERE r.pool_no = last.pool_no AND r.epoch_no > last.epoch_no AND r.epoch_no <= $3)

-- name: reaped
-- The parameters of each pool that was reaped at the beginning of epoch $1, at tx_id $2.
SELECT latest.parameters
FROM pool_reaping r CROSS JOIN LATERAL (
    SELECT parameters FROM pool_update
    WHERE pool_update.pool_no = r.pool_no AND tx_id < $2
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
WHERE r.epoch_no = $1

-- name: extras_from
-- The first $2 transactions from tx_id $1 on that may have withdrawals.
SELECT tx_id, extra FROM tx WHERE tx_id >= $1 AND extra IS NOT NULL ORDER BY tx_id LIMIT $2

-- name: account_rewards
-- The rewards that accounts held at the beginning of epoch $4, at tx_id $1, summed by the pool to which they delegated
-- just before: their current rewards, plus $3 for the accounts in $2.
WITH changed AS MATERIALIZED (
    SELECT DISTINCT stake_no FROM stake_event WHERE tx_id >= $1
), held AS MATERIALIZED (
    SELECT stake_no, sum(lovelace)::bigint AS lovelace
    FROM (
        SELECT stake_no, lovelace FROM reward
        UNION ALL
        SELECT stake_no, lovelace FROM unnest($2::bytea[], $3::bigint[]) AS moved (raw, lovelace) JOIN stake USING (raw)
    ) parts
    GROUP BY stake_no
)
SELECT pool_no, sum(lovelace)::bigint AS lovelace
FROM (
    SELECT stake.pool_no, active_epoch_no - 2 AS since, held.lovelace
    FROM held JOIN stake USING (stake_no)
    WHERE NOT EXISTS (SELECT FROM changed WHERE changed.stake_no = held.stake_no)
    UNION ALL
    SELECT last.pool_no, last.epoch_no, held.lovelace
    FROM changed JOIN held USING (stake_no) CROSS JOIN LATERAL (
        SELECT pool_no, epoch_no FROM stake_event
        WHERE stake_event.stake_no = changed.stake_no AND tx_id < $1
        ORDER BY tx_id DESC, place DESC LIMIT 1
    ) last
) then_delegated
WHERE pool_no IS NOT NULL
  AND NOT EXISTS (SELECT FROM pool_reaping r
                  WHERE r.pool_no = then_delegated.pool_no AND r.epoch_no > since AND r.epoch_no < $4)
GROUP BY pool_no

-- name: delete_pool_rewards
DELETE FROM pool_reward WHERE epoch_no = $1

-- name: store_pool_rewards
INSERT INTO pool_reward (pool_no, epoch_no, lovelace)
SELECT pool_no, $3, lovelace FROM unnest($1::integer[], $2::bigint[]) AS found (pool_no, lovelace)

-- name: complete_epoch
-- All rewards are read.
UPDATE ledger_state SET next_stake_no = NULL, complete_epoch_no = epoch_no
