-- Stake, pools and epochs, written inside a commit of their caller.

-- name: stake_snapshot
-- Stake snapshot taken at the start of epoch $1, active in epoch $1 + 1: for each pool the lovelace of its delegators
-- in outputs and, separately, in rewards as last read. In bulk no rewards are recorded, nor the single delegators.
-- Cost: a pass over all delegations, which it sorts, see bench/pools.py.
WITH of_pool AS MATERIALIZED (
    SELECT pool_no, sum(balance)::bigint AS lovelace, sum(count(*)) OVER (ORDER BY pool_no) - count(*) AS seq,
           string_agg(int4send(stake_no) || int8send(balance), '' ORDER BY stake_no)
               FILTER (WHERE EXISTS (SELECT FROM tip WHERE phase = 'live')) AS entries
    FROM delegation GROUP BY pool_no
), members AS (
    INSERT INTO stake_snapshot (epoch_no, pool_no, first_stake_no, first_seq, entries)
    SELECT $1 + 1, pool_no, ('x' || encode(substr(part, 1, 4), 'hex'))::bit(32)::integer, seq + first / 12, part
    FROM of_pool
    CROSS JOIN LATERAL (
        SELECT first, substr(entries, first + 1, 768) AS part FROM generate_series(0, length(entries) - 1, 768) AS first
    ) rows_of_64
), lists AS (
    SELECT pool_no, sum(lovelace)::bigint AS lovelace FROM delegator_bucket GROUP BY pool_no
), rewards AS (
    INSERT INTO pool_reward (pool_no, epoch_no, lovelace)
    SELECT pool_no, $1 + 1, lists.lovelace - of_pool.lovelace
    FROM lists JOIN of_pool USING (pool_no)
    WHERE lists.lovelace > of_pool.lovelace AND EXISTS (SELECT FROM tip WHERE phase = 'live')
    ON CONFLICT (pool_no, epoch_no) DO UPDATE SET lovelace = excluded.lovelace
)
INSERT INTO pool_epoch (pool_no, epoch_no, active_stake)
SELECT pool_no, $1 + 1, lovelace FROM of_pool WHERE lovelace > 0

-- name: reap
-- Reap every pool that retires in epoch $1, unless the retirement was cancelled or moved, and empty its list of
-- delegators. POOLREAP, Shelley ledger specification.
WITH reaped AS (
    INSERT INTO pool_reaping (pool_no, epoch_no)
    SELECT r.pool_no, r.epoch_no
    FROM pool_retirement r
    WHERE r.epoch_no = $1
      AND NOT EXISTS (SELECT FROM pool_retirement later
                      WHERE later.pool_no = r.pool_no AND (later.tx_id, later.place) > (r.tx_id, r.place))
      AND NOT EXISTS (SELECT FROM pool_update later
                      WHERE later.pool_no = r.pool_no AND (later.tx_id, later.place) > (r.tx_id, r.place))
    RETURNING pool_no
), removed AS (
    DELETE FROM delegator USING reaped WHERE delegator.pool_no = reaped.pool_no
), removed_buckets AS (
    DELETE FROM delegator_bucket USING reaped WHERE delegator_bucket.pool_no = reaped.pool_no
    RETURNING lovelace
)
UPDATE live_stake SET lovelace = live_stake.lovelace - gone.lovelace
FROM (SELECT sum(lovelace) AS lovelace FROM removed_buckets) gone WHERE gone.lovelace <> 0

-- name: delegators_of
-- The credentials that delegate to pools $1. Cost: one pass over all credentials.
SELECT stake_no FROM delegation WHERE pool_no = ANY ($1::integer[])

-- name: add_blocks
-- Add $2 blocks with $3 transactions, their fees and outputs, to epoch $1, and $7 of them to pools $6.
WITH of_pools AS (
    INSERT INTO pool_epoch AS present (pool_no, epoch_no, blocks)
    SELECT pool_no, $1, made.blocks FROM unnest($6::integer[], $7::integer[]) AS made (pool_no, blocks)
    ON CONFLICT (pool_no, epoch_no) DO UPDATE SET blocks = present.blocks + excluded.blocks
)
INSERT INTO epoch AS present (epoch_no, blocks, tx_count, fees, output) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (epoch_no) DO UPDATE SET
    blocks = present.blocks + excluded.blocks, tx_count = present.tx_count + excluded.tx_count,
    fees = present.fees + excluded.fees, output = present.output + excluded.output

