-- What verify compares of stake, pools and epochs; each check returns the first $1 differences.

-- name: check_delegation
-- What a credential delegates to is the last word of its history.
SELECT 'delegation of stake credential ' || encode(stake.raw, 'hex'), NULL::bytea,
       format('pool_id %s from epoch %s', stake.pool_id, stake.active_epoch_no),
       format('pool_id %s from epoch %s', last.pool_id, last.epoch_no + $2::integer)
FROM stake LEFT JOIN LATERAL (
    SELECT pool_id, CASE WHEN pool_id IS NOT NULL THEN epoch_no END AS epoch_no
    FROM stake_event WHERE stake_event.stake_id = stake.stake_id ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON true
WHERE stake.pool_id IS DISTINCT FROM last.pool_id OR stake.active_epoch_no IS DISTINCT FROM last.epoch_no + $2::integer
ORDER BY stake.stake_id
LIMIT $1

-- name: check_reaping
-- In epoch $2 nobody delegates to a pool whose retirement, neither taken back nor moved, was for that epoch or an earlier one.
SELECT format('delegation of stake credential %s to pool %s, retired in epoch %s', encode(stake.raw, 'hex'), encode(pool.hash, 'hex'), r.epoch_no),
       NULL::bytea, 'alive', 'ended'
FROM pool_retirement r JOIN pool USING (pool_id) JOIN stake USING (pool_id)
WHERE r.epoch_no <= $2
  AND stake.active_epoch_no - $3::integer < r.epoch_no
  AND NOT EXISTS (SELECT FROM pool_retirement later
                  WHERE later.pool_id = r.pool_id AND (later.tx_id, later.place) > (r.tx_id, r.place))
  AND NOT EXISTS (SELECT FROM pool_update later
                  WHERE later.pool_id = r.pool_id AND (later.tx_id, later.place) > (r.tx_id, r.place))
ORDER BY stake.stake_id
LIMIT $1

-- name: check_pool_epoch
-- Blocks of pools, which make none in Byron: there were $2 slots and $3 epochs of it, an epoch of later eras has $4 slots.
SELECT format('blocks of pool %s in epoch %s', encode(pool.hash, 'hex'), epoch_no), NULL::bytea,
       coalesce(pool_epoch.blocks, 0)::text, coalesce(made.blocks, 0)::text
FROM pool_epoch
FULL JOIN (
    SELECT pool_id, (slot_no - $2::bigint) / $4::bigint + $3::bigint AS epoch_no, count(*) AS blocks
    FROM block WHERE pool_id IS NOT NULL GROUP BY 1, 2
) made USING (pool_id, epoch_no)
LEFT JOIN pool USING (pool_id)
WHERE coalesce(pool_epoch.blocks, 0) <> coalesce(made.blocks, 0)
ORDER BY epoch_no, pool_id
LIMIT $1

-- name: check_active_stake
-- The snapshot that counts in epoch $2, before tx_id $3: today's balances less what moved since, $5 by account in $4, by the
-- delegations of that instant.
WITH since AS MATERIALIZED (
    SELECT stake_id, lovelace FROM unnest($4::bytea[], $5::bigint[]) AS moved (raw, lovelace) JOIN stake USING (raw)
), changed AS MATERIALIZED (
    SELECT DISTINCT stake_id FROM stake_event WHERE tx_id >= $3
), then_delegated AS (
    SELECT stake_id, pool_id FROM stake
    WHERE pool_id IS NOT NULL AND NOT EXISTS (SELECT FROM changed WHERE changed.stake_id = stake.stake_id)
    UNION ALL
    SELECT changed.stake_id, last.pool_id
    FROM changed CROSS JOIN LATERAL (
        SELECT pool_id FROM stake_event WHERE stake_event.stake_id = changed.stake_id AND tx_id < $3
        ORDER BY tx_id DESC, place DESC LIMIT 1
    ) last
), recomputed AS (
    SELECT d.pool_id, sum(stake.balance - coalesce(since.lovelace, 0)) AS lovelace
    FROM then_delegated d JOIN stake USING (stake_id) LEFT JOIN since USING (stake_id)
    WHERE d.pool_id IS NOT NULL
    GROUP BY d.pool_id
)
SELECT format('active_stake of pool %s in epoch %s', encode(pool.hash, 'hex'), $2), NULL::bytea,
       coalesce(snapshot.active_stake, 0)::text, coalesce(recomputed.lovelace, 0)::text
FROM (SELECT pool_id, active_stake FROM pool_epoch WHERE epoch_no = $2) snapshot
FULL JOIN recomputed USING (pool_id)
LEFT JOIN pool USING (pool_id)
WHERE coalesce(snapshot.active_stake, 0) <> coalesce(recomputed.lovelace, 0)
ORDER BY pool_id
LIMIT $1

-- name: check_delegator
-- The lists hold every delegation with its balance and reward.
SELECT 'amount of delegator ' || encode(stake.raw, 'hex'), NULL::bytea,
       format('%s in the list of pool_id %s', delegator.amount, delegator.pool_id),
       format('%s in the list of pool_id %s',
              CASE WHEN stake.pool_id IS NOT NULL THEN stake.balance + coalesce(reward.lovelace, 0) END, stake.pool_id)
FROM stake LEFT JOIN reward USING (stake_id) FULL JOIN delegator USING (stake_id)
WHERE stake.pool_id IS DISTINCT FROM delegator.pool_id
   OR (stake.pool_id IS NOT NULL AND stake.balance + coalesce(reward.lovelace, 0) <> delegator.amount)
ORDER BY stake_id
LIMIT $1

-- name: check_delegator_bucket
SELECT format('bucket %s of pool_id %s', bucket, pool_id), NULL::bytea,
       format('%s delegators with %s', coalesce(b.delegators, 0), coalesce(b.lovelace, 0)),
       format('%s delegators with %s', coalesce(counted.delegators, 0), coalesce(counted.lovelace, 0))
FROM delegator_bucket b
FULL JOIN (
    SELECT pool_id, bucket, count(*) AS delegators, sum(amount) AS lovelace FROM delegator GROUP BY pool_id, bucket
) counted USING (pool_id, bucket)
WHERE coalesce(b.delegators, 0) <> coalesce(counted.delegators, 0)
   OR coalesce(b.lovelace, 0) <> coalesce(counted.lovelace, 0)
ORDER BY pool_id, bucket
LIMIT $1

-- name: ends
-- The first indexed block's slot and the tip's.
SELECT (SELECT slot_no FROM block ORDER BY slot_no LIMIT 1), slot_no FROM tip

-- name: transactions_from
-- Packed transactions from tx_id $1 on, the first $2 of them.
SELECT tx_id, outputs, inputs, extra FROM tx WHERE tx_id >= $1 ORDER BY tx_id LIMIT $2

-- name: node_comparison
-- What the last comparison of live stakes with the node's own ledger found.
SELECT complete_epoch_no, compared_pools, unlike_pools, difference FROM ledger_state WHERE compared_pools IS NOT NULL
