-- Version 10: usage in parts, so that an old snapshot does not make each batch slower; what holds such snapshots; the
-- mark of each spool stays for ever.

-- == partner ==

ALTER TABLE partner.usage ADD COLUMN part bigint NOT NULL DEFAULT 0;
ALTER TABLE partner.usage DROP CONSTRAINT usage_pkey, ADD PRIMARY KEY (credential_id, minute, part);
COMMENT ON TABLE partner.usage IS
    'Requests answered per credential and minute (UTC): the sum of the parts. Only the usage aggregator writes it.';
COMMENT ON COLUMN partner.usage.part IS
    '0, or a further part that was begun while a session held an old snapshot; it is folded into 0 later. So in the '
    'other tables of usage.';
CREATE INDEX usage_parts ON partner.usage (credential_id) WHERE part > 0;
CREATE SEQUENCE partner.usage_part;
COMMENT ON SEQUENCE partner.usage_part IS 'Numbers the batches that are added to further parts.';

ALTER TABLE partner.usage_day ADD COLUMN part bigint NOT NULL DEFAULT 0;
ALTER TABLE partner.usage_day DROP CONSTRAINT usage_day_pkey, ADD PRIMARY KEY (credential_id, day, part);
CREATE INDEX usage_day_parts ON partner.usage_day (credential_id) WHERE part > 0;

ALTER TABLE partner.usage_hour ADD COLUMN part bigint NOT NULL DEFAULT 0;
ALTER TABLE partner.usage_hour DROP CONSTRAINT usage_hour_pkey,
    ADD PRIMARY KEY (credential_id, hour, endpoint_no, status_class, part);
CREATE INDEX usage_hour_parts ON partner.usage_hour (credential_id) WHERE part > 0;

DROP INDEX partner.usage_total_list;
ALTER TABLE partner.usage_total ADD COLUMN part bigint NOT NULL DEFAULT 0;
ALTER TABLE partner.usage_total DROP CONSTRAINT usage_total_pkey, ADD PRIMARY KEY (credential_id, part);
COMMENT ON TABLE partner.usage_total IS
    'Requests per credential since its creation, one row and rarely further parts for each, written with usage: a '
    'page of a list is one index range.';
CREATE INDEX usage_total_list
    ON partner.usage_total (admin_key_id, (successful + failed) DESC, created_at DESC, credential_id DESC)
    INCLUDE (successful, failed) WHERE part = 0;
CREATE INDEX usage_total_parts ON partner.usage_total (admin_key_id, credential_id) WHERE part > 0;

ALTER TABLE partner.usage_kept ADD COLUMN hours_since timestamptz;
COMMENT ON COLUMN partner.usage_kept.hours_since IS 'Hours of usage that began earlier are not kept.';
UPDATE partner.usage_kept SET hours_since = (SELECT min(hour) FROM partner.usage_hour);

ALTER TABLE partner.usage_batch DROP COLUMN closed_at;
COMMENT ON TABLE partner.usage_batch IS
    'One row per spool, kept for ever: its batches below next_offset have been added.';

CREATE VIEW partner.held_snapshot AS
    SELECT pid, usename::text AS role, application_name,
           extract(epoch FROM clock_timestamp() - xact_start)::float8 AS held_s
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT NULL, owner::text, 'prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared)::float8
    FROM pg_prepared_xacts
    WHERE database = current_database();
COMMENT ON VIEW partner.held_snapshot IS
    'What keeps Postgres from removing old versions of rows, which makes each further update of a row slower. '
    'Sessions of other roles are visible with pg_read_all_stats.';

-- == chain ==
