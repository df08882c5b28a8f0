-- name: tables
-- The tables of a chain with the columns that a dump contains, which are all except generated ones, and Postgres'
-- estimate of their rows.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns,
       greatest(c.reltuples, 0)::bigint AS row_count
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = ''
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
GROUP BY c.oid
ORDER BY c.relname

-- name: look_again
-- Otherwise Postgres repeats its first report on other sessions until the transaction ends.
SELECT pg_stat_clear_snapshot()

-- name: being_written
-- The number of rows written so far of each table of this chain that is being dumped.
SELECT relid::bigint AS oid, tuples_processed AS row_count
FROM pg_stat_progress_copy
WHERE command = 'COPY TO' AND relid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
