-- The facts that `check` reads about a server.

-- name: server
SELECT current_setting('server_version') AS version, current_user::text AS role, current_database()::text AS database,
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
       current_setting('max_connections')::integer AS most_connections

-- name: schemas_of_others
-- Schemas of ours that this role does not own, and so can't migrate.
SELECT nspname::text AS name FROM pg_namespace
WHERE nspname = ANY ($1::text[]) AND NOT pg_has_role(nspowner, 'USAGE')
ORDER BY nspname
