-- name: tables
-- Every table of this chain with its bytes on disk, without and with indexes. They are null while the table is being
-- rebuilt, since the rebuild locks it.
SELECT c.relname AS name, CASE WHEN NOT rebuilt THEN pg_relation_size(c.oid) END AS heap_bytes,
       CASE WHEN NOT rebuilt THEN pg_total_relation_size(c.oid) END AS size_bytes
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT FROM pg_locks held
        WHERE held.relation = c.oid AND held.granted AND held.mode = 'AccessExclusiveLock'
          AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
) AS locked (rebuilt)
WHERE n.nspname = current_schema() AND c.relkind = 'r'
ORDER BY c.relname
