-- The comparison that the indexer makes in each epoch.

-- name: node_comparison
-- The last comparison of live stakes with the node's ledger.
SELECT complete_epoch_no AS epoch_no, compared_pools AS pools, pools_stake_mismatch AS mismatched, difference
FROM ledger_state WHERE compared_pools IS NOT NULL
