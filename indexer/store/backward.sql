-- The statements of a rollback.

-- name: block_back
-- The block that has $1 blocks after it.
SELECT slot_no, hash AS block_hash FROM block ORDER BY slot_no DESC OFFSET $1 LIMIT 1

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

-- name: move_tip_back
UPDATE tip SET slot_no = $1, block_hash = $2, tx_count = tx_count - $3,
    block_no = coalesce((SELECT block_no FROM block WHERE slot_no = $1 AND hash = $2),
                        (SELECT block_no FROM epoch_boundary_block WHERE slot_no = $1 AND hash = $2))

-- name: count_rollback
-- A rollback of $2 blocks, in the row of depths up to $1.
INSERT INTO rollback_depth AS counted (blocks_at_most, rollbacks, blocks, last_at, last_blocks) VALUES ($1, 1, $2::integer, now(), $2::integer)
ON CONFLICT (blocks_at_most) DO UPDATE SET
    rollbacks = counted.rollbacks + 1, blocks = counted.blocks + excluded.blocks,
    last_at = excluded.last_at, last_blocks = excluded.last_blocks
