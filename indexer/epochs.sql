-- Stake, pools and epochs, written inside the commits of store.py.

-- name: snapshot
-- The snapshot that counts in epoch $1 + 1, taken where $1 begins: lovelace of each pool's delegators in outputs and, apart
-- from them, in rewards as last read: what their lists, which bulk does not keep, have beyond it. Cost: one pass over all
-- delegations, see bench/pools.py.
WITH balances AS MATERIALIZED (
    SELECT pool_id, sum(balance)::bigint AS lovelace FROM stake WHERE pool_id IS NOT NULL GROUP BY pool_id
), lists AS (
    SELECT pool_id, sum(lovelace)::bigint AS lovelace FROM delegator_bucket GROUP BY pool_id
), rewards AS (
    INSERT INTO pool_reward (pool_id, epoch_no, lovelace)
    SELECT pool_id, $1 + 1, lists.lovelace - balances.lovelace
    FROM lists JOIN balances USING (pool_id)
    WHERE lists.lovelace > balances.lovelace AND EXISTS (SELECT FROM tip WHERE phase = 'live')
    ON CONFLICT (pool_id, epoch_no) DO UPDATE SET lovelace = excluded.lovelace
)
INSERT INTO pool_epoch (pool_id, epoch_no, active_stake)
SELECT pool_id, $1 + 1, lovelace FROM balances WHERE lovelace > 0

-- name: reap
-- Ends the delegations to every pool whose retirement, neither taken back nor moved, is for epoch $1; $2 is the first tx_id
-- of that epoch. POOLREAP, Shelley ledger specification.
WITH reaped AS (
    SELECT r.pool_id
    FROM pool_retirement r
    WHERE r.epoch_no = $1
      AND NOT EXISTS (SELECT FROM pool_retirement later
                      WHERE later.pool_id = r.pool_id AND (later.tx_id, later.place) > (r.tx_id, r.place))
      AND NOT EXISTS (SELECT FROM pool_update later
                      WHERE later.pool_id = r.pool_id AND (later.tx_id, later.place) > (r.tx_id, r.place))
), ended AS (
    UPDATE stake SET pool_id = NULL, active_epoch_no = NULL
    FROM reaped WHERE stake.pool_id = reaped.pool_id
    RETURNING stake_id
)
INSERT INTO stake_event (tx_id, stake_id, epoch_no, place, kind)
SELECT $2, stake_id, $1, -1, 'reaping' FROM ended
RETURNING stake_id

-- name: move_blocks
-- Adds blocks, below 0 takes them back; a row of nothing goes.
MERGE INTO pool_epoch USING (
    SELECT * FROM unnest($1::integer[], $2::integer[], $3::integer[]) AS moved (pool_id, epoch_no, blocks)
) moved ON pool_epoch.pool_id = moved.pool_id AND pool_epoch.epoch_no = moved.epoch_no
WHEN MATCHED AND pool_epoch.blocks + moved.blocks = 0 AND pool_epoch.active_stake = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET blocks = pool_epoch.blocks + moved.blocks
WHEN NOT MATCHED THEN INSERT (pool_id, epoch_no, blocks) VALUES (moved.pool_id, moved.epoch_no, moved.blocks)

-- name: delegate
UPDATE stake SET pool_id = changed.pool_id, active_epoch_no = changed.active_epoch_no
FROM unnest($1::integer[], $2::integer[], $3::integer[]) AS changed (stake_id, pool_id, active_epoch_no)
WHERE stake.stake_id = changed.stake_id

-- name: forget_rewards
DELETE FROM reward WHERE stake_id = ANY ($1::integer[])

-- name: make_rewards_due
INSERT INTO reward_due (stake_id, slot_no) SELECT unnest($1::integer[]), $2
ON CONFLICT (stake_id) DO UPDATE SET slot_no = excluded.slot_no

-- name: bring_rewards_due_back
-- To be read at a slot that is no more is to be read at the tip, $1: nothing read before that slot would do otherwise.
UPDATE reward_due SET slot_no = $1 WHERE slot_no > $1

