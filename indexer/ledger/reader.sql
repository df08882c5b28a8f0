-- Data that blocks do not contain, read from the node's ledger.

-- name: state
SELECT epoch_no, next_stake_no, complete_epoch_no FROM ledger_state

-- name: store_configuration
-- Again in each epoch, since a later Ogmios tells more of it.
INSERT INTO genesis_configuration AS stored (era, configuration) VALUES ($1, $2::text::json)
ON CONFLICT (era) DO UPDATE SET configuration = excluded.configuration
WHERE stored.configuration::text <> excluded.configuration::text

-- name: store_parameters
-- Another node may refuse to tell the nonce.
INSERT INTO epoch_parameters AS stored (epoch_no, parameters, nonce) VALUES ($1, $2::text::json, $3)
ON CONFLICT (epoch_no) DO UPDATE SET
    parameters = excluded.parameters, nonce = coalesce(excluded.nonce, stored.nonce)

-- name: insert_epoch
-- All rewards are to be read again. Figures that the node did not report keep their values from an earlier epoch.
INSERT INTO ledger_state AS present (slot_no, epoch_no, next_stake_no, desired_pools, reserves, treasury)
VALUES ($1, $2, 0, $3, $4, $5)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, epoch_no = excluded.epoch_no, next_stake_no = excluded.next_stake_no,
    desired_pools = coalesce(excluded.desired_pools, present.desired_pools),
    reserves = coalesce(excluded.reserves, present.reserves), treasury = coalesce(excluded.treasury, present.treasury)

-- name: due
-- Accounts whose reward is to be read before all others, oldest first.
SELECT stake_no, raw FROM reward_due JOIN stake USING (stake_no) ORDER BY reward_due.slot_no, stake_no LIMIT $1

-- name: registered
-- The next accounts of the round of epoch $3: all that are registered, or were when the epoch began. Rewards are also
-- paid to those that no longer delegate.
SELECT stake_no, raw FROM stake
WHERE stake_no >= $1
  AND (pool_no IS NOT NULL
       OR (SELECT kind <> 'deregistration' OR epoch_no >= $3 FROM stake_event
           WHERE stake_event.stake_no = stake.stake_no ORDER BY tx_id DESC, place DESC LIMIT 1))
ORDER BY stake_no LIMIT $2

-- name: delete_rewards
-- Delete the rewards of accounts that had none at slot $2, unless an account has changed since.
DELETE FROM reward WHERE stake_no = ANY ($1::integer[])
    AND NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = reward.stake_no AND reward_due.slot_no > $2)

-- name: store_rewards
-- Store rewards as of slot $3, unless an account has changed since.
INSERT INTO reward (stake_no, lovelace)
SELECT stake_no, lovelace
FROM unnest($1::integer[], $2::bigint[]) AS found (stake_no, lovelace)
WHERE NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = found.stake_no AND reward_due.slot_no > $3)
ON CONFLICT (stake_no) DO UPDATE SET lovelace = excluded.lovelace

-- name: clear_rewards_due
DELETE FROM reward_due WHERE stake_no = ANY ($1::integer[]) AND slot_no <= $2

-- name: set_next_stake_no
-- It stays as it is if $1 is null. A new version of the row also tells the API that answers may have changed.
UPDATE ledger_state SET next_stake_no = coalesce($1, next_stake_no)

-- name: forget_begun_round
-- What rounds have stored that were not completed: an earlier one of epoch $1, and those of epochs that ended before.
DELETE FROM reward_epoch
WHERE epoch_no <= $1 AND epoch_no > coalesce((SELECT max(epoch_no) FROM reward_round WHERE epoch_no <= $1), -1)

