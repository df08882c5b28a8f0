-- name: state
-- The last committed block, and the transactions that wrote it and the last reading of the node's ledger; no row while
-- the network is not served.
SELECT tip.slot_no, block_hash, numbering, tip.xmin::text::bigint AS moved_by,
       ledger_state.xmin::text::bigint AS told_by
FROM tip LEFT JOIN ledger_state ON true
WHERE phase = 'live'
