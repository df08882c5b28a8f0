-- The statements that write the blocks of a chain and roll them back, inside commits of writer.py.

-- name: position
SELECT slot_no, block_hash, block_no, first_block_no, tx_count, phase, finalize_step,
       coalesce((SELECT era FROM era_start ORDER BY slot_no DESC LIMIT 1), 'byron') AS era,
       EXISTS (SELECT FROM epoch_boundary_block e WHERE e.slot_no = tip.slot_no AND e.hash = tip.block_hash) AS ebb
FROM tip

-- name: points
-- Points of our chain, newest first: dense near the tip, with distances that double towards the origin, and one $1 blocks back.
-- Within a slot, the block is newer than the epoch boundary block, and has the higher number.
SELECT slot_no, hash AS block_hash
FROM (
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(0, 9) AS back, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - back) b
    UNION
    SELECT b.slot_no, b.block_no, b.hash
    FROM tip, generate_series(4, 24) AS power, LATERAL (SELECT * FROM block WHERE block_no = tip.block_no - (1 << power)) b
    UNION
    SELECT b.slot_no, b.block_no, b.hash FROM tip JOIN block b ON b.block_no = tip.block_no - $1
    UNION
    SELECT e.slot_no, e.block_no, e.hash FROM (SELECT * FROM epoch_boundary_block ORDER BY slot_no DESC LIMIT 3) e
    UNION
    (SELECT slot_no, block_no, hash FROM block ORDER BY slot_no LIMIT 1)
) points
ORDER BY slot_no DESC, block_no DESC

-- name: block_at
-- The block of our chain at a point, epoch boundary blocks included.
SELECT block_no, coalesce((SELECT era FROM era_start WHERE slot_no <= $1 ORDER BY slot_no DESC LIMIT 1), 'byron') AS era,
       false AS ebb
FROM block WHERE slot_no = $1 AND hash = $2
UNION ALL
SELECT block_no, 'byron', true FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2

-- name: last_at_or_before
-- The last block at or before a slot.
SELECT slot_no, hash AS block_hash FROM block WHERE slot_no <= $1 ORDER BY slot_no DESC LIMIT 1

-- name: counts_after
-- The blocks after a slot, and their transactions. Reads each of these blocks.
SELECT count(*) AS blocks, coalesce(sum(tx_count), 0)::bigint AS transactions FROM block WHERE slot_no > $1

-- name: block_back
-- The block that has $1 blocks after it.
SELECT slot_no, hash AS block_hash FROM block ORDER BY slot_no DESC OFFSET $1 LIMIT 1

-- name: move_balances
-- Add lovelace $2 to balances $1. For the addresses $3, add $4 (1 or -1) to the counts of their accounts, except for
-- addresses of the genesis, which are counted already.
WITH moved AS (
    SELECT stake_no, sum(lovelace)::bigint AS lovelace, sum(addresses)::integer AS addresses
    FROM (
        SELECT stake_no, lovelace, 0 AS addresses FROM unnest($1::integer[], $2::bigint[]) AS balance (stake_no, lovelace)
        UNION ALL
        SELECT stake_no, 0, used.addresses
        FROM unnest($3::integer[], $4::integer[]) AS used (address_no, addresses) JOIN address USING (address_no)
        WHERE stake_no IS NOT NULL
          AND NOT EXISTS (SELECT FROM genesis_output WHERE genesis_output.address = address.raw)
    ) parts
    GROUP BY stake_no
)
UPDATE stake SET balance = stake.balance + moved.lovelace, address_count = address_count + moved.addresses
FROM moved
WHERE stake.stake_no = moved.stake_no

-- name: count_addresses
-- Count the addresses of all accounts: joins of whole tables, as a probe for each address would take longer.
UPDATE stake SET address_count = counted.addresses
FROM (
    SELECT stake_no, count(*) AS addresses
    FROM (
        SELECT address_no FROM address_tx WHERE chunk = 0
        UNION ALL
        SELECT address_no FROM genesis_output JOIN address ON raw = genesis_output.address
        WHERE NOT EXISTS (SELECT FROM address_tx WHERE address_tx.address_no = address.address_no)
    ) used
    JOIN address USING (address_no)
    WHERE stake_no IS NOT NULL
    GROUP BY stake_no
) counted
WHERE stake.stake_no = counted.stake_no AND stake.address_count <> counted.addresses

