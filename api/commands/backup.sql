-- Partner data: every table of `partner` but the schema's version, and what an indexer writes anew by itself.

-- name: tables
-- The tables with their columns, each after the tables that it refers to.
WITH RECURSIVE backed_up AS (
    SELECT oid, relname FROM pg_class
    WHERE relnamespace = 'partner'::regnamespace AND relkind = 'r'
        AND relname NOT IN ('schema_version', 'leader', 'verification')
), reference AS (
    SELECT oid, 0 AS depth FROM backed_up
    UNION
    SELECT conrelid, depth + 1 FROM reference JOIN pg_constraint ON confrelid = reference.oid AND conrelid <> confrelid
)
SELECT relname::text AS name,
       (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns
FROM backed_up
JOIN (SELECT oid, max(depth) AS depth FROM reference GROUP BY oid) AS deepest USING (oid)
ORDER BY depth, relname

-- name: numbered
-- The columns that Postgres numbers, with their sequences.
SELECT relname::text AS of_table, attname::text AS of_column,
       pg_get_serial_sequence('partner.' || relname, attname) AS sequence
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'partner'::regnamespace AND relkind = 'r' AND attidentity <> ''
ORDER BY relname, attname

-- name: others
-- The other processes of Ledgerline on this database, by the names of their connections.
SELECT DISTINCT application_name AS name FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'ledgerline%'
ORDER BY 1

-- name: has_partners
SELECT EXISTS (SELECT FROM partner.admin_key) AS found
