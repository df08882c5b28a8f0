-- name: of_table
-- Every index of a table, with the statement that creates it, or that adds its constraint.
SELECT i.indexrelid::regclass::text AS name,
       CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname,
                pg_get_constraintdef(c.oid))
       END AS definition,
       c.conname AS constraint
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = $1::text::regclass
ORDER BY c.conname NULLS LAST
