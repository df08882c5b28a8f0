-- name: tables
-- The tables of a chain with the columns that a copy contains, which are all except generated ones, those of the
-- primary key, Postgres' estimate of their rows, and their size.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns,
       coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attnum = ANY (p.conkey)), '{}') AS key,
       greatest(c.reltuples, 0)::bigint AS row_count, pg_table_size(c.oid) AS size_bytes
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = ''
LEFT JOIN pg_constraint p ON p.conrelid = c.oid AND p.contype = 'p'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
GROUP BY c.oid
ORDER BY c.relname

-- name: epochs
-- The epochs with blocks, in order.
SELECT epoch_no, tx_count FROM epoch ORDER BY epoch_no

-- name: last_address_no
-- The highest address_no; 0 without addresses.
SELECT coalesce(max(address_no), 0) FROM address
