-- What a schema consists of.

-- name: described
-- Everything in the schemas $1 that answers and commits depend on, and its definition. Columns are named, not numbered,
-- since a migration adds them at the end of a table. Left out are NOT NULL constraints, which columns show, and
-- settings that change no answer: storage (of tables, columns and indexes), autovacuum, comments, owners.
WITH relation AS (
    SELECT c.*, n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY ($1::text[])
), described AS (
    SELECT 'table ' || name AS name,
           format('kind %s, persistence %s, row security %s, inherited by %s', relkind, relpersistence, relrowsecurity,
                  (SELECT count(*) FROM pg_inherits WHERE inhparent = relation.oid)) AS definition
    FROM relation WHERE relkind NOT IN ('i', 'v')
    UNION ALL
    SELECT format('column %s of %s', attname, name),
           format('%s%s%s, %s, %s', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END,
                  CASE attidentity WHEN '' THEN '' ELSE ' identity ' || attidentity::text END,
                  coalesce(CASE attgenerated WHEN '' THEN 'default ' ELSE 'generated as ' END
                      || pg_get_expr(adbin, adrelid),
                           'no default'),
                  attcollation::regcollation)
    FROM relation
    JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    WHERE relkind NOT IN ('i', 'v')
    UNION ALL
    SELECT format('constraint %s of %s', conname, name),
           pg_get_constraintdef(k.oid) || CASE WHEN convalidated THEN '' ELSE ', not validated' END
    FROM relation JOIN pg_constraint k ON conrelid = relation.oid AND contype <> 'n'
    UNION ALL
    SELECT 'index ' || name,
           regexp_replace(pg_get_indexdef(indexrelid), ' WITH \([^)]*\)', '')
               || CASE WHEN indisvalid AND indisready AND indislive THEN '' ELSE ', invalid' END
    FROM relation JOIN pg_index ON indexrelid = relation.oid
    UNION ALL
    SELECT 'view ' || name, pg_get_viewdef(oid) FROM relation WHERE relkind = 'v'
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure, pg_get_functiondef(p.oid)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE n.nspname = ANY ($1::text[]) AND prokind <> 'a'
    UNION ALL
    SELECT 'aggregate ' || p.oid::regprocedure,
           format('%s(%s), %s, %s, %s, %s, parallel %s', aggtransfn, aggtranstype::regtype, agginitval, aggfinalfn,
               aggcombinefn,
                  aggkind, proparallel)
    FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid JOIN pg_namespace n ON n.oid = pronamespace
    WHERE n.nspname = ANY ($1::text[])
    UNION ALL
    SELECT 'sequence ' || name,
           format('%s, from %s by %s, %s to %s, cycles %s', seqtypid::regtype, seqstart, seqincrement, seqmin,
                                       seqmax, seqcycle)
    FROM relation JOIN pg_sequence ON seqrelid = relation.oid
    UNION ALL
    -- Those that enforce foreign keys are named after their constraint.
    SELECT format('trigger %s of %s', CASE WHEN tgisinternal THEN format('%s on %s', tgtype, k.conname)
        ELSE tgname END, name),
           format('%s, enabled %s', CASE WHEN tgisinternal THEN tgfoid::regproc::text
               ELSE pg_get_triggerdef(t.oid) END, tgenabled)
    FROM relation JOIN pg_trigger t ON tgrelid = relation.oid LEFT JOIN pg_constraint k ON k.oid = tgconstraint
    UNION ALL
    SELECT format('rule %s of %s', rulename, name), pg_get_ruledef(r.oid)
    FROM relation JOIN pg_rewrite r ON ev_class = relation.oid WHERE relkind <> 'v'
    UNION ALL
    SELECT format('policy %s of %s', polname, name), pg_get_expr(polqual, polrelid)
    FROM relation JOIN pg_policy ON polrelid = relation.oid
)
SELECT name, coalesce(definition, '') AS definition FROM described ORDER BY name