-- name: store_reward_epoch
-- What accounts $1, ascending, held when epoch $3 began, and what was paid to them then, unless the epoch's round is
-- complete. Before tx_id $6 their rewards are $2; epoch $3 begins at tx_id $5, the one before at $4. What was paid is
-- what an account held more than at the end of the epoch before. Cost: the chunks with withdrawals of the two epochs,
-- from the last one back. Numbers that are not negative sort like their bytes.
WITH RECURSIVE read AS MATERIALIZED (
    SELECT stake_no, lovelace FROM unnest($1::integer[], $2::bigint[]) AS read (stake_no, lovelace)
    WHERE NOT EXISTS (SELECT FROM reward_round WHERE epoch_no = $3)
), recent AS (
    SELECT stake_no, last.chunk, last.entries
    FROM read CROSS JOIN LATERAL (
        SELECT chunk, entries FROM account_withdrawal
        WHERE account_withdrawal.stake_no = read.stake_no ORDER BY chunk DESC LIMIT 1
    ) last
    WHERE substr(last.entries, length(last.entries) - 17, 8) >= int8send($4)
    UNION ALL
    SELECT earlier.stake_no, earlier.chunk, earlier.entries
    FROM recent JOIN account_withdrawal earlier
        ON earlier.stake_no = recent.stake_no AND earlier.chunk = recent.chunk - 1
    WHERE substr(recent.entries, 1, 8) >= int8send($4)
), moved AS MATERIALIZED (
    SELECT stake_no, entry >= int8send($5) AS since, quantity_at(entry, 8) AS lovelace
    FROM recent CROSS JOIN LATERAL (
        SELECT substr(entries, place * 18 + 1, 18) AS entry FROM generate_series(0, length(entries) / 18 - 1) AS place
    ) taken
    WHERE entry >= int8send($4) AND entry < int8send($6)
    UNION ALL
    SELECT read.stake_no, credit.tx_id >= $5, -credit.lovelace
    FROM read JOIN account_credit credit ON credit.stake_no = read.stake_no AND credit.tx_id >= $4 AND credit.tx_id < $6
), taken AS (
    SELECT stake_no, coalesce(sum(lovelace) FILTER (WHERE NOT since), 0) AS lately,
           coalesce(sum(lovelace) FILTER (WHERE since), 0) AS since
    FROM moved GROUP BY stake_no
), before AS (
    SELECT (reward_epoch.chunk << 6) + get_byte(entries, place * 17) AS stake_no,
           tx_id_at(entries, place * 17 + 1) AS lovelace
    FROM reward_epoch
    CROSS JOIN LATERAL generate_series(0, length(entries) / 17 - 1) AS place
    WHERE epoch_no = $3 - 1 AND chunk = ANY (ARRAY(SELECT DISTINCT stake_no >> 6 FROM read))
), held AS (
    SELECT stake_no, (read.lovelace + coalesce(taken.since, 0))::bigint AS lovelace,
           (read.lovelace + coalesce(taken.since + taken.lately, 0) - coalesce(before.lovelace, 0))::bigint AS paid
    FROM read LEFT JOIN taken USING (stake_no) LEFT JOIN before USING (stake_no)
), known AS (
    SELECT stake_no, lovelace,
           CASE WHEN EXISTS (SELECT FROM reward_round WHERE epoch_no = $3 - 1) THEN paid ELSE 0 END AS paid
    FROM held
)
INSERT INTO reward_epoch AS present (chunk, epoch_no, entries)
SELECT stake_no >> 6, $3,
       string_agg(set_byte('\x00', 0, stake_no & 63) || int8send(lovelace) || int8send(paid), '' ORDER BY stake_no)
FROM known WHERE lovelace <> 0 OR paid <> 0
GROUP BY stake_no >> 6
ON CONFLICT (chunk, epoch_no) DO UPDATE SET entries = present.entries || excluded.entries

