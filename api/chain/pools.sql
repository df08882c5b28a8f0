-- A pool as of the tip's epoch, $2; no row for a hash, $1, that was never registered. Status follows from what was said last:
-- a retirement counts if no registration came after it. Cost: the pool's epochs and its buckets, however many delegators.
-- name: pool
SELECT latest.parameters, retirement.epoch_no,
       coalesce(present.active_stake, 0) + coalesce(pool_reward.lovelace, 0),
       live.lovelace, live.delegators, minted.blocks, coalesce(present.blocks, 0),
       ledger_state.reserves, ledger_state.desired_pools
FROM pool
CROSS JOIN LATERAL (
    SELECT tx_id, place, parameters FROM pool_update WHERE pool_update.pool_id = pool.pool_id
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
LEFT JOIN LATERAL (
    SELECT epoch_no FROM pool_retirement
    WHERE pool_retirement.pool_id = pool.pool_id AND (tx_id, place) > (latest.tx_id, latest.place)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) retirement ON true
CROSS JOIN LATERAL (
    SELECT coalesce(sum(lovelace), 0)::bigint AS lovelace, coalesce(sum(delegators), 0) AS delegators
    FROM delegator_bucket WHERE delegator_bucket.pool_id = pool.pool_id
) live
CROSS JOIN LATERAL (
    SELECT coalesce(sum(blocks), 0) AS blocks FROM pool_epoch WHERE pool_epoch.pool_id = pool.pool_id
) minted
LEFT JOIN pool_epoch present ON present.pool_id = pool.pool_id AND present.epoch_no = $2
LEFT JOIN pool_reward ON pool_reward.pool_id = pool.pool_id AND pool_reward.epoch_no = $2
LEFT JOIN ledger_state ON true
WHERE pool.hash = $1

-- A page of a pool's delegators, greatest first, ties by stake_id, with the tip of the same snapshot: no row where the network
-- is not served, one with nulls where the page is empty, and a null pool_id where the pool was never registered. Buckets lead to
-- the offset, so that every one costs the same.
--   $1 hash  $2 limit  $3 offset
-- name: delegators
WITH found AS MATERIALIZED (
    SELECT pool_id FROM pool
    WHERE hash = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_id = pool.pool_id)
), buckets AS MATERIALIZED (
    SELECT bucket, delegators, sum(delegators) OVER (ORDER BY bucket) AS beyond
    FROM delegator_bucket JOIN found USING (pool_id)
), first AS MATERIALIZED (
    SELECT bucket, $3::bigint - (beyond - delegators) AS skipped
    FROM buckets WHERE beyond > $3 ORDER BY bucket LIMIT 1
), page AS (
    SELECT stake_id, bucket, amount
    FROM delegator
    WHERE pool_id = (SELECT pool_id FROM found) AND bucket >= (SELECT bucket FROM first)
    ORDER BY bucket, amount DESC, stake_id
    LIMIT $2 OFFSET (SELECT skipped FROM first)
)
SELECT found.pool_id, coalesce((SELECT max(beyond) FROM buckets), 0), stake.raw, page.amount, stake.active_epoch_no
FROM tip
LEFT JOIN found ON true
LEFT JOIN (page JOIN stake USING (stake_id)) ON true
WHERE tip.phase = 'live'
ORDER BY page.bucket, page.amount DESC, page.stake_id
