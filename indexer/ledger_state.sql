-- What blocks don't say, as read from the node's ledger.

-- name: state
SELECT epoch_no, next_stake_id, complete_epoch_no FROM ledger_state

-- name: begin_epoch
-- All rewards are to be read again, also of those who lost their pool since tx_id $6: they still count in snapshots. What the
-- node could not answer stays as it was in an earlier epoch.
WITH reaped AS (
    INSERT INTO reward_due (stake_id, slot_no)
    SELECT DISTINCT stake_id, $1::bigint FROM stake_event WHERE tx_id >= $6 AND kind = 'reaping'
    ON CONFLICT (stake_id) DO NOTHING
)
INSERT INTO ledger_state AS present (slot_no, epoch_no, next_stake_id, desired_pools, reserves, treasury)
VALUES ($1, $2, 0, $3, $4, $5)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, epoch_no = excluded.epoch_no, next_stake_id = excluded.next_stake_id,
    desired_pools = coalesce(excluded.desired_pools, present.desired_pools),
    reserves = coalesce(excluded.reserves, present.reserves), treasury = coalesce(excluded.treasury, present.treasury)

-- name: due
-- Accounts whose reward is to be read before all others, oldest first.
SELECT stake_id, raw FROM reward_due JOIN stake USING (stake_id) ORDER BY reward_due.slot_no, stake_id LIMIT $1

-- name: delegated
-- The next accounts of an epoch's round.
SELECT stake_id, raw FROM stake WHERE stake_id >= $1 AND pool_id IS NOT NULL ORDER BY stake_id LIMIT $2

-- name: forget_rewards
-- Of accounts that were read at slot $2 and have nothing, unless something happened to them since.
DELETE FROM reward WHERE stake_id = ANY ($1::integer[])
    AND NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_id = reward.stake_id AND reward_due.slot_no > $2)

-- name: learn_rewards
-- Rewards as they were at slot $3, unless something happened to an account since.
INSERT INTO reward (stake_id, lovelace, slot_no)
SELECT stake_id, lovelace, $3
FROM unnest($1::integer[], $2::bigint[]) AS found (stake_id, lovelace)
WHERE NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_id = found.stake_id AND reward_due.slot_no > $3)
ON CONFLICT (stake_id) DO UPDATE SET lovelace = excluded.lovelace, slot_no = excluded.slot_no

-- name: settle_rewards
DELETE FROM reward_due WHERE stake_id = ANY ($1::integer[]) AND slot_no <= $2

-- name: go_on
UPDATE ledger_state SET next_stake_id = $1

-- name: outputs_in_snapshot
-- Every pool, and what outputs gave it in the snapshot that counts in epoch $1.
SELECT pool_id, hash, coalesce(active_stake, 0)
FROM pool LEFT JOIN (SELECT pool_id, active_stake FROM pool_epoch WHERE epoch_no = $1) snapshot USING (pool_id)

-- name: delegations_at
-- To which pools of these accounts, $1, delegate where an epoch begins, $2, once pools are reaped.
SELECT stake.raw, pool.hash
FROM stake CROSS JOIN LATERAL (
    SELECT pool_id FROM stake_event
    WHERE stake_event.stake_id = stake.stake_id AND (tx_id, place) < ($2::bigint, 0)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) last JOIN pool ON pool.pool_id = last.pool_id
WHERE stake.raw = ANY ($1::bytea[])

-- name: reaped
-- The parameters of each pool that was reaped where epoch $1 began, at tx_id $2.
SELECT latest.parameters
FROM pool_retirement r CROSS JOIN LATERAL (
    SELECT tx_id, place, parameters FROM pool_update
    WHERE pool_update.pool_id = r.pool_id AND tx_id < $2
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
WHERE r.epoch_no = $1 AND (latest.tx_id, latest.place) < (r.tx_id, r.place)
  AND NOT EXISTS (SELECT FROM pool_retirement later
                  WHERE later.pool_id = r.pool_id AND later.tx_id < $2
                    AND (later.tx_id, later.place) > (r.tx_id, r.place))

-- name: extras_from
-- The first $2 transactions from tx_id $1 on that may have withdrawals.
SELECT tx_id, extra FROM tx WHERE tx_id >= $1 AND extra IS NOT NULL ORDER BY tx_id LIMIT $2

-- name: account_rewards
-- What accounts held at tx_id $1, by the pools that they delegated to just before: what they hold now, and $3 more by account
-- in $2.
WITH changed AS MATERIALIZED (
    SELECT DISTINCT stake_id FROM stake_event WHERE tx_id >= $1
), held AS MATERIALIZED (
    SELECT stake_id, sum(lovelace)::bigint AS lovelace
    FROM (
        SELECT stake_id, lovelace FROM reward
        UNION ALL
        SELECT stake_id, lovelace FROM unnest($2::bytea[], $3::bigint[]) AS moved (raw, lovelace) JOIN stake USING (raw)
    ) parts
    GROUP BY stake_id
)
SELECT pool_id, sum(lovelace)::bigint
FROM (
    SELECT stake.pool_id, held.lovelace
    FROM held JOIN stake USING (stake_id)
    WHERE NOT EXISTS (SELECT FROM changed WHERE changed.stake_id = held.stake_id)
    UNION ALL
    SELECT last.pool_id, held.lovelace
    FROM changed JOIN held USING (stake_id) CROSS JOIN LATERAL (
        SELECT pool_id FROM stake_event
        WHERE stake_event.stake_id = changed.stake_id AND tx_id < $1
        ORDER BY tx_id DESC, place DESC LIMIT 1
    ) last
) then_delegated
WHERE pool_id IS NOT NULL
GROUP BY pool_id

-- name: forget_pool_rewards
DELETE FROM pool_reward WHERE epoch_no = $1

-- name: learn_pool_rewards
INSERT INTO pool_reward (pool_id, epoch_no, lovelace)
SELECT pool_id, $3, lovelace FROM unnest($1::integer[], $2::bigint[]) AS found (pool_id, lovelace)

-- name: live_stakes
-- The live stake of each registered pool, by hash.
SELECT hash, coalesce(sum(lovelace), 0)::bigint
FROM pool LEFT JOIN delegator_bucket USING (pool_id)
WHERE EXISTS (SELECT FROM pool_update WHERE pool_update.pool_id = pool.pool_id)
GROUP BY pool.pool_id

-- name: end_epoch
-- All is read. $1 pools were compared, $2 of them differ, by $3 lovelace in all; nulls where the node knows no stakes.
UPDATE ledger_state SET
    next_stake_id = NULL, complete_epoch_no = epoch_no, compared_pools = $1, unlike_pools = $2, difference = $3