-- name: earnings
-- The delegators of pools in the stake snapshot of epoch $1, and their rewards for it, which the beginning of epoch $2
-- paid, less the deposits $4 that it returned; $3 is the first tx_id after that snapshot's delegations, $5 the first of
-- the epoch before. Without a row if the snapshot or what was paid is not known. An account counts for the pool to
-- which it delegated if that made blocks, else for the one that it leads, the first of several: anyone can register a
-- pool that names another's account. A pool's first registration, also after it retired, counts two epochs later, a
-- change three, as in `active_epochs` of api/blockfrost/rewards.py: a registration is a change if no retirement was
-- announced since the one before that took place. Cost: one pass over all accounts and the snapshot.
WITH made AS MATERIALIZED (
    SELECT pool_no FROM pool_epoch WHERE epoch_no = $1 AND blocks > 0
), updated AS (
    SELECT DISTINCT ON (pool_no) pool_no, tx_id, place
    FROM pool_update present JOIN made USING (pool_no)
    WHERE tx_id < $3 AND (tx_id < $5 OR NOT EXISTS (
        SELECT FROM (
            SELECT tx_id, place FROM pool_update
            WHERE pool_update.pool_no = present.pool_no AND (tx_id, place) < (present.tx_id, present.place)
            ORDER BY tx_id DESC, place DESC LIMIT 1
        ) before
        WHERE NOT EXISTS (
            SELECT FROM pool_retirement announced JOIN pool_reaping reaping USING (pool_no, epoch_no)
            WHERE announced.pool_no = present.pool_no AND epoch_no <= $1 - 2
              AND (announced.tx_id, announced.place) > (before.tx_id, before.place)
        )
    ))
    ORDER BY pool_no, tx_id DESC, place DESC
), leads AS MATERIALIZED (
    SELECT own.stake_no, min(own.pool_no) AS pool_no
    FROM updated JOIN pool_reward_account own USING (pool_no, tx_id, place)
    GROUP BY own.stake_no
), returned AS MATERIALIZED (
    SELECT own.stake_no, $4::bigint * count(*) AS lovelace
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
    ) last
    JOIN pool_reward_account own
        ON own.pool_no = reaping.pool_no AND own.tx_id = last.tx_id AND own.place = last.place
    WHERE reaping.epoch_no = $2
    GROUP BY own.stake_no
), members AS MATERIALIZED (
    SELECT pool_no, stake_no FROM stake_snapshot_entry WHERE epoch_no = $1
), joined AS (
    SELECT pool_no, stake_no FROM members JOIN made USING (pool_no)
), earned AS (
    SELECT coalesce(joined.pool_no, leads.pool_no) AS pool_no, paid - coalesce(returned.lovelace, 0) AS lovelace
    FROM reward_epoch_entry
    LEFT JOIN joined USING (stake_no) LEFT JOIN leads USING (stake_no) LEFT JOIN returned USING (stake_no)
    WHERE epoch_no = $2 AND paid > coalesce(returned.lovelace, 0)
)
SELECT pool_no, coalesce(counted.delegators, 0) AS delegators, coalesce(summed.lovelace, 0) AS lovelace
FROM (SELECT pool_no, count(*) AS delegators FROM members GROUP BY pool_no) counted
FULL JOIN (
    SELECT pool_no, sum(lovelace)::bigint AS lovelace FROM earned WHERE pool_no IS NOT NULL GROUP BY pool_no
) summed USING (pool_no)
WHERE EXISTS (SELECT FROM reward_round WHERE epoch_no = $2 - 1) AND EXISTS (SELECT FROM members)

-- name: store_earnings
-- What pools $2 earned in epoch $1: their delegators $3 and rewards $4.
INSERT INTO pool_earning (pool_no, epoch_no, delegators, lovelace)
SELECT pool_no, $1, delegators, lovelace
FROM unnest($2::integer[], $3::integer[], $4::bigint[]) AS found (pool_no, delegators, lovelace)
ON CONFLICT DO NOTHING

-- name: complete_round
INSERT INTO reward_round (epoch_no) VALUES ($1) ON CONFLICT DO NOTHING

