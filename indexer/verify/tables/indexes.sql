-- The indexes of a chain, and statements that count the rows which are found through them.

-- name: tables
-- Each table, the conditions of its partial indexes, and a statement that counts all rows and those of each condition.
SELECT of_table AS name,
       coalesce(array_agg(condition ORDER BY condition) FILTER (WHERE condition IS NOT NULL), '{}') AS conditions,
       format('SELECT ARRAY[count(*)%s] FROM %I',
           string_agg(', count(*) FILTER (WHERE ' || condition || ')', '' ORDER BY condition),
              of_table) AS statement
FROM (
    SELECT DISTINCT t.relname::text AS of_table, pg_get_expr(indpred, indrelid) AS condition
    FROM pg_class t LEFT JOIN pg_index ON indrelid = t.oid AND indpred IS NOT NULL
    WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r'
) conditions
GROUP BY of_table
ORDER BY of_table

-- name: indexes
-- The indexes that are sorted (btree) or look up by hash, the table and the condition of each, the pages of the table,
-- and a statement that counts the rows which are found in its order, those with an equal value once if it is unique
-- (none of their columns may be null); or, of the rows from ctid $1 to before $2, all, those which are found by their
-- own values, and all rows with an equal value. A hash index has no entry for a null.
SELECT name, of_table, method = 'hash' AS hashed, condition, pages, indcheckxmin AS checks_xmin,
       CASE method WHEN 'btree' THEN
           format('SELECT count(*) FROM (SELECT %s FROM %I WHERE %s ORDER BY %s OFFSET 0) AS entry',
                  CASE WHEN indisunique THEN 'DISTINCT ' || names ELSE '' END, of_table, coalesce(condition, 'true'),
                      columns)
       ELSE
           format('SELECT (SELECT count(*) FROM %1$I'
                  ' WHERE ctid >= $1 AND ctid < $2 AND %3$s AND %2$s IS NOT NULL),'
                  ' count(*) FILTER (WHERE one.ctid = other.ctid), count(*)'
                  ' FROM (SELECT ctid, %2$s AS value FROM %1$I WHERE ctid >= $1 AND ctid < $2 AND %3$s) one'
                  ' JOIN (SELECT ctid, %2$s AS value FROM %1$I WHERE %3$s) other ON one.value = other.value',
                  of_table, columns, coalesce(condition, 'true'))
       END AS statement
FROM (
    SELECT i.relname::text AS name, t.relname::text AS of_table, amname AS method, indisunique, indcheckxmin,
           pg_get_expr(indpred, indrelid) AS condition,
           pg_relation_size(t.oid) / current_setting('block_size')::integer AS pages, (
        SELECT string_agg(pg_get_indexdef(indexrelid, place, true)
                          || CASE indoption[place - 1] WHEN 1 THEN ' DESC NULLS LAST' WHEN 2 THEN ' NULLS FIRST'
                             WHEN 3 THEN ' DESC' ELSE '' END, ', ' ORDER BY place)
        FROM generate_series(1, indnkeyatts) AS place
    ) AS columns, (
        SELECT string_agg(pg_get_indexdef(indexrelid, place, true), ', ' ORDER BY place)
            FROM generate_series(1, indnkeyatts) AS place
    ) AS names
    FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid JOIN pg_am
        ON pg_am.oid = i.relam
    WHERE t.relnamespace = current_schema()::regnamespace AND amname IN ('btree', 'hash')
) indexes
ORDER BY name

-- name: read_plainly
-- Let Postgres read tables without an index up to the end of the transaction or, if $1 is null, as it would.
SELECT set_config('enable_' || way, $1::text, true) FROM unnest('{indexscan, indexonlyscan, bitmapscan}'::text[]) AS way

-- name: read_through_indexes
-- Let Postgres read tables in the order of an index or a range of pages, and look rows up one by one; the same for
-- null.
SELECT set_config('enable_' || way, $1::text, true)
FROM unnest('{seqscan, bitmapscan, sort, incremental_sort, hashjoin, mergejoin, material, memoize}'::text[]) AS way
