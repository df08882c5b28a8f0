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