-- name: add_up_staged_balances
UPDATE stake SET balance = stake.balance + moved.lovelace
FROM (SELECT stake_no, sum(lovelace) AS lovelace FROM balance_staged GROUP BY stake_no) moved
WHERE stake.stake_no = moved.stake_no AND moved.lovelace <> 0

-- name: spend_references
-- The reference outputs with these transaction hashes and indexes are spent by these transactions.
UPDATE reference_output r SET spent_tx_id = spent.by
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS spent (tx_hash, output_index, by) JOIN tx ON tx.hash = spent.tx_hash
WHERE r.tx_id = tx.tx_id AND r.output_index = spent.output_index

-- name: add_datums
-- Only those whose hash is missing: a row keeps the first transaction that showed its datum.
INSERT INTO datum (hash, tx_id, body)
SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS shown (hash, tx_id, body)
WHERE NOT EXISTS (SELECT FROM datum WHERE datum.hash = shown.hash)

-- name: add_scripts
INSERT INTO script (hash, tx_id, language, body)
SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::smallint[], $4::bytea[]) AS shown (hash, tx_id, language, body)
WHERE NOT EXISTS (SELECT FROM script WHERE script.hash = shown.hash)

-- name: any_submitted
-- Whether anything was submitted to this network.
SELECT EXISTS (SELECT FROM partner.submitted_tx WHERE network_id = $1) AS any

-- name: removed
-- The next $2 transactions with a tx_id from $1 on.
SELECT tx_id, hash FROM tx WHERE tx_id >= $1 ORDER BY tx_id LIMIT $2

-- name: note_rolled_back
-- Mark the submitted ones of these transactions as rolled back. Costs a look-up for each.
UPDATE partner.submitted_tx SET rolled_back_at = now() WHERE network_id = $1 AND tx_hash = ANY($2::bytea[])

-- name: delete_staged
-- Delete the staged rows with a tx_id from $1 on. Staged amounts have no tx_id: the rollback has staged them with the
-- opposite sign.
WITH deleted_address_tx AS (DELETE FROM address_tx_staged WHERE tx_id >= $1),
     deleted_asset_tx AS (DELETE FROM asset_tx_staged WHERE tx_id >= $1),
     deleted_withdrawal AS (DELETE FROM account_withdrawal_staged WHERE tx_id >= $1)
DELETE FROM mint_staged WHERE tx_id >= $1