-- name: delegate
UPDATE stake SET pool_no = changed.pool_no, active_epoch_no = changed.active_epoch_no
FROM unnest($1::integer[], $2::integer[], $3::integer[]) AS changed (stake_no, pool_no, active_epoch_no)
WHERE stake.stake_no = changed.stake_no

-- name: withdraw
-- Take the lovelace $2 out of the rewards of stake credentials $1. One that is not greater, as last read, is gone.
MERGE INTO reward USING unnest($1::integer[], $2::bigint[]) AS taken (stake_no, lovelace)
ON reward.stake_no = taken.stake_no
WHEN MATCHED AND reward.lovelace <= taken.lovelace THEN DELETE
WHEN MATCHED THEN UPDATE SET lovelace = reward.lovelace - taken.lovelace

-- name: make_rewards_due
INSERT INTO reward_due (stake_no, slot_no) SELECT unnest($1::integer[]), $2
ON CONFLICT (stake_no) DO UPDATE SET slot_no = excluded.slot_no

-- name: bring_rewards_due_back
-- Rewards that were due at a slot that is rolled back are due at the tip, $1.
UPDATE reward_due SET slot_no = $1 WHERE slot_no > $1

-- name: refresh_delegators
-- Bring the lists of delegators and their buckets up to date for stake credentials $1: pool, balance and reward.
WITH moved AS MATERIALIZED (
    SELECT stake_no, d.ctid AS row_ctid, d.pool_no AS left_pool_no, d.bucket AS left_bucket, d.amount AS left_amount,
           delegation.pool_no, delegation.balance + coalesce(reward.lovelace, 0) AS amount
    FROM unnest($1::integer[]) AS wanted (stake_no)
    LEFT JOIN delegation USING (stake_no) LEFT JOIN reward USING (stake_no) LEFT JOIN delegator d USING (stake_no)
), removed AS (
    DELETE FROM delegator d USING moved m WHERE d.ctid = m.row_ctid AND m.pool_no IS NULL
), changed AS (
    UPDATE delegator d SET pool_no = m.pool_no, amount = m.amount FROM moved m
    WHERE d.ctid = m.row_ctid AND m.pool_no IS NOT NULL AND (m.pool_no <> m.left_pool_no OR m.amount <> m.left_amount)
), added AS (
    INSERT INTO delegator (stake_no, pool_no, amount)
    SELECT stake_no, pool_no, amount FROM moved WHERE row_ctid IS NULL AND pool_no IS NOT NULL
), step AS MATERIALIZED (
    SELECT pool_no, delegator_bucket_of(amount, stake_no) AS bucket, 1 AS delegators, amount FROM moved
        WHERE pool_no IS NOT NULL
    UNION ALL
    SELECT left_pool_no, left_bucket, -1, -left_amount FROM moved WHERE row_ctid IS NOT NULL
), total AS (
    INSERT INTO live_stake AS present (lovelace) SELECT coalesce(sum(amount), 0) FROM step
    ON CONFLICT (one) DO UPDATE SET lovelace = present.lovelace + excluded.lovelace
)
INSERT INTO delegator_bucket AS present (pool_no, bucket, delegators, lovelace)
SELECT pool_no, bucket, sum(delegators), sum(amount) FROM step GROUP BY pool_no, bucket
HAVING sum(delegators) <> 0 OR sum(amount) <> 0
ON CONFLICT (pool_no, bucket) DO UPDATE SET
    delegators = present.delegators + excluded.delegators, lovelace = present.lovelace + excluded.lovelace

-- name: fill_delegators
-- Fill the empty tables.
INSERT INTO delegator (stake_no, pool_no, amount)
SELECT stake_no, pool_no, balance + coalesce(lovelace, 0)
FROM delegation LEFT JOIN reward USING (stake_no)
ORDER BY pool_no

