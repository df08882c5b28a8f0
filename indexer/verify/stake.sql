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
    FROM block WHERE pool_no IS NOT NULL GROUP BY 1, 2
) made USING (pool_no, epoch_no)
LEFT JOIN pool USING (pool_no)
CROSS JOIN (SELECT (slot_no - $2::bigint) / $4::bigint + $3::bigint + 1 AS next_epoch_no FROM tip) tip
WHERE coalesce(pool_epoch.blocks, 0) <> coalesce(made.blocks, 0) OR epoch_no > next_epoch_no
ORDER BY epoch_no, pool_no
LIMIT $1

-- name: check_active_stake
-- The snapshot that counts in epoch $2, taken before tx_id $3, and before pools were reaped: current balances less the later
-- changes ($5 by address in $4), summed by the delegations of that time.
WITH since AS MATERIALIZED (
    SELECT stake_no, sum(lovelace)::bigint AS lovelace
    FROM unnest($4::integer[], $5::bigint[]) AS moved (address_no, lovelace) JOIN address USING (address_no)
    WHERE stake_no IS NOT NULL
    GROUP BY stake_no
), changed AS MATERIALIZED (
    SELECT DISTINCT stake_no FROM stake_event WHERE tx_id >= $3
), then_delegated AS (
    SELECT stake_no, pool_no, active_epoch_no - 2 AS since FROM stake
    WHERE pool_no IS NOT NULL AND NOT EXISTS (SELECT FROM changed WHERE changed.stake_no = stake.stake_no)
    UNION ALL
    SELECT changed.stake_no, last.pool_no, last.epoch_no
    FROM changed CROSS JOIN LATERAL (
        SELECT pool_no, epoch_no FROM stake_event WHERE stake_event.stake_no = changed.stake_no AND tx_id < $3
        ORDER BY tx_id DESC, place DESC LIMIT 1
    ) last
), recomputed AS (
    SELECT d.pool_no, sum(stake.balance - coalesce(since.lovelace, 0)) AS lovelace
    FROM then_delegated d JOIN stake USING (stake_no) LEFT JOIN since USING (stake_no)
    WHERE d.pool_no IS NOT NULL
      AND NOT EXISTS (SELECT FROM pool_reaping r
                      WHERE r.pool_no = d.pool_no AND r.epoch_no > d.since AND r.epoch_no < $2::integer - 1)
    GROUP BY d.pool_no
)
SELECT format('active_stake of pool %s in epoch %s', encode(pool.pool_id, 'hex'), $2) AS what, NULL::bytea AS address,
       coalesce(snapshot.active_stake, 0)::text AS indexed, coalesce(recomputed.lovelace, 0)::text AS recomputed
FROM (SELECT pool_no, active_stake FROM pool_epoch WHERE epoch_no = $2) snapshot
FULL JOIN recomputed USING (pool_no)
LEFT JOIN pool USING (pool_no)
WHERE coalesce(snapshot.active_stake, 0) <> coalesce(recomputed.lovelace, 0)
ORDER BY pool_no
LIMIT $1

-- name: check_delegator
-- The lists contain every delegation that counts, with its balance and reward.
SELECT 'amount of delegator ' || encode(stake.raw, 'hex') AS what, NULL::bytea AS address,
       format('%s in the list of pool_no %s', delegator.amount, delegator.pool_no) AS indexed,
       format('%s in the list of pool_no %s',
              CASE WHEN d.pool_no IS NOT NULL THEN d.balance + coalesce(reward.lovelace, 0) END, d.pool_no) AS recomputed
FROM stake LEFT JOIN reward USING (stake_no) LEFT JOIN delegation d USING (stake_no) FULL JOIN delegator USING (stake_no)
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

-- name: ends
-- The first indexed block's slot and the tip's.
SELECT (SELECT slot_no FROM block ORDER BY slot_no LIMIT 1) AS first_slot_no, slot_no AS last_slot_no FROM tip
