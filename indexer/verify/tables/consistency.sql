-- Checks of blocks, the genesis, hashes, references and the order of certificates; each returns the first $1
-- differences. Epochs: there were $2 slots and $3 epochs of Byron, which has no certificates; an epoch of later eras
-- has $4 slots.

-- name: genesis_outputs
SELECT tx_id, tx_hash, address FROM genesis_output ORDER BY tx_hash

-- name: updates
SELECT tx_id, pool_no, parameters FROM pool_update ORDER BY tx_id

-- name: check_chain
-- The index begins where its tip says, and blocks are numbered without gaps. blocks.py compares blocks with their
-- transactions, from tx_id 0 on.
SELECT 'first_block_no of tip' AS what, NULL::bytea AS address, first_block_no::text AS indexed,
       first.block_no::text AS recomputed
FROM tip, (
    SELECT min(block_no) AS block_no
    FROM (SELECT min(block_no) AS block_no FROM block UNION ALL SELECT min(block_no) FROM epoch_boundary_block) firsts
) first
WHERE first_block_no <> first.block_no
UNION ALL
SELECT 'block_no of block ' || slot_no, NULL, block_no::text, (before + 1)::text
FROM (SELECT slot_no, block_no, lag(block_no) OVER (ORDER BY slot_no) AS before FROM block) numbered
WHERE block_no <> before + 1
UNION ALL
SELECT 'tx_id of tx ' || encode(hash, 'hex'), NULL, tx_id::text, 'at least 0'
FROM tx WHERE tx_id < 0
LIMIT $1

-- name: check_eras
-- The first era after Byron begins with the first block from slot $2 on, and each later one with a block.
-- against_node.py compares which block that is.
SELECT 'first slot of era_start' AS what, NULL::bytea AS address, found.slot_no::text AS indexed,
       first.slot_no::text AS recomputed
FROM (SELECT min(slot_no) AS slot_no FROM era_start) found,
    (SELECT min(slot_no) AS slot_no FROM block WHERE slot_no >= $2) first
WHERE found.slot_no IS DISTINCT FROM first.slot_no
UNION ALL
SELECT 'block at the start of ' || era, NULL, 'none at slot ' || slot_no, 'a block'
FROM era_start WHERE NOT EXISTS (SELECT FROM block WHERE block.slot_no = era_start.slot_no)
LIMIT $1

-- name: check_boundaries
-- Byron has the first $2 slots, $3 in each epoch. Each of its epochs may begin with an epoch boundary block, which has
-- the number of the previous block.
SELECT figures.what || ' of the epoch boundary block at slot ' || e.slot_no AS what, NULL::bytea AS address,
       indexed, recomputed
