-- name: index_state
-- The state of an index; no row if nothing is indexed. A fixed cost: `rollback_depth` has ten rows at most.
SELECT CASE WHEN tip.finalize_step > 0 AND tip.phase = 'bulk' THEN 'finishing' ELSE tip.phase END AS phase,
       tip.slot_no, tip.block_no, tip.block_hash, tip.first_block_no, tip.tx_count, tip.finalize_step,
       (SELECT coalesce(sum(rollbacks), 0)::bigint FROM rollback_depth) AS rollbacks,
       last_rollback.last_at AS last_rollback_at, last_rollback.last_blocks AS last_rollback_blocks,
       (SELECT differing FROM node_comparison WHERE kind = 'live_stake') AS pools_stake_mismatch
FROM tip
LEFT JOIN (SELECT last_at, last_blocks FROM rollback_depth ORDER BY last_at DESC LIMIT 1) last_rollback ON true

-- name: rollbacks
-- The node's rollbacks by depth, smallest first.
SELECT blocks_at_most, rollbacks, blocks FROM rollback_depth ORDER BY blocks_at_most

-- name: comparisons
-- What was compared with the node's ledger, by kind; no row before the first comparison.
SELECT kind, epoch_no, compared, differing, differences::text FROM node_comparison ORDER BY kind
