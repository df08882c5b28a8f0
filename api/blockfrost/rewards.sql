-- Rewards of a stake account by epoch.

-- name: stake_no
-- The number of an account $1.
SELECT stake_no FROM stake WHERE raw = $1

-- name: rounds
-- The epochs, ascending, of which it is known what their beginning paid: they and the one before are read completely.
-- Cost: the epochs that were read.
SELECT epoch_no FROM reward_round
WHERE EXISTS (SELECT FROM reward_round before WHERE before.epoch_no = reward_round.epoch_no - 1)
ORDER BY epoch_no

-- name: paid
-- What the accounts of chunk $1 held at the beginning of epochs, and were paid then. Cost: the epochs that were read.
SELECT epoch_no, entries FROM reward_epoch WHERE chunk = $1

-- name: events
-- The last certificate of each epoch of the account with number $1 about its stake, in order.
SELECT DISTINCT ON (epoch_no) kind, pool_no, epoch_no FROM stake_event WHERE stake_no = $1
ORDER BY epoch_no, tx_id DESC, place DESC

-- name: reapings
-- When the pools $2, and those that ever named the account with number $1, retired, and whether it was their reward
-- account then: that of the last registration before the retirement was announced, since a later one would have
-- cancelled it.
SELECT reaping.pool_no, reaping.epoch_no, own.stake_no IS NOT NULL AS refunds
FROM pool_reaping reaping
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_retirement
    WHERE pool_retirement.pool_no = reaping.pool_no AND pool_retirement.epoch_no = reaping.epoch_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) announced
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_update
    WHERE pool_update.pool_no = reaping.pool_no AND (tx_id, place) < (announced.tx_id, announced.place)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) updated
LEFT JOIN pool_reward_account own ON own.stake_no = $1 AND own.tx_id = updated.tx_id AND own.place = updated.place
WHERE reaping.pool_no IN (
    SELECT unnest($2::integer[]) UNION SELECT pool_no FROM pool_reward_account WHERE stake_no = $1
)

-- name: made
-- Which of the pools $1 made blocks in the epochs $2, one for each. Cost: one look-up for each.
SELECT pool_no, epoch_no FROM unnest($1::integer[], $2::integer[]) AS joined (pool_no, epoch_no)
JOIN pool_epoch USING (pool_no, epoch_no)
WHERE blocks > 0

-- name: led_made
-- The pools that ever named the account with number $1, in those of the epochs $2 in which they made blocks.
SELECT pool_no, epoch_no
FROM (SELECT DISTINCT pool_no FROM pool_reward_account WHERE stake_no = $1) led JOIN pool_epoch USING (pool_no)
WHERE epoch_no = ANY ($2::integer[]) AND blocks > 0

-- name: updates
-- The registrations, in order, of those of the pools $2 that ever named the account with number $1, and which name it.
SELECT updated.tx_id, updated.pool_no, own.stake_no IS NOT NULL AS named
FROM (SELECT DISTINCT pool_no FROM pool_reward_account WHERE stake_no = $1 AND pool_no = ANY ($2::integer[])) led
JOIN pool_update updated ON updated.pool_no = led.pool_no
LEFT JOIN pool_reward_account own
    ON own.stake_no = $1 AND own.tx_id = updated.tx_id AND own.place = updated.place
ORDER BY updated.tx_id, updated.place

-- name: pools
-- The ids of the pools with the numbers $1.
SELECT pool_no, pool_id FROM pool WHERE pool_no = ANY ($1::integer[])