-- name: leave_delegators
-- The first of two steps that bring delegators up to date with stake and reward: they leave their lists and buckets.
WITH gone AS (
    DELETE FROM delegator WHERE stake_id = ANY ($1::integer[]) RETURNING pool_id, bucket, amount
), sums AS (
    SELECT pool_id, bucket, count(*) AS delegators, sum(amount) AS lovelace FROM gone GROUP BY pool_id, bucket
)
UPDATE delegator_bucket SET
    delegators = delegator_bucket.delegators - sums.delegators, lovelace = delegator_bucket.lovelace - sums.lovelace
FROM sums
WHERE delegator_bucket.pool_id = sums.pool_id AND delegator_bucket.bucket = sums.bucket

-- name: enter_delegators
-- The second step: those that have a pool enter its list where they belong now.
WITH come AS (
    INSERT INTO delegator (stake_id, pool_id, amount)
    SELECT stake_id, pool_id, balance + coalesce(lovelace, 0)
    FROM unnest($1::integer[]) AS wanted (stake_id) JOIN stake USING (stake_id) LEFT JOIN reward USING (stake_id)
    WHERE pool_id IS NOT NULL
    RETURNING pool_id, bucket, amount
)
INSERT INTO delegator_bucket AS present (pool_id, bucket, delegators, lovelace)
SELECT pool_id, bucket, count(*), sum(amount) FROM come GROUP BY pool_id, bucket
ON CONFLICT (pool_id, bucket) DO UPDATE SET
    delegators = present.delegators + excluded.delegators, lovelace = present.lovelace + excluded.lovelace

-- name: fill_delegators
-- All of them at once, into the empty table.
INSERT INTO delegator (stake_id, pool_id, amount)
SELECT stake_id, pool_id, balance + coalesce(lovelace, 0)
FROM stake LEFT JOIN reward USING (stake_id)
WHERE pool_id IS NOT NULL
ORDER BY pool_id

-- name: fill_delegator_buckets
INSERT INTO delegator_bucket (pool_id, bucket, delegators, lovelace)
SELECT pool_id, bucket, count(*), sum(amount) FROM delegator GROUP BY pool_id, bucket ORDER BY pool_id, bucket

-- name: blocks_from
-- Who made the blocks from a slot on.
SELECT slot_no, pool_id FROM block WHERE slot_no >= $1 AND pool_id IS NOT NULL

-- name: forget_epochs
-- Snapshots that were taken after epoch $1 - 1 ended.
DELETE FROM pool_epoch WHERE epoch_no > $1

-- name: forget_pool_rewards
DELETE FROM pool_reward WHERE epoch_no > $1

-- name: forget_ledger_state
-- What was read in a later epoch than $1 is to be read again, whatever epoch comes next, and compared. A rollback may be
-- several: the first of them has forgotten the epoch, but not how far back snapshots are complete, if they ever were.
UPDATE ledger_state SET
    epoch_no = CASE WHEN epoch_no > $1 THEN -1 ELSE epoch_no END,
    complete_epoch_no = CASE WHEN complete_epoch_no > $1 THEN $1 ELSE complete_epoch_no END,
    compared_pools = NULL, unlike_pools = NULL, difference = NULL
WHERE epoch_no > $1 OR complete_epoch_no > $1

-- name: forget_stake_events
DELETE FROM stake_event WHERE tx_id >= $1 RETURNING stake_id

-- name: restore_delegations
-- What credentials delegate to by the last word of their history.
UPDATE stake SET pool_id = last.pool_id, active_epoch_no = CASE WHEN last.pool_id IS NOT NULL THEN last.epoch_no + $2 END
FROM unnest($1::integer[]) AS changed (stake_id) LEFT JOIN LATERAL (
    SELECT pool_id, epoch_no FROM stake_event
    WHERE stake_event.stake_id = changed.stake_id
    ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON true
WHERE stake.stake_id = changed.stake_id

-- name: forget_pool_updates
DELETE FROM pool_update WHERE tx_id >= $1

-- name: forget_pool_retirements
DELETE FROM pool_retirement WHERE tx_id >= $1