-- name: outputs_in_stake_snapshot
-- Every pool, with the lovelace of its delegators' outputs in the stake snapshot that counts in epoch $1.
SELECT pool_no, pool_id, coalesce(active_stake, 0) AS lovelace
FROM pool LEFT JOIN (SELECT pool_no, active_stake FROM pool_epoch WHERE epoch_no = $1) snapshot USING (pool_no)

-- name: delegations_at
-- The pools to which the accounts $1 delegate at the beginning of epoch $3, at tx_id $2, after pools were reaped.
SELECT stake.raw AS account, pool.pool_id
FROM stake CROSS JOIN LATERAL (
    SELECT pool_no, epoch_no FROM stake_event
    WHERE stake_event.stake_no = stake.stake_no AND tx_id < $2
    ORDER BY tx_id DESC, place DESC LIMIT 1
) last JOIN pool ON pool.pool_no = last.pool_no
WHERE stake.raw = ANY ($1::bytea[])
  AND NOT EXISTS (SELECT FROM pool_reaping r
                  WHERE r.pool_no = last.pool_no AND r.epoch_no > last.epoch_no AND r.epoch_no <= $3)

-- name: reaped
-- The parameters of each pool that was reaped at the beginning of epoch $1, at tx_id $2.
SELECT latest.parameters
FROM pool_reaping r CROSS JOIN LATERAL (
    SELECT parameters FROM pool_update
    WHERE pool_update.pool_no = r.pool_no AND tx_id < $2
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
WHERE r.epoch_no = $1

-- name: extras_from
-- The first $2 transactions from tx_id $1 on that may have withdrawals.
SELECT tx_id, extra FROM tx WHERE tx_id >= $1 AND extra IS NOT NULL ORDER BY tx_id LIMIT $2

-- name: account_rewards
-- The rewards that accounts held at the beginning of epoch $4, at tx_id $1, summed by the pool to which they delegated
-- just before: their current rewards, plus $3 for the accounts in $2.
WITH changed AS MATERIALIZED (
    SELECT DISTINCT stake_no FROM stake_event WHERE tx_id >= $1
), held AS MATERIALIZED (
    SELECT stake_no, sum(lovelace)::bigint AS lovelace
    FROM (
        SELECT stake_no, lovelace FROM reward
        UNION ALL
        SELECT stake_no, lovelace FROM unnest($2::bytea[], $3::bigint[]) AS moved (raw, lovelace) JOIN stake USING (raw)
    ) parts
    GROUP BY stake_no
)
SELECT pool_no, sum(lovelace)::bigint AS lovelace
FROM (
    SELECT stake.pool_no, active_epoch_no - 2 AS since, held.lovelace
    FROM held JOIN stake USING (stake_no)
    WHERE NOT EXISTS (SELECT FROM changed WHERE changed.stake_no = held.stake_no)
    UNION ALL
    SELECT last.pool_no, last.epoch_no, held.lovelace
    FROM changed JOIN held USING (stake_no) CROSS JOIN LATERAL (
        SELECT pool_no, epoch_no FROM stake_event
        WHERE stake_event.stake_no = changed.stake_no AND tx_id < $1
        ORDER BY tx_id DESC, place DESC LIMIT 1
    ) last
) then_delegated
WHERE pool_no IS NOT NULL
  AND NOT EXISTS (SELECT FROM pool_reaping r
                  WHERE r.pool_no = then_delegated.pool_no AND r.epoch_no > since AND r.epoch_no < $4)
GROUP BY pool_no

-- name: delete_pool_rewards
DELETE FROM pool_reward WHERE epoch_no = $1

-- name: store_pool_rewards
INSERT INTO pool_reward (pool_no, epoch_no, lovelace)
SELECT pool_no, $3, lovelace FROM unnest($1::integer[], $2::bigint[]) AS found (pool_no, lovelace)

-- name: complete_epoch
-- All rewards are read.
UPDATE ledger_state SET next_stake_no = NULL, complete_epoch_no = epoch_no
