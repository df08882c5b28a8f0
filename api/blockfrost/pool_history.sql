-- The epochs of pools.

-- name: pool_no
-- The number of a pool $1, registered now or earlier.
SELECT pool_no FROM pool
WHERE pool_id = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)

-- name: known
-- The epochs, ascending, of which stakes and rewards are known: the snapshot was taken live, the rewards in it were
-- read, and what the beginning of the second epoch after it paid is known. Cost: the epochs that were read.
SELECT epoch_no - 2 FROM reward_round
WHERE EXISTS (SELECT FROM reward_round before WHERE before.epoch_no = reward_round.epoch_no - 1)
  AND EXISTS (SELECT FROM reward_round opened WHERE opened.epoch_no = reward_round.epoch_no - 3)
  AND EXISTS (SELECT FROM stake_snapshot WHERE stake_snapshot.epoch_no = reward_round.epoch_no - 2)
ORDER BY 1

-- name: epochs
-- A page of the epochs in which the pool with number $1 had delegators, as far as they are known; $2 limit, $3 offset.
-- Cost: the pool's epochs up to the end of the page.
SELECT epoch_no, coalesce(blocks, 0) AS blocks,
       coalesce(active_stake, 0) + coalesce(pool_reward.lovelace, 0) AS active_stake, delegators,
       pool_earning.lovelace AS rewards
FROM pool_earning
LEFT JOIN pool_epoch USING (pool_no, epoch_no)
LEFT JOIN pool_reward USING (pool_no, epoch_no)
WHERE pool_no = $1 AND delegators > 0
  AND EXISTS (SELECT FROM reward_round WHERE reward_round.epoch_no = pool_earning.epoch_no - 1)
ORDER BY epoch_no {order}
LIMIT $2 OFFSET $3

-- name: updates
-- The registrations of the pool with number $1, in order.
SELECT tx_id, parameters FROM pool_update WHERE pool_no = $1 ORDER BY tx_id, place

-- name: reapings
-- The epochs at whose beginning the pool with number $1 retired.
SELECT epoch_no FROM pool_reaping WHERE pool_no = $1