FROM epoch_boundary_block e
LEFT JOIN LATERAL (SELECT block_no FROM block WHERE slot_no < e.slot_no ORDER BY slot_no DESC LIMIT 1) before ON true
LEFT JOIN LATERAL (SELECT block_no FROM block WHERE slot_no >= e.slot_no ORDER BY slot_no LIMIT 1) after ON true,
LATERAL (VALUES
    ('slot_no', e.slot_no::text, CASE WHEN e.slot_no < $2::bigint THEN e.slot_no / $3::bigint * $3::bigint END::text),
    ('block_no', e.block_no::text, coalesce(before.block_no, after.block_no - 1, e.block_no)::text)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
ORDER BY e.slot_no
LIMIT $1

-- name: check_hashes
-- Hashes have 32 bytes, those of pools and policies 28, and an epoch boundary block has the hash of no other block.
-- blocks.py checks the hashes of transactions, hashes.py those of datums and scripts.
SELECT format('length of %s of %s', of_column, of_row) AS what, NULL::bytea AS address, length(hash)::text AS indexed,
       expected::text AS recomputed
FROM (
    SELECT 'hash' AS of_column, 'block ' || slot_no AS of_row, hash, 32 AS expected FROM block
    UNION ALL SELECT 'hash', 'epoch boundary block ' || slot_no, hash, 32 FROM epoch_boundary_block
    UNION ALL SELECT 'pool_id', 'pool_no ' || pool_no, pool_id, 28 FROM pool
    UNION ALL SELECT 'policy_id', 'policy_no ' || policy_no, policy_id, 28 FROM policy
    UNION ALL SELECT 'raw', 'stake_no ' || stake_no, raw, 29 FROM stake
    UNION ALL SELECT 'datum_hash', format('reference output %s of tx_id %s', output_index, tx_id), datum_hash, 32
    FROM reference_output WHERE datum_hash IS NOT NULL
    UNION ALL SELECT 'script_hash', format('script output %s of tx_id %s', output_index, tx_id), script_hash, 28
    FROM script_output
) hashes
WHERE length(hash) <> expected
UNION ALL
SELECT 'block hash ' || encode(hash, 'hex'), NULL, '2', '1'
FROM epoch_boundary_block e
WHERE EXISTS (SELECT FROM block WHERE block.hash = e.hash)
   OR EXISTS (SELECT FROM epoch_boundary_block o WHERE o.hash = e.hash AND o.slot_no <> e.slot_no)
LIMIT $1

-- name: check_numbers
-- Every numbered byte string has exactly one number. If one has two, sums over both are right, and no digest shows
-- it.
SELECT 'address_no of' AS what, raw AS address, string_agg(address_no::text, ' and ') AS indexed,
       'one number' AS recomputed
FROM address GROUP BY raw HAVING count(*) > 1
UNION ALL
SELECT 'stake_no of ' || encode(raw, 'hex'), NULL, string_agg(stake_no::text, ' and '), 'one number'
FROM stake GROUP BY raw HAVING count(*) > 1
UNION ALL
SELECT 'pool_no of ' || encode(pool_id, 'hex'), NULL, string_agg(pool_no::text, ' and '), 'one number'
FROM pool GROUP BY pool_id HAVING count(*) > 1
UNION ALL
SELECT 'policy_no of ' || encode(policy_id, 'hex'), NULL, string_agg(policy_no::text, ' and '), 'one number'
FROM policy GROUP BY policy_id HAVING count(*) > 1
LIMIT $1

-- name: check_equal_hashes
-- No two blocks, datums or scripts have the same hash.
SELECT 'block hash ' || encode(hash, 'hex') AS what, NULL::bytea AS address, count(*)::text AS indexed,
       '1' AS recomputed
FROM block GROUP BY hash HAVING count(*) > 1
UNION ALL
SELECT 'datum ' || encode(hash, 'hex'), NULL, count(*)::text, '1' FROM datum GROUP BY hash HAVING count(*) > 1
UNION ALL
SELECT 'script ' || encode(hash, 'hex'), NULL, count(*)::text, '1' FROM script GROUP BY hash HAVING count(*) > 1
LIMIT $1

-- name: check_references
-- Everything that rows refer to by number or by transaction exists. tx_id -1 is the genesis. hashes.py checks the
-- transactions of datums and scripts from tx_id 0 on.
SELECT format('%s of %s', of_column, of_row) AS what, NULL::bytea AS address, number::text AS indexed,
       'an existing one' AS recomputed
FROM (
    SELECT 'pool_no' AS of_column, 'block ' || slot_no AS of_row, pool_no::bigint AS number
    FROM block WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'pool_no', 'pool_epoch ' || epoch_no, pool_no FROM pool_epoch WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'pool_no', 'pool_reward ' || epoch_no, pool_no FROM pool_reward
        WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'pool_no', 'stake_event of tx_id ' || tx_id, pool_no FROM stake_event
        WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'pool_no', 'pool_update of tx_id ' || tx_id, pool_no FROM pool_update
        WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'pool_no', 'pool_retirement of tx_id ' || tx_id, pool_no
    FROM pool_retirement WHERE pool_no NOT IN (SELECT pool_no FROM pool)
    UNION ALL
    SELECT 'stake_no', 'stake_event of tx_id ' || tx_id, stake_no
    FROM stake_event WHERE NOT EXISTS (SELECT FROM stake WHERE stake.stake_no = stake_event.stake_no)
    UNION ALL
    SELECT 'stake_no', 'vote_delegation of tx_id ' || tx_id, stake_no
    FROM vote_delegation v WHERE NOT EXISTS (SELECT FROM stake WHERE stake.stake_no = v.stake_no)
    UNION ALL
    SELECT 'stake_no', 'instantaneous_reward of tx_id ' || tx_id, stake_no
    FROM instantaneous_reward r WHERE NOT EXISTS (SELECT FROM stake WHERE stake.stake_no = r.stake_no)
    UNION ALL
    SELECT 'stake_no', 'reward', stake_no
    FROM reward WHERE NOT EXISTS (SELECT FROM stake WHERE stake.stake_no = reward.stake_no)
    UNION ALL
    SELECT 'stake_no', 'reward_due', stake_no
    FROM reward_due WHERE NOT EXISTS (SELECT FROM stake WHERE stake.stake_no = reward_due.stake_no)
    UNION ALL
    SELECT 'tx_id', 'stake_event of stake_no ' || stake_no, tx_id
    FROM stake_event
    WHERE tx_id <> -1 AND NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = stake_event.tx_id)
    UNION ALL
    SELECT 'tx_id', 'vote_delegation at place ' || place, tx_id
    FROM vote_delegation WHERE kind <> 'fork' AND NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = vote_delegation.tx_id)
    UNION ALL
    SELECT 'tx_id', 'instantaneous_reward of stake_no ' || stake_no, tx_id
    FROM instantaneous_reward r WHERE NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = r.tx_id)
    UNION ALL
    SELECT 'tx_id', 'representative_event at place ' || place, tx_id
    FROM representative_event e WHERE NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = e.tx_id)
    UNION ALL
    SELECT 'tx_id', 'pool_update of pool_no ' || pool_no, tx_id
    FROM pool_update WHERE tx_id <> -1 AND NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = pool_update.tx_id)
    UNION ALL
    SELECT 'tx_id', 'pool_retirement of pool_no ' || pool_no, tx_id
    FROM pool_retirement WHERE NOT EXISTS (SELECT FROM tx WHERE tx.tx_id = pool_retirement.tx_id)
    UNION ALL
    SELECT 'tx_id', 'datum ' || encode(hash, 'hex'), tx_id FROM datum WHERE tx_id < 0
    UNION ALL
    SELECT 'tx_id', 'script ' || encode(hash, 'hex'), tx_id FROM script WHERE tx_id < 0
) missing
WHERE number IS NOT NULL
LIMIT $1

