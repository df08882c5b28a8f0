-- What the index knows of the ledger, to be compared with its node.

-- name: accounts
-- The next $2 accounts, from stake_no $1 on, that have a certificate or a reward, a random $3 percent of them. An
-- account whose certificates precede the first block is registered if it has a reward.
SELECT stake.stake_no, stake.raw, coalesce(last.kind <> 'deregistration', reward.lovelace IS NOT NULL) AS registered,
       last.kind IS NOT NULL AS certified, vote.representative, pool.pool_id, coalesce(reward.lovelace, 0) AS rewards,
       EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = stake.stake_no) AS due
FROM stake
LEFT JOIN LATERAL (
    SELECT kind FROM stake_event WHERE stake_event.stake_no = stake.stake_no ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON true
LEFT JOIN LATERAL (
    SELECT representative FROM vote_delegation WHERE vote_delegation.stake_no = stake.stake_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) vote ON true
LEFT JOIN reward ON reward.stake_no = stake.stake_no
LEFT JOIN delegation ON delegation.stake_no = stake.stake_no
LEFT JOIN pool ON pool.pool_no = delegation.pool_no
WHERE stake.stake_no >= $1 AND (last.kind IS NOT NULL OR reward.lovelace IS NOT NULL)
  AND random() * 100 < $3::double precision
ORDER BY stake.stake_no
LIMIT $2

-- name: genesis_outputs
-- The next $2 outputs of the genesis after the first $1.
SELECT g.tx_hash, g.address, g.lovelace,
       EXISTS (SELECT FROM address JOIN utxo USING (address_no)
               WHERE address.raw = g.address AND utxo.tx_id = g.tx_id) AS unspent
FROM genesis_output g WHERE g.tx_id < -$1::bigint << 16 ORDER BY g.tx_id DESC LIMIT $2

-- name: representatives
SELECT representative, deposit, anchor_url, anchor_hash FROM registered_representative

-- name: pools
-- All pools and block issuers, with the epoch in which they were last retired.
SELECT pool_no, (SELECT max(epoch_no) FROM pool_reaping WHERE pool_reaping.pool_no = pool.pool_no) AS reaped FROM pool

-- name: pool_updates
-- The parameters of pools $1 at tx_id $3, when the epoch began, or else in their first registration after that. A
-- pool's registrations before its tx_id in $2 do not count.
SELECT pool.pool_id, effective.parameters, effective.began
FROM unnest($1::integer[], $2::bigint[]) AS asked (pool_no, since)
JOIN pool USING (pool_no)
CROSS JOIN LATERAL (
    SELECT parameters, began FROM (
        (SELECT parameters, true AS began FROM pool_update
         WHERE pool_update.pool_no = asked.pool_no AND tx_id >= since AND tx_id < $3
         ORDER BY tx_id DESC, place DESC LIMIT 1)
        UNION ALL
        (SELECT parameters, false FROM pool_update
         WHERE pool_update.pool_no = asked.pool_no AND tx_id >= $3 ORDER BY tx_id, place LIMIT 1)
    ) either
    ORDER BY began DESC LIMIT 1
) effective

-- name: live_stakes
-- The live stake of each pool that was ever registered, by pool_id.
SELECT pool_id, coalesce(sum(lovelace), 0)::bigint AS lovelace
FROM pool LEFT JOIN delegator_bucket USING (pool_no)
WHERE EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)
GROUP BY pool.pool_no

-- name: stake_snapshot
-- The stake snapshot that counts in epoch $1, by pool_id.
SELECT pool.pool_id, coalesce(outputs.active_stake, 0) AS outputs, coalesce(rewards.lovelace, 0) AS rewards
FROM pool
LEFT JOIN (SELECT pool_no, active_stake FROM pool_epoch WHERE epoch_no = $1) outputs USING (pool_no)
LEFT JOIN (SELECT pool_no, lovelace FROM pool_reward WHERE epoch_no = $1) rewards USING (pool_no)
WHERE outputs.pool_no IS NOT NULL OR rewards.pool_no IS NOT NULL