-- name: delete_blocks
-- Delete all rows with a tx_id from $3 on, found by primary key or BRIN range, and the blocks from slot $1 on. If the
-- new tip is an epoch boundary block of that slot, its hash is $2, and it stays. $4 is the epoch of the new tip, and $5
-- the first slot after that epoch. Rows derived in later epochs are deleted, too. $6 is the lovelace of the outputs in
-- the deleted blocks of epoch $4.
--
-- All parts see the rows as they were before the statement. Returns the makers of deleted blocks, the pools that were
-- reaped in deleted epochs, and the stake credentials of deleted events.
WITH deleted_tx AS (DELETE FROM tx WHERE tx_id >= $3),
     deleted_mint AS (DELETE FROM mint WHERE tx_id >= $3),
     deleted_reference_output AS (DELETE FROM reference_output WHERE tx_id >= $3),
     unspent_reference_output AS (UPDATE reference_output SET spent_tx_id = NULL WHERE spent_tx_id >= $3 AND tx_id < $3),
     deleted_datum AS (DELETE FROM datum WHERE tx_id >= $3),
     deleted_script AS (DELETE FROM script WHERE tx_id >= $3),
     deleted_vote_delegation AS (DELETE FROM vote_delegation WHERE tx_id >= $3),
     deleted_representative_event AS (DELETE FROM representative_event WHERE tx_id >= $3),
     deleted_protocol_fork AS (DELETE FROM protocol_fork WHERE epoch_no > $4::integer),
     deleted_pool_update AS (DELETE FROM pool_update WHERE tx_id >= $3),
     deleted_pool_retirement AS (DELETE FROM pool_retirement WHERE tx_id >= $3),
     deleted_stake_event AS (DELETE FROM stake_event WHERE tx_id >= $3 RETURNING stake_no),
     deleted_pool_reaping AS (DELETE FROM pool_reaping WHERE epoch_no > $4::integer RETURNING pool_no),
     deleted_block AS (DELETE FROM block WHERE slot_no >= $1 RETURNING slot_no, pool_no),
     deleted_epoch_boundary_block AS (DELETE FROM epoch_boundary_block WHERE slot_no >= $1 AND hash <> $2),
     -- The snapshot that counts in the epoch after the tip's was taken at the beginning of the tip's.
     deleted_pool_epoch AS (DELETE FROM pool_epoch WHERE epoch_no > $4::integer + 1),
     deleted_pool_reward AS (DELETE FROM pool_reward WHERE epoch_no > $4::integer + 1),
     deleted_epoch_parameters AS (DELETE FROM epoch_parameters WHERE epoch_no > $4::integer),
     -- Rewards that were read in a later epoch must be read and compared again, in whichever epoch comes next, so
     -- epoch_no is cleared. A long rollback runs this several times. Once epoch_no is cleared, only complete_epoch_no
     -- may still have to be lowered.
     earlier_ledger_state AS (
         UPDATE ledger_state SET
             epoch_no = CASE WHEN epoch_no > $4::integer THEN -1 ELSE epoch_no END,
             next_stake_no = CASE WHEN epoch_no > $4::integer THEN 0 ELSE next_stake_no END,
             complete_epoch_no = CASE WHEN complete_epoch_no > $4::integer THEN $4::integer ELSE complete_epoch_no END
         WHERE epoch_no > $4::integer OR complete_epoch_no > $4::integer
     ), deleted_node_comparison AS (
         DELETE FROM node_comparison WHERE epoch_no > $4::integer
     ), undone AS MATERIALIZED (
         SELECT count(*) AS blocks, coalesce(sum(block.tx_count), 0) AS transactions, (
             SELECT coalesce(sum(fee), 0) FROM tx WHERE tx_id >= $3 AND tx_id < $5::bigint << 16
         ) AS fees
         FROM block WHERE slot_no >= $1 AND slot_no < $5
     ), deleted_epoch AS (
         -- The tip's epoch has no blocks left if the tip is its epoch boundary block.
         DELETE FROM epoch USING undone WHERE epoch_no > $4::integer OR (epoch_no = $4::integer AND epoch.blocks = undone.blocks)
     ), smaller_epoch AS (
         UPDATE epoch SET
             blocks = epoch.blocks - undone.blocks, tx_count = tx_count - undone.transactions, fees = epoch.fees - undone.fees,
             output = output - $6::numeric
         FROM undone WHERE epoch_no = $4::integer AND epoch.blocks > undone.blocks
     )
SELECT slot_no, pool_no, NULL::integer AS stake_no FROM deleted_block WHERE pool_no IS NOT NULL
UNION ALL
SELECT NULL, pool_no, NULL FROM deleted_pool_reaping
UNION ALL
SELECT NULL, NULL, stake_no FROM deleted_stake_event

-- name: move_tip
INSERT INTO tip AS present (slot_no, block_no, block_hash, first_block_no, tx_count, phase)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (one) DO UPDATE SET
    slot_no = excluded.slot_no, block_no = excluded.block_no, block_hash = excluded.block_hash,
    tx_count = present.tx_count + excluded.tx_count

-- name: count_rollback
-- A rollback of $2 blocks, in the row of depths up to $1.
INSERT INTO rollback_depth AS counted (blocks_at_most, rollbacks, blocks, last_at, last_blocks) VALUES ($1, 1, $2::integer, now(), $2::integer)
ON CONFLICT (blocks_at_most) DO UPDATE SET
    rollbacks = counted.rollbacks + 1, blocks = counted.blocks + excluded.blocks,
    last_at = excluded.last_at, last_blocks = excluded.last_blocks

-- name: renumber
UPDATE tip SET numbering = gen_random_uuid()

-- name: move_tip_back
UPDATE tip SET slot_no = $1, block_hash = $2, tx_count = tx_count - $3,
    block_no = coalesce((SELECT block_no FROM block WHERE slot_no = $1 AND hash = $2),
                        (SELECT block_no FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2))

-- name: forget_verification
-- The last verification of network $1 was of an index that is gone.
DELETE FROM partner.verification WHERE network_id = $1