-- name: check_scripts
-- Scripts are numbered 0, 1, 2 … in the order of their first transactions. hashes.py compares everything else.
SELECT 'seq of script ' || encode(hash, 'hex') AS what, NULL::bytea AS address, seq::text AS indexed,
       expected::text AS recomputed
FROM (SELECT hash, seq, row_number() OVER (ORDER BY tx_id, hash) - 1 AS expected FROM script) numbered
WHERE seq <> expected
ORDER BY seq
LIMIT $1

-- name: check_stake_events
-- Each event is in its transaction's epoch, and a credential follows the ledger's rule (DELEG): only a registered one
-- delegates or deregisters, and only an unregistered one registers. $5: the index begins at the origin; otherwise
-- credentials may have been registered before its first block.
WITH life AS (
    SELECT stake_no, tx_id, place, kind, epoch_no,
           lag(kind) OVER (PARTITION BY stake_no ORDER BY tx_id, place) AS before
    FROM stake_event
)
SELECT figures.what || format(' of the %s of stake_no %s at tx_id %s', kind, stake_no, tx_id) AS what,
       NULL::bytea AS address, indexed, recomputed
FROM life, LATERAL (VALUES
    ('epoch_no', epoch_no::text,
     CASE WHEN tx_id = -1 THEN -2 ELSE ((tx_id >> 16) - $2::bigint) / $4::bigint + $3::bigint END::text),
    ('state before',
     CASE WHEN before IS NULL OR before = 'deregistration' THEN 'not registered' ELSE 'registered' END,
     CASE WHEN tx_id = -1 OR (before IS NULL AND NOT $5::boolean) THEN 'not registered'
          WHEN kind = 'registration' THEN 'not registered' ELSE 'registered' END)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
ORDER BY tx_id, place
LIMIT $1

-- name: check_reapings
-- A pool is reaped at the beginning of the epoch in which it retires, unless a later certificate of the pool precedes
-- that epoch.
WITH said AS (
    SELECT pool_no, tx_id, place, epoch_no FROM pool_retirement
    UNION ALL
    SELECT pool_no, tx_id, place, NULL FROM pool_update
), retired AS (
    SELECT pool_no, epoch_no
    FROM (
        SELECT *, lead(tx_id) OVER (PARTITION BY pool_no ORDER BY tx_id, place) AS again,
               $2::bigint + (epoch_no - $3::bigint) * $4::bigint AS begins
        FROM said
    ) ordered
    WHERE epoch_no IS NOT NULL AND (again IS NULL OR again >= begins << 16) AND begins <= (SELECT slot_no FROM tip)
)
SELECT format('reaping of pool_no %s in epoch %s', pool_no, epoch_no) AS what, NULL::bytea AS address,
       CASE WHEN r.pool_no IS NULL THEN 'none' ELSE 'one' END AS indexed,
       CASE WHEN retired.pool_no IS NULL THEN 'none' ELSE 'one' END AS recomputed
FROM retired FULL JOIN pool_reaping r USING (pool_no, epoch_no)
WHERE r.pool_no IS NULL OR retired.pool_no IS NULL
LIMIT $1

-- name: check_retirements
-- A retirement is for a later epoch than its own, of a pool that is registered. $5: the index begins at the origin.
SELECT format('retirement of pool_no %s at tx_id %s', pool_no, tx_id) AS what, NULL::bytea AS address,
       'for epoch ' || epoch_no AS indexed,
       'for a later epoch than its own, of a registered pool' AS recomputed
FROM pool_retirement r
WHERE epoch_no <= ((tx_id >> 16) - $2::bigint) / $4::bigint + $3::bigint
   OR ($5::boolean AND NOT EXISTS (SELECT FROM pool_update u
                                   WHERE u.pool_no = r.pool_no AND (u.tx_id, u.place) < (r.tx_id, r.place)))
ORDER BY tx_id
LIMIT $1

-- name: check_rewards
-- Rewards are due at the tip or earlier.
SELECT 'slot_no of reward_due of stake_no ' || stake_no AS what, NULL::bytea AS address,
       reward_due.slot_no::text AS indexed, 'at most ' || tip.slot_no AS recomputed
FROM reward_due, tip WHERE reward_due.slot_no > tip.slot_no
LIMIT $1

-- name: check_reward_epochs
-- In the tip's epoch, once all its rewards are read, each account began with its reward now and what was taken out of
-- it since. What was paid then is what it held more than at the end of the epoch before, if that is known. Accounts
-- that are due are left out. Slots become epochs by $2 to $4 as in the network's clock.
WITH tip_epoch AS (
    SELECT CASE WHEN slot_no < $2 THEN NULL ELSE (slot_no - $2::bigint) / $4::bigint + $3::bigint END AS epoch_no,
           $2::bigint + ((slot_no - $2::bigint) / $4::bigint) * $4::bigint AS first_slot_no
    FROM tip
), present AS (
    SELECT tip_epoch.epoch_no, first_slot_no << 16 AS first_tx_id, (first_slot_no - $4::bigint) << 16 AS before_tx_id,
           EXISTS (SELECT FROM reward_round r WHERE r.epoch_no = tip_epoch.epoch_no - 1) AS continues
    FROM tip_epoch JOIN ledger_state USING (epoch_no)
    WHERE next_stake_no IS NULL AND complete_epoch_no = tip_epoch.epoch_no
), moved AS (
    SELECT stake_no, tx_id, lovelace FROM account_withdrawal_entry, present WHERE tx_id >= before_tx_id
    UNION ALL
    SELECT stake_no, tx_id, -lovelace FROM account_credit, present WHERE tx_id >= before_tx_id
), taken AS (
    SELECT stake_no, coalesce(sum(lovelace) FILTER (WHERE tx_id >= first_tx_id), 0) AS since,
           coalesce(sum(lovelace) FILTER (WHERE tx_id < first_tx_id), 0) AS lately
    FROM moved, present GROUP BY stake_no
), began AS (
    SELECT stake_no, coalesce(reward.lovelace, 0) + coalesce(taken.since, 0) AS lovelace,
           CASE WHEN (SELECT bool_or(continues) FROM present) THEN coalesce(reward.lovelace, 0)
               + coalesce(taken.since, 0) + coalesce(taken.lately, 0) - coalesce(before.lovelace, 0) ELSE 0 END AS paid
    FROM reward FULL JOIN taken USING (stake_no) FULL JOIN (
        SELECT stake_no, entry.lovelace FROM reward_epoch_entry entry, present
        WHERE entry.epoch_no = present.epoch_no - 1 AND present.continues
    ) before USING (stake_no)
), indexed AS (
    SELECT stake_no, entry.lovelace, entry.paid
    FROM reward_epoch_entry entry JOIN present USING (epoch_no)
)
SELECT 'reward_epoch of stake_no ' || stake_no || ',' AS what,
       (SELECT raw FROM stake WHERE stake.stake_no = coalesce(indexed.stake_no, began.stake_no) LIMIT 1) AS address,
       coalesce(indexed.lovelace, 0) || ' of which ' || coalesce(indexed.paid, 0) AS indexed,
       coalesce(began.lovelace, 0) || ' of which ' || coalesce(began.paid, 0) AS recomputed
FROM indexed FULL JOIN began USING (stake_no)
WHERE EXISTS (SELECT FROM present)
  AND (coalesce(indexed.lovelace, 0) <> coalesce(began.lovelace, 0)
       OR coalesce(indexed.paid, 0) <> coalesce(began.paid, 0))
  AND NOT EXISTS (SELECT FROM reward_due WHERE reward_due.stake_no = coalesce(indexed.stake_no, began.stake_no))
UNION ALL
SELECT 'row of reward_round', NULL, 'none', present.epoch_no::text
FROM present WHERE NOT EXISTS (SELECT FROM reward_round WHERE reward_round.epoch_no = present.epoch_no)
UNION ALL
SELECT 'row of reward_round', NULL, reward_round.epoch_no::text, 'at most ' || tip_epoch.epoch_no
FROM reward_round, tip_epoch WHERE reward_round.epoch_no > tip_epoch.epoch_no
LIMIT $1

-- name: check_stake_snapshots
-- The delegators of a pool in a stake snapshot have as much in outputs as the pool, and are in order, each once; every
-- pool with stake in a snapshot that was taken live has its delegators there. In the snapshot from the beginning of the
-- tip's epoch these are the accounts whose last certificate before was a delegation to a pool that was not reaped
-- since. Slots become epochs by $2 to $4 as in the network's clock.
WITH tip_epoch AS (
    SELECT CASE WHEN slot_no < $2 THEN NULL ELSE (slot_no - $2::bigint) / $4::bigint + $3::bigint END AS epoch_no
    FROM tip
), newest AS (
    SELECT pool_no, stake_no FROM stake_snapshot_entry, tip_epoch
    WHERE stake_snapshot_entry.epoch_no = tip_epoch.epoch_no + 1
), delegated AS (
    SELECT pool_no, stake_no
    FROM (
        SELECT DISTINCT ON (stake_no) stake_no, pool_no, event.epoch_no AS since, tip_epoch.epoch_no
        FROM stake_event event, tip_epoch WHERE event.epoch_no < tip_epoch.epoch_no
        ORDER BY stake_no, tx_id DESC, place DESC
    ) last
    WHERE pool_no IS NOT NULL AND NOT EXISTS (
        SELECT FROM pool_reaping r
        WHERE r.pool_no = last.pool_no AND r.epoch_no > since AND r.epoch_no < last.epoch_no
    )
), summed AS (
    SELECT epoch_no, pool_no, sum(lovelace)::bigint AS lovelace, count(*) AS delegators,
           count(DISTINCT stake_no) AS different
    FROM stake_snapshot_entry GROUP BY epoch_no, pool_no
), known AS (
    SELECT DISTINCT epoch_no FROM stake_snapshot
)
SELECT format('stake_snapshot of pool_no %s in epoch %s', pool_no, epoch_no) AS what, NULL::bytea AS address,
       coalesce(summed.lovelace, 0)::text AS indexed, coalesce(pool_epoch.active_stake, 0)::text AS recomputed
FROM summed FULL JOIN (SELECT * FROM pool_epoch JOIN known USING (epoch_no)) pool_epoch USING (epoch_no, pool_no)
WHERE coalesce(summed.lovelace, 0) <> coalesce(pool_epoch.active_stake, 0)
UNION ALL
SELECT format('delegators in stake_snapshot of pool_no %s in epoch %s', pool_no, epoch_no), NULL, delegators::text,
       different::text
FROM summed WHERE delegators <> different
UNION ALL
SELECT format('first_stake_no of stake_snapshot of pool_no %s in epoch %s', pool_no, epoch_no), NULL,
       first_stake_no::text, ('x' || encode(substr(entries, 1, 4), 'hex'))::bit(32)::integer::text
FROM stake_snapshot WHERE int4send(first_stake_no) <> substr(entries, 1, 4)
UNION ALL
SELECT format('first_seq of stake_snapshot of pool_no %s in epoch %s', pool_no, epoch_no), NULL, first_seq::text,
       before::text
FROM (
    SELECT epoch_no, pool_no, first_seq,
           sum(length(entries) / 12) OVER (PARTITION BY epoch_no ORDER BY pool_no, first_stake_no)
               - length(entries) / 12 AS before
    FROM stake_snapshot
) numbered
WHERE first_seq <> before
UNION ALL
SELECT format('delegator stake_no %s of pool_no %s in the last stake_snapshot', stake_no, pool_no), NULL,
       CASE WHEN newest.stake_no IS NULL THEN 'none' ELSE 'a row' END,
       CASE WHEN delegated.stake_no IS NULL THEN 'none' ELSE 'a row' END
FROM newest FULL JOIN delegated USING (pool_no, stake_no)
WHERE (newest.stake_no IS NULL OR delegated.stake_no IS NULL) AND EXISTS (SELECT FROM newest)
LIMIT $1

-- name: check_pool_earnings
-- Pools have earnings of epochs whose rewards are known, as many delegators as in the snapshot, and in an epoch not
-- more than was paid for it.
SELECT format('pool_earning of pool_no %s in epoch %s', pool_no, epoch_no) AS what, NULL::bytea AS address,
       'a row' AS indexed, 'none' AS recomputed
FROM pool_earning
WHERE NOT EXISTS (SELECT FROM reward_round WHERE reward_round.epoch_no = pool_earning.epoch_no + 2)
   OR NOT EXISTS (SELECT FROM reward_round WHERE reward_round.epoch_no = pool_earning.epoch_no + 1)
UNION ALL
SELECT format('delegators of pool_no %s in epoch %s', pool_no, epoch_no), NULL, pool_earning.delegators::text,
       members.delegators::text
FROM pool_earning LEFT JOIN (
    SELECT pool_no, epoch_no, sum(length(entries) / 12) AS members_count FROM stake_snapshot GROUP BY pool_no, epoch_no
) counted USING (pool_no, epoch_no) CROSS JOIN LATERAL (SELECT coalesce(members_count, 0) AS delegators) members
WHERE pool_earning.delegators <> members.delegators
UNION ALL
SELECT 'pool_earning of epoch ' || epoch_no, NULL, earned.lovelace::text, 'at most ' || coalesce(paid.lovelace, 0)
FROM (SELECT epoch_no, sum(lovelace) AS lovelace FROM pool_earning GROUP BY epoch_no) earned
LEFT JOIN (
    SELECT epoch_no - 2 AS epoch_no, sum(paid) AS lovelace FROM reward_epoch_entry GROUP BY epoch_no
) paid USING (epoch_no)
WHERE earned.lovelace > coalesce(paid.lovelace, 0)
LIMIT $1

-- name: last_round
-- The last epoch whose rewards are all read.
SELECT epoch_no FROM reward_round ORDER BY epoch_no DESC LIMIT 1

-- name: earnings_of
SELECT pool_no, delegators, lovelace FROM pool_earning WHERE epoch_no = $1

-- name: check_ledger_state
-- An epoch's figures were read at one of its slots, whose block a fork may have removed since. All its rewards are
-- read, or the next to read are of an account that exists, and all were read in an earlier epoch at the latest, or in
-- this one if a rollback from the next has them read again. After a rollback (-1), all is to be read again.
WITH present AS (
    SELECT *, CASE WHEN slot_no < $2 THEN epoch_no
        ELSE (slot_no - $2::bigint) / $4::bigint + $3::bigint END AS slot_epoch_no
    FROM ledger_state
)
SELECT figures.what || ' of ledger_state' AS what, NULL::bytea AS address, indexed, recomputed
FROM present, LATERAL (VALUES
    ('epoch_no', epoch_no::text, CASE WHEN epoch_no = -1 AND next_stake_no = 0 THEN '-1' ELSE slot_epoch_no::text END),
    ('next_stake_no', next_stake_no::text, CASE
        WHEN next_stake_no IS NULL OR next_stake_no BETWEEN 0 AND 1 + (SELECT coalesce(max(stake_no), 0) FROM stake)
            THEN next_stake_no::text
        ELSE 'of an account' END),
    ('complete_epoch_no', complete_epoch_no::text, CASE
        WHEN epoch_no = -1 OR (next_stake_no IS NOT NULL AND coalesce(complete_epoch_no, -1) <= epoch_no)
            THEN complete_epoch_no::text
        WHEN next_stake_no IS NULL THEN epoch_no::text
        ELSE 'at most ' || epoch_no END)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
LIMIT $1

-- name: check_rollbacks
-- Each row counts rollbacks of depths up to its bound, one of $2, and above the one before it; the last was in the
-- past.
SELECT format('rollbacks of up to %s blocks', blocks_at_most) AS what, NULL::bytea AS address,
       format('%s of %s blocks, the last of %s at %s', rollbacks, blocks, last_blocks, last_at) AS indexed,
       format('each of %s to %s blocks, until %s', least, most, now()) AS recomputed
FROM rollback_depth LEFT JOIN (
    SELECT most, coalesce(lag(most) OVER (ORDER BY most) + 1, 0) AS least FROM unnest($2::integer[]) AS most
) bounds ON most = blocks_at_most
WHERE (last_at <= now() AND last_blocks BETWEEN least AND most
       AND blocks - last_blocks BETWEEN (rollbacks - 1) * least AND (rollbacks - 1) * most::numeric) IS NOT TRUE
LIMIT $1