-- name: fill_delegator_buckets
INSERT INTO delegator_bucket (pool_no, bucket, delegators, lovelace)
SELECT pool_no, bucket, count(*), sum(amount) FROM delegator GROUP BY pool_no, bucket ORDER BY pool_no, bucket

-- name: fill_live_stake
INSERT INTO live_stake (lovelace) SELECT coalesce(sum(lovelace), 0) FROM delegator_bucket

-- name: undo
-- Before the blocks from slot $1 and tx_id $2 on are deleted: take those of the new tip's epoch, $3, out of its sums,
-- and those of this epoch and the next one out of their pools' counts. $4 and $5 are the first slots of the two epochs
-- after it, $6 is the first slot after Byron, and $7 the lovelace of the outputs in the undone blocks of epoch $3. Rows
-- of later epochs are deleted with the blocks.
--
-- Returns the stake credentials of undone events, and the pools that were reaped in undone epochs.
WITH undone AS MATERIALIZED (
    SELECT slot_no, tx_count, pool_no, CASE WHEN slot_no < $4 THEN $3 ELSE $3 + 1 END AS epoch_no
    FROM block WHERE slot_no >= $1 AND slot_no < $5
), sums AS MATERIALIZED (
    SELECT count(*) AS blocks, coalesce(sum(tx_count), 0) AS transactions,
           (SELECT coalesce(sum(fee), 0) FROM tx WHERE tx_id >= $2 AND tx_id < $4::bigint << 16) AS fees
    FROM undone WHERE epoch_no = $3
), emptied AS (
    -- The tip's epoch has no blocks left if the tip is its epoch boundary block.
    DELETE FROM epoch USING sums WHERE epoch_no = $3 AND epoch.blocks = sums.blocks
), smaller AS (
    UPDATE epoch SET
        blocks = epoch.blocks - sums.blocks, tx_count = tx_count - sums.transactions, fees = epoch.fees - sums.fees,
        output = output - $7::numeric
    FROM sums WHERE epoch_no = $3 AND epoch.blocks > sums.blocks
), of_pools AS MATERIALIZED (
    SELECT pool_no, epoch_no, count(*) AS blocks FROM undone WHERE slot_no >= $6 GROUP BY pool_no, epoch_no
), emptied_pools AS (
    DELETE FROM pool_epoch p USING of_pools u
    WHERE p.pool_no = u.pool_no AND p.epoch_no = u.epoch_no AND p.blocks = u.blocks AND active_stake = 0
), smaller_pools AS (
    UPDATE pool_epoch p SET blocks = p.blocks - u.blocks FROM of_pools u
    WHERE p.pool_no = u.pool_no AND p.epoch_no = u.epoch_no AND (p.blocks > u.blocks OR active_stake > 0)
)
SELECT ARRAY(SELECT DISTINCT stake_no FROM stake_event WHERE tx_id >= $2) AS stake_nos,
       ARRAY(SELECT pool_no FROM pool_reaping WHERE epoch_no > $3) AS reaped

-- name: undo_readings
-- Rewards that were read in an epoch after $1 must be read and compared again, in whichever epoch comes next, so
-- epoch_no is cleared. A long rollback runs this several times. Once epoch_no is cleared, only complete_epoch_no may
-- still have to be lowered.
UPDATE ledger_state SET
    epoch_no = CASE WHEN epoch_no > $1 THEN -1 ELSE epoch_no END,
    next_stake_no = CASE WHEN epoch_no > $1 THEN 0 ELSE next_stake_no END,
    complete_epoch_no = CASE WHEN complete_epoch_no > $1 THEN $1 ELSE complete_epoch_no END
WHERE epoch_no > $1 OR complete_epoch_no > $1

-- name: restore_delegations
-- Set the delegation of credentials to their last stake_event.
UPDATE stake SET pool_no = last.pool_no,
    active_epoch_no = CASE WHEN last.pool_no IS NOT NULL THEN last.epoch_no + $2 END
FROM unnest($1::integer[]) AS changed (stake_no) LEFT JOIN LATERAL (
    SELECT pool_no, epoch_no FROM stake_event
    WHERE stake_event.stake_no = changed.stake_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON true
WHERE stake.stake_no = changed.stake_no
