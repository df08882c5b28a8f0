-- Where a chain's index and its node stand; no row where nothing is indexed.
-- name: standing
SELECT tip.phase, tip.slot_no, tip.block_no, node_tip.slot_no, ledger_state.unlike_pools
FROM tip
LEFT JOIN node_tip ON true
LEFT JOIN ledger_state ON true
