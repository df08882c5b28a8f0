-- name: standing
-- One look at the chain's tables: no cost that grows with history.
SELECT tip.slot_no, tip.block_no, tip.block_hash, tip.first_block_no, tip.tx_count, tip.phase, tip.finalize_step,
       node_tip.slot_no, node_tip.block_no, node_tip.seen_at
FROM tip LEFT JOIN node_tip ON true

-- name: table_sizes
-- Rows as Postgres estimates them, and bytes on disk with indexes.
SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind = 'r'
ORDER BY c.relname
