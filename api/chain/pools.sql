-- name: pool
-- A pool $1 in the tip's epoch $2; no row if it was never registered. A retirement counts unless a later registration
-- cancels it. Cost: the pool's epochs and buckets, regardless of the number of delegators.
SELECT latest.parameters, retirement.epoch_no AS retirement_epoch_no,
       coalesce(present.active_stake, 0) + coalesce(pool_reward.lovelace, 0) AS active_stake,
       live.lovelace AS live_stake, live.delegators AS delegator_count, minted.blocks AS blocks_minted,
       coalesce(present.blocks, 0) AS blocks_epoch,
       ledger_state.reserves, ledger_state.desired_pools
FROM pool
CROSS JOIN LATERAL (
    SELECT tx_id, place, parameters FROM pool_update WHERE pool_update.pool_no = pool.pool_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
LEFT JOIN LATERAL (
    SELECT epoch_no FROM pool_retirement
    WHERE pool_retirement.pool_no = pool.pool_no AND (tx_id, place) > (latest.tx_id, latest.place)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) retirement ON true
CROSS JOIN LATERAL (
    SELECT coalesce(sum(lovelace), 0)::bigint AS lovelace, coalesce(sum(delegators), 0) AS delegators
    FROM delegator_bucket WHERE delegator_bucket.pool_no = pool.pool_no
) live
CROSS JOIN LATERAL (
    SELECT coalesce(sum(blocks), 0) AS blocks FROM pool_epoch WHERE pool_epoch.pool_no = pool.pool_no
) minted
LEFT JOIN pool_epoch present ON present.pool_no = pool.pool_no AND present.epoch_no = $2
LEFT JOIN pool_reward ON pool_reward.pool_no = pool.pool_no AND pool_reward.epoch_no = $2
LEFT JOIN ledger_state ON true
WHERE pool.pool_id = $1

-- name: delegators
-- A page of a pool's delegators, largest first, ties by stake_no. No row if the network is not served; a single row
-- with nulls if the page is empty, with a null pool_no if the pool was never registered. Buckets skip to the offset, so
-- that every offset costs the same.
--   $1 pool_id  $2 limit  $3 offset
WITH found AS MATERIALIZED (
    SELECT pool_no FROM pool
    WHERE pool_id = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)
), buckets AS MATERIALIZED (
    SELECT bucket, delegators, sum(delegators) OVER (ORDER BY bucket) AS beyond
    FROM delegator_bucket JOIN found USING (pool_no)
), first AS MATERIALIZED (
    SELECT bucket, $3::bigint - (beyond - delegators) AS skipped
    FROM buckets WHERE beyond > $3 ORDER BY bucket LIMIT 1
), page AS (
    SELECT stake_no, bucket, amount
    FROM delegator
    WHERE pool_no = (SELECT pool_no FROM found) AND bucket >= (SELECT bucket FROM first)
    ORDER BY bucket, amount DESC, stake_no
    LIMIT $2 OFFSET (SELECT skipped FROM first)
)
SELECT found.pool_no, coalesce((SELECT max(beyond) FROM buckets), 0) AS total, stake.raw AS account, page.amount,
       stake.active_epoch_no, tip.block_hash AS tip_hash
FROM tip
LEFT JOIN found ON true
LEFT JOIN (page JOIN stake USING (stake_no)) ON true
WHERE tip.phase = 'live'
ORDER BY page.bucket, page.amount DESC, page.stake_no
