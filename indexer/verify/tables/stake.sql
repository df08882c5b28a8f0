-- Checks of delegations, lists of delegators, blocks of pools and snapshots; each returns the first $1 differences.

-- name: check_delegation
-- A credential's delegation is that of its last stake_event.
SELECT 'delegation of stake credential ' || encode(stake.raw, 'hex') AS what, NULL::bytea AS address,
       format('pool_no %s from epoch %s', stake.pool_no, stake.active_epoch_no) AS indexed,
       format('pool_no %s from epoch %s', last.pool_no, last.epoch_no + $2::integer) AS recomputed
FROM stake LEFT JOIN LATERAL (
    SELECT pool_no, CASE WHEN pool_no IS NOT NULL THEN epoch_no END AS epoch_no
    FROM stake_event WHERE stake_event.stake_no = stake.stake_no ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON true
WHERE stake.pool_no IS DISTINCT FROM last.pool_no OR stake.active_epoch_no IS DISTINCT FROM last.epoch_no + $2::integer
ORDER BY stake.stake_no
LIMIT $1

-- name: check_pool_epoch
-- Blocks of pools. Byron, with $2 slots and $3 epochs, has none; an epoch of later eras has $4 slots. A row for an
-- epoch after the next one is wrong: the insert at that epoch's boundary would fail.
SELECT format('blocks of pool %s in epoch %s', encode(pool.pool_id, 'hex'), epoch_no) AS what, NULL::bytea AS address,
       coalesce(pool_epoch.blocks, 0)::text AS indexed,
       CASE WHEN epoch_no <= next_epoch_no THEN coalesce(made.blocks, 0)::text ELSE 'no row' END AS recomputed
FROM pool_epoch
FULL JOIN (
    SELECT pool_no, (slot_no - $2::bigint) / $4::bigint + $3::bigint AS epoch_no, count(*) AS blocks
    FROM block WHERE slot_no >= $2::bigint GROUP BY 1, 2
) made USING (pool_no, epoch_no)
LEFT JOIN pool USING (pool_no)
CROSS JOIN (SELECT (slot_no - $2::bigint) / $4::bigint + $3::bigint + 1 AS next_epoch_no FROM tip) tip
WHERE coalesce(pool_epoch.blocks, 0) <> coalesce(made.blocks, 0) OR epoch_no > next_epoch_no
ORDER BY epoch_no, pool_no
LIMIT $1

-- name: check_delegator
-- The lists contain every delegation that counts, with its balance and reward.
SELECT 'amount of delegator ' || encode(stake.raw, 'hex') AS what, NULL::bytea AS address,
       format('%s in the list of pool_no %s', delegator.amount, delegator.pool_no) AS indexed,
       format('%s in the list of pool_no %s',
              CASE WHEN d.pool_no IS NOT NULL THEN d.balance + coalesce(reward.lovelace, 0) END,
                  d.pool_no) AS recomputed
FROM stake LEFT JOIN reward USING (stake_no) LEFT JOIN delegation d USING (stake_no) FULL
    JOIN delegator USING (stake_no)
WHERE d.pool_no IS DISTINCT FROM delegator.pool_no OR d.balance + coalesce(reward.lovelace, 0) <> delegator.amount
ORDER BY stake_no
LIMIT $1

-- name: check_delegator_bucket
SELECT format('bucket %s of pool_no %s', bucket, pool_no) AS what, NULL::bytea AS address,
       format('%s delegators with %s', coalesce(b.delegators, 0), coalesce(b.lovelace, 0)) AS indexed,
       format('%s delegators with %s', coalesce(counted.delegators, 0), coalesce(counted.lovelace, 0)) AS recomputed
FROM delegator_bucket b
FULL JOIN (
    SELECT pool_no, bucket, count(*) AS delegators, sum(amount) AS lovelace FROM delegator GROUP BY pool_no, bucket
) counted USING (pool_no, bucket)
WHERE coalesce(b.delegators, 0) <> coalesce(counted.delegators, 0)
   OR coalesce(b.lovelace, 0) <> coalesce(counted.lovelace, 0)
ORDER BY pool_no, bucket
LIMIT $1

-- name: check_live_stake
SELECT 'live_stake' AS what, NULL::bytea AS address, coalesce(total.lovelace, 0)::text AS indexed,
       coalesce(sums.lovelace, 0)::text AS recomputed
FROM (SELECT sum(amount) AS lovelace FROM delegator) sums LEFT JOIN live_stake total ON true
WHERE coalesce(total.lovelace, 0) <> coalesce(sums.lovelace, 0)
LIMIT $1

-- name: start
-- The number of accounts and of pools, and the slots of the first block and of the noted one, $1.
SELECT (SELECT coalesce(max(stake_no), 0) FROM stake WHERE stake_no <= (SELECT count(*) FROM stake)) AS accounts,
       (SELECT coalesce(max(pool_no), 0) FROM pool WHERE pool_no <= (SELECT count(*) FROM pool)) AS pools,
       least((SELECT min(slot_no) FROM block), (SELECT min(slot_no) FROM epoch_boundary_block)) AS first_slot_no,
       $1::bigint AS last_slot_no

-- name: events
-- The changes of stake credentials from tx_id $1 to before $2, in order; without a pool, 0.
SELECT tx_id, stake_no, coalesce(pool_no, 0) AS pool_no FROM stake_event
WHERE tx_id >= $1 AND tx_id < $2 ORDER BY tx_id, place

-- name: reaped
-- The pools that were reaped, by epoch.
SELECT epoch_no, array_agg(pool_no) AS pool_nos FROM pool_reaping GROUP BY epoch_no

-- name: stored
-- The stakes of pools by the epoch in which they count, up to epoch $1.
SELECT epoch_no, array_agg(pool_no) AS pool_nos, array_agg(active_stake) AS stakes
FROM pool_epoch WHERE active_stake <> 0 AND epoch_no <= $1 GROUP BY epoch_no

-- name: names
SELECT pool_no, pool_id FROM pool WHERE pool_no = ANY ($1::integer[])
