-- Stake snapshots with their delegators.

-- name: known
-- The epochs, ascending, whose stakes are known: their snapshot was taken live, and all rewards were read in the epoch
-- before, which began with it. Cost: the epochs that were read.
SELECT epoch_no + 1 FROM reward_round
WHERE EXISTS (SELECT FROM stake_snapshot WHERE stake_snapshot.epoch_no = reward_round.epoch_no + 1)
ORDER BY 1

-- name: pool_no
-- The number of a pool $1, registered now or earlier.
SELECT pool_no FROM pool
WHERE pool_id = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)

-- name: parts
-- The rows of the snapshot of epoch $1 with its entries from $2 to below $3, counted from 0, by pool and stake_no.
-- Cost: these rows, of up to 64 entries.
SELECT pool_no, first_seq, entries FROM stake_snapshot
WHERE epoch_no = $1 AND first_seq > $2::bigint - 64 AND first_seq < $3::bigint
ORDER BY first_seq

-- name: bounds
-- Where the entries of pool $2 begin in the snapshot of epoch $1, and where those after them do; none without any.
SELECT first_seq AS first, last.beyond
FROM stake_snapshot CROSS JOIN LATERAL (
    SELECT first_seq + length(entries) / 12 AS beyond FROM stake_snapshot
    WHERE epoch_no = $1 AND pool_no = $2 ORDER BY first_stake_no DESC LIMIT 1
) last
WHERE epoch_no = $1 AND pool_no = $2 ORDER BY first_stake_no LIMIT 1

-- name: held
-- What the accounts of chunks $1 held at the beginning of the epochs $2.
SELECT epoch_no, chunk, entries FROM reward_epoch
WHERE chunk = ANY ($1::integer[]) AND epoch_no = ANY ($2::integer[])

-- name: returned
-- Those of the accounts $1 to which the beginning of epoch $2 returned deposits of pools, and of how many. As reapings
-- in rewards.sql.
SELECT own.stake_no, count(*) AS pools
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
JOIN pool_reward_account own
    ON own.pool_no = reaping.pool_no AND own.tx_id = updated.tx_id AND own.place = updated.place
WHERE reaping.epoch_no = $2 AND own.stake_no = ANY ($1::integer[])
GROUP BY own.stake_no

-- name: accounts
-- The reward accounts with the numbers $1.
SELECT stake_no AS number, raw FROM stake WHERE stake_no = ANY ($1::integer[])

-- name: pools
-- The ids of the pools with the numbers $1.
SELECT pool_no AS number, pool_id AS raw FROM pool WHERE pool_no = ANY ($1::integer[])

-- name: own
-- The rows of snapshots in which the account with number $1 is, given their epochs $2 and its pools $3 there.
SELECT asked.epoch_no, asked.pool_no, part.entries
FROM unnest($2::integer[], $3::integer[]) AS asked (epoch_no, pool_no)
CROSS JOIN LATERAL (
    SELECT entries FROM stake_snapshot
    WHERE stake_snapshot.epoch_no = asked.epoch_no AND stake_snapshot.pool_no = asked.pool_no AND first_stake_no <= $1
    ORDER BY first_stake_no DESC LIMIT 1
) part
