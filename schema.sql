-- A new database. `shared/schema.py` creates the first section once and the second once per network, in the schemas
-- chain_mainnet, chain_preview and chain_preprod; `shared/migrations/` migrates older databases to it.

-- == partner ==

CREATE SCHEMA partner;

CREATE TABLE partner.schema_version (version integer NOT NULL);
COMMENT ON TABLE partner.schema_version IS 'One row: the version that shared/schema.py compares with its own.';

CREATE TABLE partner.leader (
    network_id     smallint         PRIMARY KEY,
    backend_pid    integer          NOT NULL,
    beat_at        timestamptz      NOT NULL,
    failing        text[]           NOT NULL,
    version        text             NOT NULL,
    node_connected boolean          NOT NULL,
    node_since     timestamptz      NOT NULL,
    node_slot_no   bigint,
    node_block_no  bigint,
    node_moved_at  timestamptz,
    sync_left_s    double precision,
    finishing      boolean          NOT NULL,
    refused        text,
    nodes          text             NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE partner.leader IS
    'One row per network: the last heartbeat of its leading indexer, and the state of its node then.';
COMMENT ON COLUMN partner.leader.backend_pid IS
    'Postgres backend pid of the leader when it sent this heartbeat, which is valid only for that Postgres session.';
COMMENT ON COLUMN partner.leader.beat_at IS
    'By the database''s clock, like all times here, and compared only with that clock.';
COMMENT ON COLUMN partner.leader.failing IS 'Background tasks of that indexer that were failing.';
COMMENT ON COLUMN partner.leader.version IS 'Version of the indexer.';
COMMENT ON COLUMN partner.leader.node_since IS 'When the node was connected or, if it is not connected, lost.';
COMMENT ON COLUMN partner.leader.node_slot_no IS
    'The node''s tip as last reported, kept after the node or the indexer has ended.';
COMMENT ON COLUMN partner.leader.node_moved_at IS 'When the node''s tip last changed.';
COMMENT ON COLUMN partner.leader.sync_left_s IS
    'Seconds until the index reaches the node''s tip at the present rate; null at the tip or if unknown.';
COMMENT ON COLUMN partner.leader.finishing IS
    'Whether the end of bulk is under way, during which no message of the node is read.';
COMMENT ON COLUMN partner.leader.refused IS
    'Why the indexer stopped by itself, in words that anyone may read; null unless it did.';
COMMENT ON COLUMN partner.leader.nodes IS
    'The nodes of the network, if there are several, as JSON: shared/splits.py.';

CREATE TABLE partner.chain_split (
    network_id      smallint    NOT NULL,
    node_no         smallint    NOT NULL,
    noticed_at      timestamptz NOT NULL DEFAULT now(),
    slot_no         bigint,
    block_no        bigint,
    block_hash      bytea,
    our_slot_no     bigint      NOT NULL,
    our_block_no    bigint      NOT NULL,
    our_block_hash  bytea       NOT NULL,
    node_slot_no    bigint      NOT NULL,
    node_block_no   bigint      NOT NULL,
    node_block_hash bytea       NOT NULL,
    PRIMARY KEY (network_id, node_no)
);
COMMENT ON TABLE partner.chain_split IS
    'The nodes whose chain differs from the index at present. The leading indexer deletes the row when it does not any '
    'more.';
COMMENT ON COLUMN partner.chain_split.node_no IS 'The place of the node in OGMIOS_URL_…, from 1.';
COMMENT ON COLUMN partner.chain_split.block_no IS
    'Of the last common block, with slot_no and block_hash; null if there is none.';
COMMENT ON COLUMN partner.chain_split.our_block_no IS
    'Of the last block of the index when both were last compared; node_block_no that of the node then.';

CREATE TABLE partner.retired_network (
    network_id smallint    PRIMARY KEY,
    retired_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE partner.retired_network IS
    'Networks whose indexer was stopped deliberately; excluded from readiness and metrics. The next indexer deletes '
    'the row.';

CREATE TABLE partner.verification (
    network_id  smallint    PRIMARY KEY,
    began_at    timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    slot_no     bigint      NOT NULL,
    block_no    bigint      NOT NULL,
    node_blocks bigint,
    differing   text[]      NOT NULL
);
COMMENT ON TABLE partner.verification IS
    'One row per network: the last `verify` that ran to its end on the present index.';
COMMENT ON COLUMN partner.verification.slot_no IS 'The last verified block.';
COMMENT ON COLUMN partner.verification.node_blocks IS 'Blocks compared with the node; null without --against-node.';
COMMENT ON COLUMN partner.verification.differing IS 'The checks that found differences; empty: everything matched.';

-- Admin keys ----------------------------------------------------------------------------------------------------------

CREATE TABLE partner.admin_key (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    is_bootstrap boolean     NOT NULL DEFAULT false,
    entity_name  text        NOT NULL,
    key_prefix   text        NOT NULL,
    key_hash     bytea       UNIQUE,
    permissions  text[]      NOT NULL,
    credentials  integer     NOT NULL DEFAULT 0
);
COMMENT ON TABLE partner.admin_key IS
    'One row per partner, and one for the operator, under which the bootstrap key and the command line act.';
COMMENT ON COLUMN partner.admin_key.key_hash IS
    'SHA-256 of the key; the key itself is not stored. Null only for an operator without a bootstrap key.';
COMMENT ON COLUMN partner.admin_key.credentials IS
    'How many credentials it has created, revoked ones included: the total in its usage list.';
CREATE UNIQUE INDEX admin_key_bootstrap ON partner.admin_key (is_bootstrap) WHERE is_bootstrap;
CREATE INDEX admin_key_page ON partner.admin_key (created_at DESC, id DESC);

-- Accounts and their keys ---------------------------------------------------------------------------------------------

CREATE TABLE partner.user_account (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    admin_key_id uuid        NOT NULL REFERENCES partner.admin_key,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz,
    deleted_at   timestamptz,
    status       text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'pending')),
    name         text        NOT NULL,
    external_id  text,
    email        text,
    billing_plan text,
    metadata     json        NOT NULL DEFAULT '{}',
    UNIQUE (admin_key_id, external_id),
    UNIQUE (id, admin_key_id)
);
COMMENT ON TABLE partner.user_account IS
    'A customer of a partner. Only the admin key that created it can read and change it.';
COMMENT ON COLUMN partner.user_account.deleted_at IS
    'After that, only its usage is found. Its texts are erased; the row is kept for the usage of its credentials.';
COMMENT ON COLUMN partner.user_account.metadata IS
    'json, not jsonb, so that it is returned unchanged, including the order of its keys.';
CREATE INDEX user_account_page ON partner.user_account (admin_key_id, created_at DESC, id DESC);

CREATE TABLE partner.credential (
    id                    uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    user_account_id       uuid        NOT NULL,
    admin_key_id          uuid        NOT NULL,
    created_at            timestamptz NOT NULL DEFAULT now(),
    last_used_at          timestamptz,
    expires_at            timestamptz,
    revoked_at            timestamptz,
    rate_limit_per_minute integer     NOT NULL CHECK (rate_limit_per_minute BETWEEN 1 AND 10000),
    network_id            smallint    NOT NULL CHECK (network_id IN (0, 1, 2)),
    quota_requests        bigint      CHECK (quota_requests > 0),
    quota_per             text        CHECK (quota_per IN ('day', 'month')),
    key_hash              bytea       NOT NULL UNIQUE,
    api_key_prefix        text        NOT NULL,
    name                  text        NOT NULL,
    description           text,
    ip_networks           text[]      NOT NULL DEFAULT '{}',
    scopes                text[]      NOT NULL DEFAULT '{}',
    metadata              json        NOT NULL DEFAULT '{}',
    CHECK ((quota_requests IS NULL) = (quota_per IS NULL)),
    FOREIGN KEY (user_account_id, admin_key_id) REFERENCES partner.user_account (id, admin_key_id)
);
COMMENT ON TABLE partner.credential IS 'An API key of one user account for one network. Revoked rows are kept.';
COMMENT ON COLUMN partner.credential.admin_key_id IS
    'The account''s owner, repeated here so that a partner''s list is one range of one index.';
COMMENT ON COLUMN partner.credential.key_hash IS 'SHA-256 of the key; the key itself is not stored.';
COMMENT ON COLUMN partner.credential.quota_requests IS
    'The most requests per day or month (UTC) that are admitted; null: any number.';
COMMENT ON COLUMN partner.credential.ip_networks IS
    'Where the key may be used from, in CIDR notation; empty: anywhere.';
COMMENT ON COLUMN partner.credential.scopes IS
    'Scopes of the key; empty: every scope except submit, which must be named.';
CREATE INDEX credential_page ON partner.credential (admin_key_id, created_at DESC, id DESC);
CREATE INDEX credential_user_account ON partner.credential (user_account_id);
CREATE INDEX credential_expiry ON partner.credential (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;

CREATE TABLE partner.former_key (
    key_hash      bytea       PRIMARY KEY,
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    ends_at       timestamptz NOT NULL
);
COMMENT ON TABLE partner.former_key IS
    'Keys that a rotation has replaced. Each is valid until it ends, and known as expired for 30 days after that.';
CREATE INDEX former_key_credential ON partner.former_key (credential_id);

-- Usage ---------------------------------------------------------------------------------------------------------------

CREATE TABLE partner.usage (
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    minute        timestamptz NOT NULL,
    successful    bigint      NOT NULL,
    failed        bigint      NOT NULL,
    took_us       bigint      NOT NULL,
    part          bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (credential_id, minute, part)
);
COMMENT ON TABLE partner.usage IS
    'Requests answered per credential and minute (UTC): the sum of the parts. The usage aggregator writes it, and '
    'retention deletes old minutes.';
COMMENT ON COLUMN partner.usage.part IS
    '0, or a further part that was begun while a session held an old snapshot; it is folded into 0 later. So in the '
    'other tables of usage.';
COMMENT ON COLUMN partner.usage.successful IS 'Answers with status 2xx and 3xx; failed: 4xx and 5xx.';
COMMENT ON COLUMN partner.usage.took_us IS 'Sum of their response times, in microseconds.';
CREATE INDEX usage_parts ON partner.usage (credential_id) WHERE part > 0;
CREATE SEQUENCE partner.usage_part;
COMMENT ON SEQUENCE partner.usage_part IS 'Numbers the batches that are added to further parts.';

CREATE TABLE partner.usage_day (
    credential_id uuid   NOT NULL REFERENCES partner.credential,
    day           date   NOT NULL,
    successful    bigint NOT NULL,
    failed        bigint NOT NULL,
    took_us       bigint NOT NULL,
    limited       bigint NOT NULL DEFAULT 0,
    part          bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (credential_id, day, part)
);
COMMENT ON TABLE partner.usage_day IS
    'The same per day (UTC), written in the same commit, so that a year is 365 rows instead of half a million.';
COMMENT ON COLUMN partner.usage_day.limited IS 'Those of failed with status 429, which do not count towards a quota.';
CREATE INDEX usage_day_parts ON partner.usage_day (credential_id) WHERE part > 0;

CREATE TABLE partner.endpoint (
    endpoint_no smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text     NOT NULL UNIQUE
);
COMMENT ON TABLE partner.endpoint IS
    'Endpoints that were called with an API key: method and route template. And webhook, whose events are delivered.';

CREATE TABLE partner.usage_hour (
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    hour          timestamptz NOT NULL,
    endpoint_no   smallint    NOT NULL REFERENCES partner.endpoint,
    status_class  smallint    NOT NULL,
    requests      bigint      NOT NULL,
    took_us       bigint      NOT NULL,
    durations     bigint[]    NOT NULL,
    part          bigint      NOT NULL DEFAULT 0,
    events        bigint      NOT NULL DEFAULT 0,
    stream_minutes bigint     NOT NULL DEFAULT 0,
    PRIMARY KEY (credential_id, hour, endpoint_no, status_class, part)
);
COMMENT ON TABLE partner.usage_hour IS
    'Requests answered per credential, hour (UTC), endpoint and class of status (4 for 4xx), written in the commit of '
    'usage.';
COMMENT ON COLUMN partner.usage_hour.durations IS
    'A histogram of response times: bucket << 48 | count for each bucket, ascending (api/usage/durations.py).';
COMMENT ON COLUMN partner.usage_hour.events IS
    'Events of subscriptions that were delivered: in answers, or acknowledged. Not requests.';
COMMENT ON COLUMN partner.usage_hour.stream_minutes IS
    'Minutes in which streams of events were open, of each stream on its own.';
CREATE INDEX usage_hour_parts ON partner.usage_hour (credential_id) WHERE part > 0;

CREATE FUNCTION partner.durations_add(a bigint[], b bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg((bucket << 48) + requests ORDER BY bucket), '{}')
    FROM (
        SELECT part >> 48 AS bucket, sum(part & 281474976710655)::bigint AS requests
        FROM unnest(a || b) AS part
        GROUP BY 1
    ) AS buckets
$$;
COMMENT ON FUNCTION partner.durations_add IS 'The sum of two histograms of response times.';
CREATE AGGREGATE partner.durations_sum(bigint[]) (sfunc = partner.durations_add, stype = bigint[], initcond = '{}');
COMMENT ON AGGREGATE partner.durations_sum(bigint[]) IS 'The sum of histograms of response times.';

CREATE TABLE partner.usage_total (
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    admin_key_id  uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    successful    bigint      NOT NULL DEFAULT 0,
    failed        bigint      NOT NULL DEFAULT 0,
    part          bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (credential_id, part)
);
COMMENT ON TABLE partner.usage_total IS
    'Requests per credential since its creation, one row and rarely further parts for each, written with usage: a '
    'page of a list is one index range.';
COMMENT ON COLUMN partner.usage_total.admin_key_id IS
    'Copied from credential, like created_at, so that the list is one range of one index.';
CREATE INDEX usage_total_list
    ON partner.usage_total (admin_key_id, (successful + failed) DESC, created_at DESC, credential_id DESC)
    INCLUDE (successful, failed) WHERE part = 0;
CREATE INDEX usage_total_parts ON partner.usage_total (admin_key_id, credential_id) WHERE part > 0;

CREATE TABLE partner.usage_kept (
    one   boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL,
    hours_since timestamptz
);
COMMENT ON TABLE partner.usage_kept IS
    'At most one row: the first day (UTC) whose minutes of usage are kept. Earlier usage is known by hour '
    '(usage_hour) and by day only.';
COMMENT ON COLUMN partner.usage_kept.hours_since IS 'Hours of usage that began earlier are not kept.';

CREATE FUNCTION partner.usage_of(of_credential uuid, since timestamptz, until timestamptz)
RETURNS TABLE (day date, successful bigint, failed bigint, took_us bigint) LANGUAGE sql STABLE AS $$
    -- The days from head_end to tail_start are whole; minutes before and after them are read one by one.
    -- Where minutes are no longer kept, the first and the last day of a period count in full.
    WITH kept AS (
        SELECT coalesce((SELECT usage_kept.since FROM partner.usage_kept), '-infinity') AS minutes_since
    ), asked AS (
        SELECT CASE WHEN since < minutes_since THEN date_trunc('day', since, 'UTC')
                    ELSE date_trunc('minute', since) END AS since,
               CASE WHEN until < minutes_since AND until > date_trunc('day', until, 'UTC')
                    THEN date_trunc('day', until, 'UTC') + interval '1 day' ELSE until END AS until
        FROM kept
    ), period AS (
        SELECT asked.since, asked.until,
               CASE WHEN date_trunc('day', asked.since, 'UTC') = asked.since THEN asked.since
                    ELSE date_trunc('day', asked.since, 'UTC') + interval '1 day' END AS head_end
        FROM asked
    ), whole AS (
        SELECT period.since, period.until, head_end,
               greatest(head_end, date_trunc('day', period.until, 'UTC')) AS tail_start
        FROM period
    )
    SELECT usage_day.day, usage_day.successful, usage_day.failed, usage_day.took_us
    FROM whole
    JOIN partner.usage_day ON usage_day.credential_id = of_credential
         AND usage_day.day >= (head_end AT TIME ZONE 'UTC')::date
         AND usage_day.day < (tail_start AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT (usage.minute AT TIME ZONE 'UTC')::date, usage.successful, usage.failed, usage.took_us
    FROM whole
    JOIN partner.usage ON usage.credential_id = of_credential
         AND usage.minute >= whole.since AND usage.minute < least(whole.until, head_end)
    UNION ALL
    SELECT (usage.minute AT TIME ZONE 'UTC')::date, usage.successful, usage.failed, usage.took_us
    FROM whole
    JOIN partner.usage ON usage.credential_id = of_credential
         AND usage.minute >= tail_start AND usage.minute < whole.until
$$;
COMMENT ON FUNCTION partner.usage_of IS
    'Usage rows of a credential in [since, until), by whole minutes: whole days from usage_day, the rest from usage. '
    'Either bound may be infinite.';

CREATE TABLE partner.usage_batch (
    spool       text        PRIMARY KEY,
    next_offset bigint      NOT NULL,
    added_at    timestamptz NOT NULL DEFAULT now()
);
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

-- Audit log -----------------------------------------------------------------------------------------------------------

CREATE TABLE partner.audit_log (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    admin_key_id uuid        NOT NULL REFERENCES partner.admin_key,
    target_id    uuid,
    target_type  text        NOT NULL CHECK (target_type IN ('credential', 'user_account', 'admin_key')),
    action       text        NOT NULL,
    ip_address   text,
    details      json        NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE partner.audit_log IS
    'Admin actions. A change and its entry are one commit; the entry of a list is a commit of its own. Entries of '
    'reading are pruned, names of deleted accounts erased.';
CREATE INDEX audit_log_page ON partner.audit_log (created_at DESC, id DESC);
CREATE INDEX audit_log_admin_key ON partner.audit_log (admin_key_id, created_at DESC, id DESC);
CREATE INDEX audit_log_target ON partner.audit_log (target_id, created_at DESC, id DESC);
CREATE INDEX audit_log_request ON partner.audit_log ((details ->> 'request_id'));
CREATE INDEX audit_log_reading ON partner.audit_log (created_at) WHERE right(action, 7) IN ('.viewed', '.listed');

-- Idempotency keys ----------------------------------------------------------------------------------------------------

CREATE TABLE partner.idempotency_key (
    key_hash    bytea       PRIMARY KEY,
    created_at  timestamptz NOT NULL DEFAULT now(),
    body_hash   bytea       NOT NULL,
    target_id   uuid        NOT NULL,
    issued_to   text        CHECK (issued_to IN ('credential', 'admin_key', 'webhook')),
    answer      bytea       CHECK (answer IS NULL OR issued_to IS NULL),
    invalidated bytea[]     NOT NULL
);
COMMENT ON TABLE partner.idempotency_key IS
    'Requests with an Idempotency-Key, each written in the commit of its change or, if it submits a transaction, '
    'after the node has accepted that. A row is valid for 24 hours, then deleted.';
COMMENT ON COLUMN partner.idempotency_key.key_hash IS
    'SHA-256 of admin key or credential, method, path and idempotency key.';
COMMENT ON COLUMN partner.idempotency_key.body_hash IS
    'SHA-256 of idempotency key and body. The key, which is not stored, salts it.';
COMMENT ON COLUMN partner.idempotency_key.target_id IS
    'What the answer is about: an account, a credential or an admin key; if it is about a transaction, the credential '
    'that submitted it.';
COMMENT ON COLUMN partner.idempotency_key.issued_to IS
    'Of an answer that contains a new key: the kind of target that the key belongs to.';
COMMENT ON COLUMN partner.idempotency_key.answer IS
    'Body of the answer. Null if it contains a key, or was erased with its account.';
COMMENT ON COLUMN partner.idempotency_key.invalidated IS
    'Hashes of the API keys that the request has made the caches forget.';
CREATE INDEX idempotency_key_age ON partner.idempotency_key (created_at);
CREATE INDEX idempotency_key_target ON partner.idempotency_key (target_id) WHERE answer IS NOT NULL;

-- Submitted transactions ----------------------------------------------------------------------------------------------

CREATE TABLE partner.submitted_tx (
    submitted_at      timestamptz NOT NULL DEFAULT now(),
    rolled_back_at    timestamptz,
    network_id        smallint    NOT NULL,
    accepted          boolean     NOT NULL,
    user_account_id   uuid        NOT NULL REFERENCES partner.user_account,
    invalid_hereafter numeric,
    tx_hash           bytea       NOT NULL,
    cbor              bytea       NOT NULL,
    PRIMARY KEY (network_id, tx_hash, user_account_id)
);
COMMENT ON TABLE partner.submitted_tx IS
    'Transactions that the keys of an account have submitted, each written before the node gets it. Old ones are '
    'pruned.';
COMMENT ON COLUMN partner.submitted_tx.submitted_at IS
    'When it was first handed in here or, once the node has accepted it, when the node last did.';
COMMENT ON COLUMN partner.submitted_tx.rolled_back_at IS
    'When the indexer last removed a block with it because of the node; null since the node has accepted it again.';
COMMENT ON COLUMN partner.submitted_tx.accepted IS
    'Whether the node is known to have accepted it; false while it is asked, and after its answer was lost.';
COMMENT ON COLUMN partner.submitted_tx.invalid_hereafter IS
    'The first slot in which it is no longer valid, up to 2^64 - 1; null: never.';
ALTER TABLE partner.submitted_tx ALTER cbor SET STORAGE EXTERNAL;
CREATE INDEX submitted_tx_account ON partner.submitted_tx (user_account_id, network_id, submitted_at);
CREATE INDEX submitted_tx_age ON partner.submitted_tx (submitted_at);
CREATE INDEX submitted_tx_ends ON partner.submitted_tx (network_id, invalid_hereafter)
    WHERE invalid_hereafter IS NOT NULL;

-- Metadata of pools ---------------------------------------------------------------------------------------------------

CREATE TABLE partner.pool_metadata (
    network_id   smallint    NOT NULL,
    attempts     integer     NOT NULL DEFAULT 0,
    found_at     timestamptz NOT NULL DEFAULT now(),
    replaced_at  timestamptz,
    try_at       timestamptz,
    tried_at     timestamptz,
    hash         bytea       NOT NULL,
    url          bytea       NOT NULL,
    source       text        CHECK (length(source) <= 2048),
    failure_code text,
    failure      text        CHECK (length(failure) <= 300),
    content      bytea       CHECK (length(content) <= 512),
    PRIMARY KEY (network_id, hash, url),
    CHECK (content IS NULL OR failure_code IS NULL),
    CHECK ((failure_code IS NULL) = (failure IS NULL)),
    CHECK ((content IS NULL) = (source IS NULL))
);
COMMENT ON TABLE partner.pool_metadata IS
    'What the URLs in registrations of pools lead to. It is not part of a chain, so that it stays when that is rolled '
    'back or emptied. Only the usage aggregator writes it.';
COMMENT ON COLUMN partner.pool_metadata.found_at IS 'When a registration with this hash and URL was first seen.';
COMMENT ON COLUMN partner.pool_metadata.replaced_at IS
    'Since when it is in no pool''s latest registration; such a row is deleted after 30 days.';
COMMENT ON COLUMN partner.pool_metadata.try_at IS
    'When it is fetched next; null: never, since it was fetched, or since its bytes are known to be unusable.';
COMMENT ON COLUMN partner.pool_metadata.tried_at IS 'When it was last fetched, or tried to be.';
COMMENT ON COLUMN partner.pool_metadata.hash IS 'As registered: Blake2b-256 of the document.';
COMMENT ON COLUMN partner.pool_metadata.url IS 'As registered, in UTF-8: it may hold a NUL.';
COMMENT ON COLUMN partner.pool_metadata.source IS 'The URL that gave the document, after redirects.';
COMMENT ON COLUMN partner.pool_metadata.failure IS
    'Why the last attempt failed. It may name private addresses: for the operator only.';
COMMENT ON COLUMN partner.pool_metadata.content IS 'The document as received, which has the hash.';
CREATE INDEX pool_metadata_due ON partner.pool_metadata (try_at) WHERE replaced_at IS NULL AND try_at IS NOT NULL;

CREATE TABLE partner.delisted_pool (
    delisted_at timestamptz NOT NULL DEFAULT now(),
    pool_id     bytea       PRIMARY KEY
);
COMMENT ON TABLE partner.delisted_pool IS
    'Pools whose metadata is not shown, as the file of POOL_METADATA_DELISTED says.';

CREATE TABLE partner.pool_metadata_turn (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    taken_at timestamptz NOT NULL
);
COMMENT ON TABLE partner.pool_metadata_turn IS
    'At most one row: when a process of the usage aggregator last compared pool_metadata with the registrations.';

-- Events: subscriptions, and a log for each ---------------------------------------------------------------------------

CREATE TABLE partner.subscription (
    subscription_no bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    last_number     bigint      NOT NULL DEFAULT 0,
    after_slot_no   bigint      NOT NULL,
    at_slot_no      bigint      NOT NULL,
    live_step       bigint,
    created_at      timestamptz NOT NULL DEFAULT now(),
    subjects        integer     NOT NULL DEFAULT 0,
    network_id      smallint    NOT NULL,
    confirmations   smallint    NOT NULL CHECK (confirmations BETWEEN 0 AND 2160),
    state           text        NOT NULL CHECK (state IN ('new', 'catching_up', 'live', 'ended')),
    credential_id   uuid        NOT NULL REFERENCES partner.credential,
    id              uuid        NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    CHECK ((live_step IS NOT NULL) >= (state = 'live'))
) WITH (fillfactor = 80);
COMMENT ON TABLE partner.subscription IS
    'What a credential wants to be told of its network, and how far its log has got.';
COMMENT ON COLUMN partner.subscription.last_number IS
    'The number of the last event in its log: 1, 2, 3 … without gaps.';
COMMENT ON COLUMN partner.subscription.after_slot_no IS
    'It is told of blocks after this slot. An undoing that goes further back lowers it, and is told as a reset.';
COMMENT ON COLUMN partner.subscription.at_slot_no IS
    'The slot up to which it has caught up with event_mark; once it is live, event_mark says so.';
COMMENT ON COLUMN partner.subscription.live_step IS 'The step of event_mark at which it caught up.';
COMMENT ON COLUMN partner.subscription.subjects IS 'The number of its rows in subject.';
COMMENT ON COLUMN partner.subscription.confirmations IS 'How many blocks follow a block when it is told of it.';
COMMENT ON COLUMN partner.subscription.state IS
    'new: not begun yet; catching_up: blocks up to event_mark are still to be read for it; live: it is told of each '
    'block with all others; ended: deleted or revoked, and dropped in the background.';
CREATE INDEX subscription_page ON partner.subscription (credential_id, subscription_no) WHERE state <> 'ended';
CREATE INDEX subscription_catching_up ON partner.subscription (network_id, at_slot_no) WHERE state = 'catching_up';
CREATE INDEX subscription_after ON partner.subscription (network_id, after_slot_no)
    WHERE state IN ('catching_up', 'live');
CREATE INDEX subscription_ended ON partner.subscription (subscription_no) WHERE state = 'ended';

CREATE TABLE partner.subject (
    subscription_no bigint   NOT NULL REFERENCES partner.subscription,
    network_id      smallint NOT NULL,
    direction       text     NOT NULL CHECK (direction IN ('in', 'out', 'both')),
    least           numeric  NOT NULL,
    key             bytea    NOT NULL CHECK (length(key) BETWEEN 2 AND 1024),
    PRIMARY KEY (network_id, key, subscription_no)
);
COMMENT ON TABLE partner.subject IS
    'The subjects of subscriptions. Those of a block are looked up here, so that its cost does not grow with others.';
COMMENT ON COLUMN partner.subject.key IS
    'Kind of event, kind of subject, and the subject (api/events/subjects.py).';
COMMENT ON COLUMN partner.subject.direction IS 'in: what it receives; out: what it spends; both: either.';
COMMENT ON COLUMN partner.subject.least IS 'The least quantity that it must receive or spend.';
CREATE UNIQUE INDEX subject_of_subscription ON partner.subject (subscription_no, key);

CREATE TABLE partner.event_mark (
    step       bigint   NOT NULL,
    slot_no    bigint   NOT NULL,
    block_no   bigint   NOT NULL,
    network_id smallint PRIMARY KEY,
    block_hash bytea    NOT NULL
);
COMMENT ON TABLE partner.event_mark IS
    'Up to which block the live subscriptions of a network have been told. It moves in the commit of their events.';
COMMENT ON COLUMN partner.event_mark.step IS 'Grows by one for each block that is told of, and for each undoing.';
COMMENT ON COLUMN partner.event_mark.block_hash IS 'Empty before the first block of event_block.';

CREATE TABLE partner.event_block (
    step       bigint   NOT NULL,
    slot_no    bigint   NOT NULL,
    block_no   bigint   NOT NULL,
    network_id smallint NOT NULL,
    undone     boolean  NOT NULL DEFAULT false,
    block_hash bytea    NOT NULL,
    PRIMARY KEY (network_id, step)
);
COMMENT ON TABLE partner.event_block IS
    'The last blocks up to event_mark, and the undone ones among them. The chain of today shows which are undone next.';
CREATE INDEX event_block_block_no ON partner.event_block (network_id, block_no);
CREATE INDEX event_block_hash ON partner.event_block USING hash (block_hash);

CREATE TABLE partner.event_object (
    object_no bigint      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    made_at   timestamptz NOT NULL DEFAULT now(),
    body      text        NOT NULL
);
COMMENT ON TABLE partner.event_object IS
    'What events tell, as JSON: once, however many subscriptions are told of it. Kept for longer than events, since an '
    'event may be told, and then undone, long after its block.';
CREATE INDEX event_object_age ON partner.event_object USING brin (made_at) WITH (autosummarize = on);

CREATE TABLE partner.event (
    subscription_no bigint      NOT NULL,
    number          bigint      NOT NULL,
    step            bigint      NOT NULL,
    slot_no         bigint      NOT NULL,
    block_no        bigint      NOT NULL,
    object_no       bigint      NOT NULL,
    undoes          bigint,
    told_at         timestamptz NOT NULL DEFAULT now(),
    network_id      smallint    NOT NULL,
    undone          boolean     NOT NULL,
    received        numeric,
    spent           numeric,
    block_hash      bytea       NOT NULL,
    key             bytea       NOT NULL,
    PRIMARY KEY (subscription_no, number)
);
COMMENT ON TABLE partner.event IS
    'The logs of subscriptions. Every way to read events reads these rows, in this order.';
COMMENT ON COLUMN partner.event.step IS 'The step of event_mark in which it was told.';
COMMENT ON COLUMN partner.event.undoes IS 'The number of the event that this one undoes; null: it tells of a block.';
COMMENT ON COLUMN partner.event.undone IS
    'Whether there is nothing to undo: it is undone already, undoes another, or tells of what is in no block.';
COMMENT ON COLUMN partner.event.key IS 'The subject that it matched, after a ! if it tells of a notice; of a reset r-.';
CREATE INDEX event_told ON partner.event (network_id, slot_no) WHERE NOT undone;
CREATE INDEX event_age ON partner.event USING brin (told_at) WITH (autosummarize = on);

CREATE TABLE partner.event_waiting (
    subscription_no bigint   NOT NULL,
    due_block_no    bigint   NOT NULL,
    slot_no         bigint   NOT NULL,
    block_no        bigint   NOT NULL,
    object_no       bigint   NOT NULL,
    place           integer  NOT NULL,
    network_id      smallint NOT NULL,
    received        numeric,
    spent           numeric,
    block_hash      bytea    NOT NULL,
    key             bytea    NOT NULL
);
COMMENT ON TABLE partner.event_waiting IS
    'Events that wait for the confirmations of their block. If it is undone before that, nobody is told of it.';
COMMENT ON COLUMN partner.event_waiting.due_block_no IS 'They are told when event_mark reaches this block.';
CREATE INDEX event_waiting_due ON partner.event_waiting (network_id, due_block_no);
CREATE INDEX event_waiting_slot ON partner.event_waiting (network_id, slot_no);

CREATE TABLE partner.event_notice (
    notice_no  bigint      GENERATED ALWAYS AS IDENTITY,
    noticed_at timestamptz NOT NULL DEFAULT now(),
    network_id smallint    NOT NULL,
    owner      uuid,
    kind       text        NOT NULL,
    body       text        NOT NULL CHECK (length(body) <= 65536),
    PRIMARY KEY (network_id, notice_no)
);
COMMENT ON TABLE partner.event_notice IS
    'What is in no block, and is still to be told. It is written in the commit that causes it; the follower of the '
    'network appends it to logs, and deletes it in the same commit.';
COMMENT ON COLUMN partner.event_notice.owner IS
    'The credential or the account that is told of it, as its kind says; null: all that ask for its kind.';
COMMENT ON COLUMN partner.event_notice.body IS 'The object of the event, as JSON.';

CREATE TABLE partner.event_notice_once (
    period        timestamptz NOT NULL,
    noticed_at    timestamptz NOT NULL DEFAULT now(),
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    kind          text        NOT NULL,
    PRIMARY KEY (credential_id, kind, period)
);
COMMENT ON TABLE partner.event_notice_once IS
    'The notices of which a credential gets one in each period, written in their commit. Old ones are pruned.';
COMMENT ON COLUMN partner.event_notice_once.period IS
    'Of key.expiring: when the key expires; of quota.80 and quota.100: when the period of the quota began.';

CREATE TABLE partner.webhook (
    subscription_no  bigint      PRIMARY KEY REFERENCES partner.subscription ON DELETE CASCADE,
    delivered_number bigint      NOT NULL,
    tried            bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT now(),
    try_at           timestamptz NOT NULL DEFAULT now(),
    former_until     timestamptz,
    revision         uuid        NOT NULL DEFAULT gen_random_uuid(),
    failures         smallint    NOT NULL DEFAULT 0,
    state            text        NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'failing', 'ended')),
    url              text        NOT NULL CHECK (length(url) <= 2048),
    secret           bytea       NOT NULL,
    former_secret    bytea,
    CHECK ((former_secret IS NULL) = (former_until IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE partner.webhook IS
    'Where the events of a subscription are sent to, and how far that has got. The usage aggregator sends them, one '
    'after another.';
COMMENT ON COLUMN partner.webhook.delivered_number IS 'The next event that is sent is the one after this number.';
COMMENT ON COLUMN partner.webhook.revision IS
    'Another one whenever a request changes url or delivered_number: the result of an attempt from before is ignored.';
COMMENT ON COLUMN partner.webhook.tried IS 'The number of attempts; the next one has a place in webhook_attempt by it.';
COMMENT ON COLUMN partner.webhook.try_at IS 'Before this time nothing is sent.';
COMMENT ON COLUMN partner.webhook.failures IS 'How many attempts to send the next event have failed.';
COMMENT ON COLUMN partner.webhook.state IS
    'active: events are sent; paused: by its owner; failing: paused after the last attempt to send an event; ended: '
    'the endpoint has answered 410 Gone.';
COMMENT ON COLUMN partner.webhook.secret IS 'What events are signed with, so it is needed as it is.';
COMMENT ON COLUMN partner.webhook.former_secret IS
    'The one that a rotation has replaced. It signs as well, until former_until.';

CREATE VIEW partner.webhook_waiting AS
SELECT webhook.*, credential.admin_key_id
FROM partner.webhook
JOIN partner.subscription USING (subscription_no)
JOIN partner.credential ON credential.id = subscription.credential_id
JOIN partner.user_account ON user_account.id = credential.user_account_id
WHERE webhook.state = 'active' AND subscription.last_number > webhook.delivered_number
  AND subscription.state <> 'ended' AND user_account.status = 'active'
  AND credential.revoked_at IS NULL AND (credential.expires_at IS NULL OR credential.expires_at > now())
  AND (credential.scopes = '{}' OR 'events' = ANY (credential.scopes));
COMMENT ON VIEW partner.webhook_waiting IS
    'The webhooks with an event to send, now or at try_at. Not those of credentials whose keys are refused.';

CREATE TABLE partner.webhook_attempt (
    subscription_no bigint      NOT NULL REFERENCES partner.webhook ON DELETE CASCADE,
    number          bigint      NOT NULL,
    tried_at        timestamptz NOT NULL,
    took_ms         integer     NOT NULL,
    place           smallint    NOT NULL,
    attempt         smallint    NOT NULL,
    status          smallint,
    error           text,
    PRIMARY KEY (subscription_no, place)
) WITH (fillfactor = 50);
COMMENT ON TABLE partner.webhook_attempt IS
    'The last attempts to send events to each webhook: a new one replaces the oldest.';
COMMENT ON COLUMN partner.webhook_attempt.attempt IS 'Which attempt to send this event it was: 1, 2, …';
COMMENT ON COLUMN partner.webhook_attempt.status IS 'That of the answer; null if there was none.';

CREATE TABLE partner.webhook_total (
    attempts bigint NOT NULL,
    result   text   PRIMARY KEY
);
COMMENT ON TABLE partner.webhook_total IS 'The number of attempts of all webhooks by their result, for metrics.';

-- == chain ==

-- Tips ----------------------------------------------------------------------------------------------------------------

CREATE TABLE tip (
    one             boolean  PRIMARY KEY DEFAULT true CHECK (one),
    slot_no         bigint   NOT NULL,
    block_no        bigint   NOT NULL,
    block_hash      bytea    NOT NULL,
    first_block_no  bigint   NOT NULL,
    tx_count        bigint   NOT NULL,
    phase           text     NOT NULL CHECK (phase IN ('bulk', 'live')),
    finalize_step   smallint NOT NULL DEFAULT 0,
    numbering       uuid     NOT NULL DEFAULT gen_random_uuid(),
    script_lovelace bigint   NOT NULL DEFAULT 0
);
COMMENT ON TABLE tip IS
    'At most one row: the last committed block. It moves in the commit that writes the rows of its blocks. Without a '
    'row, nothing is indexed.';
COMMENT ON COLUMN tip.first_block_no IS 'If above 0, the index is partial: outputs from before this block are unknown.';
COMMENT ON COLUMN tip.tx_count IS 'Transactions, sub-transactions included.';
COMMENT ON COLUMN tip.script_lovelace IS 'The lovelace in unspent outputs that scripts lock.';
COMMENT ON COLUMN tip.phase IS
    'bulk: histories are staged without indexes and nothing can be queried yet; live: complete.';
COMMENT ON COLUMN tip.finalize_step IS 'How many steps from bulk to live are committed.';
COMMENT ON COLUMN tip.numbering IS
    'While it stays the same, so do row numbers. Set anew each time the indexer connects to its node, as Postgres may '
    'have lost commits before.';

CREATE TABLE rollback_depth (
    blocks_at_most integer     PRIMARY KEY,
    rollbacks      bigint      NOT NULL,
    blocks         bigint      NOT NULL,
    last_at        timestamptz NOT NULL,
    last_blocks    integer     NOT NULL
);
COMMENT ON TABLE rollback_depth IS
    'Rollbacks by the node, by depth; not part of the chain, so that they stay when it is emptied. Those of resync do '
    'not count.';
COMMENT ON COLUMN rollback_depth.blocks_at_most IS 'Upper bound of this histogram bucket; 2147483647: unbounded.';
COMMENT ON COLUMN rollback_depth.blocks IS 'Sum of the depths.';
COMMENT ON COLUMN rollback_depth.last_blocks IS 'Depth of the last one, at last_at.';

-- Blocks and transactions ---------------------------------------------------------------------------------------------

CREATE TABLE block (
    slot_no  bigint  PRIMARY KEY,
    block_no bigint  NOT NULL,
    tx_count integer NOT NULL,
    pool_no  integer NOT NULL,
    size     integer NOT NULL,
    hash     bytea   NOT NULL
);
COMMENT ON TABLE block IS 'All blocks except epoch boundary blocks.';
COMMENT ON COLUMN block.tx_count IS 'Transactions, sub-transactions included.';
COMMENT ON COLUMN block.pool_no IS
    'The pool of the issuer''s verification key (also of genesis delegates); in Byron the genesis key of the issuer.';
COMMENT ON COLUMN block.size IS 'Bytes of the body; in Byron of the whole block.';
CREATE INDEX block_block_no ON block (block_no);
CREATE INDEX block_hash ON block USING hash (hash);
CREATE INDEX block_pool ON block (pool_no, slot_no);

CREATE TABLE epoch_boundary_block (
    slot_no  bigint PRIMARY KEY,
    block_no bigint NOT NULL,
    hash     bytea  NOT NULL
);
COMMENT ON TABLE epoch_boundary_block IS
    'Byron''s blocks without a slot: each gets the first slot of its epoch and precedes any block in that slot.';

CREATE TABLE era_start (
    slot_no bigint PRIMARY KEY,
    era     text   NOT NULL UNIQUE
);
COMMENT ON TABLE era_start IS
    'The first indexed block of each era, under Ogmios'' name. Byron, the first, has no row: without one, the tip is '
    'in Byron.';

CREATE TABLE epoch (
    epoch_no integer PRIMARY KEY,
    blocks   integer NOT NULL,
    tx_count integer NOT NULL,
    fees     bigint  NOT NULL,
    output   numeric NOT NULL
);
COMMENT ON TABLE epoch IS 'Sums over the indexed blocks of each epoch; no row for an epoch without one.';
COMMENT ON COLUMN epoch.tx_count IS 'Transactions, sub-transactions included.';
COMMENT ON COLUMN epoch.fees IS 'Lovelace, of the transactions whose fee is known.';
COMMENT ON COLUMN epoch.output IS 'Lovelace in the outputs of its transactions, change included.';

CREATE TABLE tx (
    tx_id    bigint  PRIMARY KEY,
    fee      bigint,
    size     integer,
    hash     bytea   NOT NULL,
    outputs  bytea   NOT NULL,
    inputs   bytea   NOT NULL,
    mint     bytea,
    extra    bytea,
    attached bytea,
    referred bytea
);
COMMENT ON TABLE tx IS
    'One row per transaction; outputs, inputs, mint, extra, attached and referred are packed by shared/packed.py, with '
    'addresses and assets as their numbers.';
COMMENT ON COLUMN tx.tx_id IS
    'slot_no << 16 | index in the block; Dijkstra''s sub-transactions are numbered before their host.';
COMMENT ON COLUMN tx.fee IS 'Lovelace; null if it depends on an output from before the first indexed block.';
COMMENT ON COLUMN tx.attached IS 'Datums and reference scripts of its outputs, by hash; null if no output has any.';
COMMENT ON COLUMN tx.referred IS
    'What it names without spending or making it: its reference inputs, its collateral, and the return of that; null '
    'if there is none of these, and if its scripts failed.';
COMMENT ON COLUMN tx.size IS 'Bytes as the ledger counts them; null if the node does not send transactions as CBOR.';
-- NOTE: packed bytes hardly compress, and Postgres would try on every row above 2 kB.
ALTER TABLE tx ALTER outputs SET STORAGE EXTERNAL, ALTER inputs SET STORAGE EXTERNAL,
    ALTER mint SET STORAGE EXTERNAL, ALTER extra SET STORAGE EXTERNAL, ALTER attached SET STORAGE EXTERNAL,
    ALTER referred SET STORAGE EXTERNAL;
CREATE INDEX tx_hash ON tx USING hash (hash);

CREATE TABLE genesis_output (
    tx_id    bigint NOT NULL UNIQUE CHECK (tx_id < 0),
    lovelace bigint NOT NULL,
    tx_hash  bytea  PRIMARY KEY,
    address  bytea  NOT NULL
);
COMMENT ON TABLE genesis_output IS
    'Outputs, each at index 0, that exist before the first block and belong to no transaction.';
CREATE INDEX genesis_output_address ON genesis_output USING hash (address);
CREATE INDEX genesis_output_stake ON genesis_output (substr(address, 30, 28)) WHERE get_byte(address, 0) < 64;
CREATE INDEX genesis_output_credential ON genesis_output (substr(address, 2, 28)) WHERE get_byte(address, 0) < 128;
COMMENT ON COLUMN genesis_output.tx_id IS
    '-1 << 16, -2 << 16 and so on by hash, in place of a transaction''s: its slot, tx_id >> 16, is negative.';

CREATE TABLE spender (
    slot_no bigint PRIMARY KEY,
    entries bytea  NOT NULL CHECK (length(entries) > 0 AND length(entries) % 12 = 0)
);
COMMENT ON TABLE spender IS
    'Which transactions spent the outputs of a slot, the genesis included. No row if none is spent.';
COMMENT ON COLUMN spender.entries IS
    '12 bytes per spent output, in spending order: tx_id of the spender (8), index in its block of the transaction '
    'that made the output (2), output index (2).';
ALTER TABLE spender ALTER entries SET STORAGE EXTERNAL;

-- Row numbers of byte strings. They are never reused, so packed rows may contain them, and caches of them stay valid
-- across rollbacks (see tip.numbering). A rollback deletes the addresses that only undone blocks have used
--     -------------

CREATE TABLE stake (
    stake_no        integer PRIMARY KEY,
    pool_no         integer,
    active_epoch_no integer,
    address_count   integer NOT NULL DEFAULT 0,
    balance         bigint  NOT NULL DEFAULT 0,
    raw             bytea   NOT NULL,
    CHECK ((pool_no IS NULL) = (active_epoch_no IS NULL))
);
COMMENT ON TABLE stake IS 'Stake credentials, as the 29 bytes of their reward account (CIP-19).';
COMMENT ON COLUMN stake.pool_no IS
    'The pool of its last row in stake_event, perhaps retired since: the view delegation has the delegations that '
    'count.';
COMMENT ON COLUMN stake.active_epoch_no IS
    'The first epoch in which that delegation counts: two after its certificate.';
COMMENT ON COLUMN stake.address_count IS
    'How many of its addresses are in the genesis or have a transaction; in bulk only those in the genesis are '
    'counted.';
COMMENT ON COLUMN stake.balance IS 'Lovelace in the unspent outputs of its addresses.';
CREATE INDEX stake_raw ON stake USING hash (raw);
-- NOTE: no index contains a column that changes, so the many updates touch no index.

CREATE TABLE address (
    address_no    integer PRIMARY KEY,
    stake_no      integer,
    credential_no integer,
    raw           bytea   NOT NULL
);
COMMENT ON TABLE address IS 'Payment addresses, as their bytes (CIP-19).';
COMMENT ON COLUMN address.stake_no IS 'Its stake credential; only base addresses have one.';
COMMENT ON COLUMN address.credential_no IS
    'The address_no of the first address with the same payment credential; null for that one, and in Byron. A payment '
    'credential has the lists of its first address and, in the tables with a credential_no, those of the others.';
CREATE INDEX address_raw ON address USING hash (raw);
CREATE INDEX address_stake_no ON address (stake_no, address_no) WHERE stake_no IS NOT NULL;

CREATE FUNCTION payment_hash(raw bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
-- The hash in the payment credential of an address, of a key or of a script; null for an address of Byron.
SELECT CASE WHEN get_byte(raw, 0) >> 4 <> 8 THEN substr(raw, 2, 28) END
$$;
CREATE INDEX address_credential ON address USING hash (payment_hash(raw)) WHERE credential_no IS NULL;
-- NOTE: a hash index has no entry for a null, so it has none for Byron.

CREATE FUNCTION script_key(raw bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
-- The key of the script in the payment credential of an address; null for a key, and in Byron.
SELECT CASE WHEN get_byte(raw, 0) & 16 = 16 THEN substr(raw, 2, 16) END
$$;

CREATE TABLE pool (
    pool_no integer PRIMARY KEY,
    pool_id bytea   NOT NULL
);
COMMENT ON TABLE pool IS
    'Stake pools and other block issuers. pool_id is the hash of their cold key (28 bytes), in Byron the first 28 '
    'bytes of the hash of their genesis key.';
CREATE INDEX pool_pool_id ON pool USING hash (pool_id);

CREATE TABLE policy (
    policy_no   integer PRIMARY KEY,
    asset_count integer NOT NULL DEFAULT 0,
    policy_id   bytea   NOT NULL
);
COMMENT ON TABLE policy IS 'Minting policies. policy_id is the hash of their script (28 bytes).';
COMMENT ON COLUMN policy.asset_count IS 'The number of its assets, burned ones included.';
CREATE INDEX policy_policy_id ON policy USING hash (policy_id);

CREATE FUNCTION opens_bucket(number integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether the holder or asset with this number begins a bucket in every list that it is in: about one in 1,024 does.
SELECT (number::bigint * 2654435761 >> 16) & 1023 = 0
$$;

CREATE TABLE asset (
    asset_no         integer NOT NULL PRIMARY KEY,
    policy_no        integer NOT NULL,
    fingerprint      bigint  NOT NULL,
    name             bytea   NOT NULL,
    supply           numeric NOT NULL DEFAULT 0,
    mint_count       integer NOT NULL DEFAULT 0,
    burn_count       integer NOT NULL DEFAULT 0,
    first_tx_id      bigint,
    first_mint_tx_id bigint
);
COMMENT ON TABLE asset IS 'Native assets and their supply: quantity minted less quantity burned, as far as indexed.';
COMMENT ON COLUMN asset.fingerprint IS
    'The first 8 bytes of the digest in its fingerprint (CIP-14), as a signed number. Assets may share it; the '
    'fingerprint decides.';
COMMENT ON COLUMN asset.first_tx_id IS
    'The first transaction that moved it; null in bulk, and if a rollback removed all of them: the asset does not '
    'exist then.';
COMMENT ON COLUMN asset.first_mint_tx_id IS
    'The first indexed transaction that minted it; null in bulk, and if there is none.';
CREATE INDEX asset_name ON asset (policy_no, name);
CREATE INDEX asset_fingerprint ON asset (fingerprint);
CREATE INDEX asset_supply ON asset (policy_no, (-supply), name) INCLUDE (supply) WHERE first_tx_id IS NOT NULL;
CREATE INDEX asset_opening ON asset (policy_no, (-supply), name) INCLUDE (supply)
    WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_no);

CREATE TABLE asset_bucket (
    policy_no integer NOT NULL,
    rank      numeric NOT NULL,
    name      bytea   NOT NULL,
    assets    integer NOT NULL,
    PRIMARY KEY (policy_no, rank, name)
);
COMMENT ON TABLE asset_bucket IS
    'The number of assets of a policy from one for which opens_bucket is true to the next, by supply (greatest first) '
    'and name. For policies with at least 4 such assets; used to find deep pages.';
COMMENT ON COLUMN asset_bucket.rank IS
    'The negative supply, by which the list is sorted, then by name; -Infinity in the first bucket, which begins '
    'before all assets.';

CREATE TABLE minted_asset (
    chunk     integer   PRIMARY KEY,
    asset_nos integer[] NOT NULL CHECK (cardinality(asset_nos) BETWEEN 1 AND 64)
);
COMMENT ON TABLE minted_asset IS
    'Assets in the order of their first mints, those of one transaction by policy id and name. 64 in each chunk but '
    'the last, so that a page is a range.';

-- Histories: seq is 0, 1, 2 … without gaps, so a page is a range and the total is the last seq + 1. All except mints
-- are packed, 64 entries to a chunk: chunk is seq >> 6 ----------------------------------------------------------------

CREATE FUNCTION tx_id_at(entries bytea, at integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
-- The tx_id that begins at a byte, counted from 0, of a chunk.
SELECT ('x' || encode(substr(entries, at + 1, 8), 'hex'))::bit(64)::bigint
$$;

CREATE FUNCTION quantity_at(entries bytea, at integer) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
-- The quantity that begins at a byte, counted from 0, of a chunk.
SELECT ('x' || encode(substr(entries, at + 1, 4), 'hex'))::bit(32)::bigint::numeric * 281474976710656
     + ('x' || encode(substr(entries, at + 5, 6), 'hex'))::bit(48)::bigint
$$;

CREATE FUNCTION quantity_bytes(quantity numeric) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
-- A quantity as it is in a chunk: 10 bytes, since a transaction may have many outputs of almost 2 ^ 64 each.
SELECT substr(int8send(div(quantity, 281474976710656)::bigint), 5)
    || substr(int8send(mod(quantity, 281474976710656)::bigint), 3)
$$;

CREATE TABLE address_tx (
    address_no integer NOT NULL,
    chunk      integer NOT NULL,
    tx_ids     bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (address_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE address_tx IS 'Transactions that spend from or pay to an address, in order.';
COMMENT ON COLUMN address_tx.tx_ids IS 'The tx_id of each, in 8 bytes.';

CREATE TABLE asset_tx (
    asset_no integer NOT NULL,
    chunk    integer NOT NULL,
    entries  bytea   NOT NULL CHECK (length(entries) BETWEEN 18 AND 1152 AND length(entries) % 18 = 0),
    PRIMARY KEY (asset_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE asset_tx IS 'Transactions with the asset in at least one output, in order.';
COMMENT ON COLUMN asset_tx.entries IS 'The tx_id of each, in 8 bytes, and the total quantity in its outputs, in 10.';

CREATE TABLE account_tx (
    stake_no integer NOT NULL,
    chunk    integer NOT NULL,
    tx_ids   bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (stake_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE account_tx IS 'Transactions that spend from or pay to the addresses of a stake credential, in order.';

CREATE TABLE credential_tx (
    credential_no integer NOT NULL,
    chunk         integer NOT NULL,
    tx_ids        bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (credential_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE credential_tx IS
    'Transactions of a payment credential that spend from or pay to other addresses than its first, and not to that '
    'one, in order. With those of its first address in address_tx they are all.';

CREATE TABLE account_withdrawal (
    stake_no integer NOT NULL,
    chunk    integer NOT NULL,
    entries  bytea   NOT NULL CHECK (length(entries) BETWEEN 18 AND 1152 AND length(entries) % 18 = 0),
    PRIMARY KEY (stake_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE account_withdrawal IS 'Withdrawals from a reward account, in order.';
COMMENT ON COLUMN account_withdrawal.entries IS 'The tx_id of each, in 8 bytes, and its lovelace, in 10. It may be 0.';

CREATE TABLE label_tx (
    label_no bigint  NOT NULL,
    chunk    integer NOT NULL,
    tx_ids   bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (label_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE label_tx IS
    'Transactions with metadata under a label, in order, without those whose scripts failed.';
COMMENT ON COLUMN label_tx.label_no IS 'The label less 2^63: a label has 64 bits and no sign.';
CREATE INDEX label_tx_label ON label_tx (label_no) WHERE chunk = 0;

CREATE TABLE redeemer_tx (
    chunk      integer NOT NULL,
    script_key bytea   NOT NULL CHECK (length(script_key) = 16),
    tx_ids     bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (script_key, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE redeemer_tx IS
    'Transactions with redeemers of a script, in order, an entry for each redeemer, without those whose scripts '
    'failed.';
COMMENT ON COLUMN redeemer_tx.script_key IS 'The first 16 bytes of the hash of the script.';

CREATE VIEW address_tx_entry AS
SELECT address_no, (chunk << 6) + place AS seq, tx_id_at(tx_ids, place * 8) AS tx_id
FROM address_tx, generate_series(0, length(tx_ids) / 8 - 1) AS place;
COMMENT ON VIEW address_tx_entry IS 'The entries of address_tx, a row each.';

CREATE VIEW asset_tx_entry AS
SELECT asset_no, (chunk << 6) + place AS seq, tx_id_at(entries, place * 18) AS tx_id,
       quantity_at(entries, place * 18 + 8) AS quantity
FROM asset_tx, generate_series(0, length(entries) / 18 - 1) AS place;
COMMENT ON VIEW asset_tx_entry IS 'The entries of asset_tx, a row each.';

CREATE VIEW account_tx_entry AS
SELECT stake_no, (chunk << 6) + place AS seq, tx_id_at(tx_ids, place * 8) AS tx_id
FROM account_tx, generate_series(0, length(tx_ids) / 8 - 1) AS place;
COMMENT ON VIEW account_tx_entry IS 'The entries of account_tx, a row each.';

CREATE VIEW account_withdrawal_entry AS
SELECT stake_no, (chunk << 6) + place AS seq, tx_id_at(entries, place * 18) AS tx_id,
       quantity_at(entries, place * 18 + 8) AS lovelace
FROM account_withdrawal, generate_series(0, length(entries) / 18 - 1) AS place;
COMMENT ON VIEW account_withdrawal_entry IS 'The entries of account_withdrawal, a row each.';

CREATE VIEW spender_entry AS
SELECT slot_no, slot_no << 16 | (get_byte(entries, place * 12 + 8) << 8) + get_byte(entries, place * 12 + 9) AS tx_id,
       (get_byte(entries, place * 12 + 10) << 8) + get_byte(entries, place * 12 + 11) AS output_index,
       tx_id_at(entries, place * 12) AS spender_tx_id
FROM spender, generate_series(0, length(entries) / 12 - 1) AS place;
COMMENT ON VIEW spender_entry IS 'The entries of spender, a row for each spent output.';

CREATE FUNCTION address_tx_range(of_address_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of an address' history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM address_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                 least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE address_no = of_address_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE FUNCTION asset_tx_range(of_asset_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint, quantity numeric) LANGUAGE sql STABLE AS $$
-- The same of an asset's history, with quantities.
SELECT (chunk::bigint << 6) + place, tx_id_at(entries, place::integer * 18), quantity_at(entries, place::integer * 18 + 8)
FROM asset_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                               least(highest - (chunk::bigint << 6), length(entries) / 18 - 1)) AS place
WHERE asset_no = of_asset_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE FUNCTION account_tx_range(of_stake_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of an account's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM account_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                 least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE stake_no = of_stake_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE FUNCTION credential_tx_split(of_credential_no integer, entries bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
-- How many of the first `entries` of a payment credential's history are of its first address: a binary search in both
-- parts of the history, which have no transaction in common. Numbers that are not negative sort like their bytes.
DECLARE
    of_first bigint; of_others bigint; low bigint; high bigint; middle bigint; other bigint;
BEGIN
    SELECT coalesce(max(chunk), 0) INTO of_others FROM credential_tx WHERE credential_no = of_credential_no;
    SELECT (of_others << 6) + length(tx_ids) / 8 INTO of_others FROM credential_tx
        WHERE credential_no = of_credential_no AND chunk = of_others;
    IF of_others IS NULL THEN RETURN entries; END IF;
    SELECT (chunk::bigint << 6) + length(tx_ids) / 8 INTO of_first FROM address_tx
        WHERE address_no = of_credential_no ORDER BY chunk DESC LIMIT 1;
    low := greatest(0, entries - of_others);
    high := least(entries, coalesce(of_first, 0));
    WHILE low < high LOOP
        middle := (low + high) / 2;
        other := entries - middle - 1;
        IF (SELECT substr(tx_ids, (middle & 63)::integer * 8 + 1, 8) FROM address_tx
            WHERE address_no = of_credential_no AND chunk = (middle >> 6)::integer)
            > (SELECT substr(tx_ids, (other & 63)::integer * 8 + 1, 8) FROM credential_tx
               WHERE credential_no = of_credential_no AND chunk = (other >> 6)::integer)
            THEN high := middle; ELSE low := middle + 1; END IF;
    END LOOP;
    RETURN low;
END $$;

CREATE FUNCTION credential_tx_range(of_credential_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE plpgsql STABLE AS $$
-- The entries of a payment credential's history from one seq to another, merged from its two parts.
DECLARE
    entries bigint := highest - lowest + 1; before bigint;
BEGIN
    IF coalesce(entries, 0) <= 0 THEN RETURN; END IF;
    before := credential_tx_split(of_credential_no, lowest);
    RETURN QUERY
    SELECT lowest - 1 + row_number() OVER (ORDER BY both_parts.tx_id), both_parts.tx_id
    FROM (
        SELECT entry.tx_id FROM address_tx_range(of_credential_no, before, before + entries - 1) entry
        UNION ALL
        SELECT tx_id_at(tx_ids, place::integer * 8)
        FROM credential_tx, generate_series(greatest(lowest - before - (chunk::bigint << 6), 0),
            least(highest - before - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
        WHERE credential_no = of_credential_no AND chunk BETWEEN lowest - before >> 6 AND highest - before >> 6
    ) both_parts
    ORDER BY both_parts.tx_id LIMIT entries;
END $$;

CREATE FUNCTION account_withdrawal_range(of_stake_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint, lovelace numeric) LANGUAGE sql STABLE AS $$
-- The withdrawals of an account from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(entries, place::integer * 18), quantity_at(entries, place::integer * 18 + 8)
FROM account_withdrawal, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                         least(highest - (chunk::bigint << 6), length(entries) / 18 - 1)) AS place
WHERE stake_no = of_stake_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE FUNCTION label_tx_range(of_label_no bigint, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of a label's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM label_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                               least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE label_no = of_label_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE FUNCTION redeemer_tx_range(of_script_key bytea, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of a script's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM redeemer_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                  least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE script_key = of_script_key AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE TABLE mint (
    asset_no integer NOT NULL,
    seq      integer NOT NULL,
    tx_id    bigint  NOT NULL,
    quantity bigint,
    large    numeric,
    named    boolean NOT NULL,
    PRIMARY KEY (asset_no, seq),
    CHECK ((quantity IS NULL) <> (large IS NULL))
);
COMMENT ON TABLE mint IS
    'Net quantity of an asset that a transaction minted (above 0) or burned (below 0). A net of 0 has no row.';
COMMENT ON COLUMN mint.large IS
    'The quantity if it does not fit into a bigint. Exactly one of the two columns is null.';
COMMENT ON COLUMN mint.named IS
    'Whether quantity is above 0 and the transaction''s metadata label 721 names the asset (CIP-25).';
CREATE INDEX mint_tx_id ON mint USING brin (tx_id) WITH (autosummarize = on, pages_per_range = 16);
CREATE INDEX mint_named ON mint (asset_no, seq) WHERE named;

CREATE FUNCTION mint_range(of_asset_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq integer, tx_id bigint, quantity numeric) LANGUAGE sql STABLE AS $$
-- The mints of an asset from one seq to another.
SELECT seq, tx_id, coalesce(large, quantity) FROM mint WHERE asset_no = of_asset_no AND seq BETWEEN lowest AND highest
$$;

CREATE TABLE address_tx_staged (address_no integer NOT NULL, tx_id bigint NOT NULL);
CREATE TABLE asset_tx_staged (asset_no integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric);
CREATE TABLE mint_staged (asset_no integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric,
    named boolean NOT NULL);
CREATE TABLE account_withdrawal_staged (stake_no integer NOT NULL, tx_id bigint NOT NULL, lovelace bigint NOT NULL);
CREATE TABLE label_tx_staged (label_no bigint NOT NULL, tx_id bigint NOT NULL);
CREATE TABLE redeemer_tx_staged (script_key bytea NOT NULL, tx_id bigint NOT NULL);
CREATE TABLE spender_staged (slot_no bigint NOT NULL, entries bytea NOT NULL);
COMMENT ON TABLE address_tx_staged IS
    'Rows of address_tx in bulk: sorted, numbered and indexed when bulk ends; empty when live.';
COMMENT ON TABLE asset_tx_staged IS 'Rows of asset_tx in bulk.';
COMMENT ON TABLE mint_staged IS 'Rows of mint in bulk.';
COMMENT ON TABLE account_withdrawal_staged IS 'Entries of account_withdrawal in bulk.';
COMMENT ON TABLE label_tx_staged IS 'Rows of label_tx in bulk.';
COMMENT ON TABLE redeemer_tx_staged IS 'Rows of redeemer_tx in bulk.';
COMMENT ON TABLE spender_staged IS 'Parts of rows of spender in bulk.';

CREATE TABLE balance_staged (stake_no integer NOT NULL, lovelace bigint NOT NULL);
CREATE TABLE holder_staged (asset_no integer NOT NULL, address_no integer NOT NULL, quantity bigint, large numeric);
COMMENT ON TABLE balance_staged IS
    'Changes of stake.balance in bulk, with the opposite sign for rollbacks: added up when an epoch begins and when '
    'bulk ends.';
COMMENT ON TABLE holder_staged IS 'Changes of held quantities in bulk: added up when bulk ends.';

CREATE FUNCTION address_tx_rank(of_address_no integer, before bigint) RETURNS integer LANGUAGE plpgsql STABLE AS $$
-- How many transactions of an address have a tx_id below `before`: a binary search for the last chunk that begins below
-- it, 15 probes for two million transactions.
DECLARE
    low integer := 0; high integer; middle integer; found bigint;
BEGIN
    SELECT coalesce(max(chunk), 0) INTO high FROM address_tx WHERE address_no = of_address_no;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        SELECT tx_id_at(tx_ids, 0) INTO found FROM address_tx WHERE address_no = of_address_no AND chunk = middle;
        IF found < before THEN low := middle; ELSE high := middle - 1; END IF;
    END LOOP;
    RETURN (low << 6) + (
        SELECT count(*) FROM address_tx_range(of_address_no, low::bigint << 6, (low::bigint << 6) + 63) WHERE tx_id < before
    );
END $$;

CREATE FUNCTION account_tx_rank(of_stake_no integer, before bigint) RETURNS integer LANGUAGE plpgsql STABLE AS $$
-- The same for an account.
DECLARE
    low integer := 0; high integer; middle integer; found bigint;
BEGIN
    SELECT coalesce(max(chunk), 0) INTO high FROM account_tx WHERE stake_no = of_stake_no;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        SELECT tx_id_at(tx_ids, 0) INTO found FROM account_tx WHERE stake_no = of_stake_no AND chunk = middle;
        IF found < before THEN low := middle; ELSE high := middle - 1; END IF;
    END LOOP;
    RETURN (low << 6) + (
        SELECT count(*) FROM account_tx_range(of_stake_no, low::bigint << 6, (low::bigint << 6) + 63) WHERE tx_id < before
    );
END $$;

CREATE FUNCTION credential_tx_rank(of_credential_no integer, before bigint) RETURNS integer LANGUAGE plpgsql STABLE AS $$
-- The same for a payment credential: the sum over the two parts of its history.
DECLARE
    low integer := 0; high integer; middle integer; found bigint;
BEGIN
    SELECT coalesce(max(chunk), 0) INTO high FROM credential_tx WHERE credential_no = of_credential_no;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        SELECT tx_id_at(tx_ids, 0) INTO found FROM credential_tx
            WHERE credential_no = of_credential_no AND chunk = middle;
        IF found < before THEN low := middle; ELSE high := middle - 1; END IF;
    END LOOP;
    RETURN address_tx_rank(of_credential_no, before) + (low << 6) + (
        SELECT count(*) FROM credential_tx, generate_series(0, length(tx_ids) / 8 - 1) AS place
        WHERE credential_no = of_credential_no AND chunk = low AND tx_id_at(tx_ids, place * 8) < before
    );
END $$;

-- What owners with long histories have spent. Transactions of others are few enough to be added up for an answer ------

CREATE FUNCTION is_long_history(entries integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether an address or an account with so many transactions has rows in address_sent or account_sent.
SELECT entries > 64
$$;

CREATE TABLE address_sent (
    address_no integer NOT NULL,
    asset_no   integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (address_no, asset_no)
) WITH (fillfactor = 80);
COMMENT ON TABLE address_sent IS
    'How much of ada and of each asset transactions have spent from an address with a long history.';
COMMENT ON COLUMN address_sent.asset_no IS '0: lovelace.';

CREATE TABLE account_sent (
    stake_no integer NOT NULL,
    asset_no integer NOT NULL,
    quantity numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (stake_no, asset_no)
) WITH (fillfactor = 80);
COMMENT ON TABLE account_sent IS 'The same for an account with a long history.';
COMMENT ON COLUMN account_sent.asset_no IS '0: lovelace.';

CREATE TABLE credential_sent (
    credential_no integer NOT NULL,
    asset_no      integer NOT NULL,
    quantity      numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (credential_no, asset_no)
) WITH (fillfactor = 80);
COMMENT ON TABLE credential_sent IS
    'The same for a payment credential at other addresses than its first, however short its history.';
COMMENT ON COLUMN credential_sent.asset_no IS '0: lovelace.';

CREATE TABLE address_sent_staged (address_no integer NOT NULL, asset_no integer NOT NULL, quantity bigint,
    large numeric);
COMMENT ON TABLE address_sent_staged IS
    'What transactions spend from addresses in bulk, with the opposite sign for rollbacks: added up when bulk ends.';

-- Unspent outputs at the tip, in bulk those of the genesis. Their contents are in the row of their transaction --------

CREATE FUNCTION opens_outputs(tx_id bigint, output_index integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether the output begins a bucket in the lists that it is in: about one in 1,024 does.
SELECT ((tx_id * 31 + output_index) & 2147483647) * 2654435761 >> 16 & 1023 = 0
$$;

CREATE TABLE utxo (
    tx_id         bigint  NOT NULL,
    lovelace      bigint  NOT NULL,
    address_no    integer NOT NULL,
    stake_no      integer,
    credential_no integer,
    output_index  integer NOT NULL,
    asset_nos     integer[],
    PRIMARY KEY (address_no, tx_id, output_index) INCLUDE (lovelace)
);
COMMENT ON TABLE utxo IS 'Unspent outputs, those of the genesis with its negative tx_id.';
COMMENT ON COLUMN utxo.stake_no IS 'The stake credential of the address; null if it has none.';
COMMENT ON COLUMN utxo.credential_no IS 'That of the address; null at the first address of its payment credential.';
COMMENT ON COLUMN utxo.asset_nos IS 'The assets that the output holds, ascending; null if it holds none.';
CREATE INDEX utxo_account ON utxo (stake_no, tx_id, output_index) INCLUDE (lovelace) WHERE stake_no IS NOT NULL;
CREATE INDEX utxo_opening ON utxo (address_no, tx_id, output_index) WHERE opens_outputs(tx_id, output_index);
CREATE INDEX utxo_account_opening ON utxo (stake_no, tx_id, output_index)
    WHERE stake_no IS NOT NULL AND opens_outputs(tx_id, output_index);
CREATE INDEX utxo_credential ON utxo (credential_no, tx_id, output_index) INCLUDE (lovelace)
    WHERE credential_no IS NOT NULL;
CREATE INDEX utxo_credential_opening ON utxo (credential_no, tx_id, output_index)
    WHERE credential_no IS NOT NULL AND opens_outputs(tx_id, output_index);

CREATE FUNCTION is_byron_address(raw bytea) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether an address is one of Byron's (CIP-19: header type 8).
SELECT get_byte(raw, 0) >> 4 = 8
$$;

CREATE FUNCTION is_redeem_address(raw bytea) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether an address belongs to a voucher. Byron CDDL: address = [#6.24(payload), crc]; the last byte of the payload, which
-- is a string of at least 24 bytes with its length in one byte (after 0x58) or two, is the type.
SELECT CASE WHEN get_byte(raw, 0) >> 4 = 8
            THEN substr(raw, CASE get_byte(raw, 3) WHEN 88 THEN 5 + get_byte(raw, 4)
                             ELSE 6 + (get_byte(raw, 4) << 8) + get_byte(raw, 5) END, 1) = '\x02'
            ELSE false END
$$;

CREATE TABLE dropped_output (
    tx_id        bigint  NOT NULL,
    slot_no      bigint  NOT NULL,
    lovelace     bigint  NOT NULL,
    address_no   integer NOT NULL,
    output_index integer NOT NULL,
    PRIMARY KEY (tx_id, output_index)
);
COMMENT ON TABLE dropped_output IS
    'Outputs of Byron that the ledger removed unspent when an era began, without a transaction: those of no lovelace '
    'at the first block after Byron, those of vouchers at the first of Allegra or later.';
COMMENT ON COLUMN dropped_output.slot_no IS 'That block''s. Its row in era_start is what a rollback looks for.';
CREATE INDEX dropped_output_address ON dropped_output (address_no) WHERE lovelace > 0;

CREATE TABLE utxo_bucket (
    address_no          integer NOT NULL,
    lowest_tx_id        bigint  NOT NULL,
    lowest_output_index integer NOT NULL,
    outputs             integer NOT NULL,
    lovelace            bigint  NOT NULL,
    PRIMARY KEY (address_no, lowest_tx_id, lowest_output_index)
);
COMMENT ON TABLE utxo_bucket IS
    'Number and lovelace of the unspent outputs of an address from one with opens_outputs to the next, for lists with '
    'at least 4 such outputs.';
COMMENT ON COLUMN utxo_bucket.lowest_tx_id IS
    'The tx_id of the output; -9223372036854775808 in the first bucket, which begins before all outputs.';

CREATE TABLE account_utxo_bucket (
    stake_no            integer NOT NULL,
    lowest_tx_id        bigint  NOT NULL,
    lowest_output_index integer NOT NULL,
    outputs             integer NOT NULL,
    lovelace            bigint  NOT NULL,
    PRIMARY KEY (stake_no, lowest_tx_id, lowest_output_index)
);
COMMENT ON TABLE account_utxo_bucket IS 'The same for the unspent outputs of an account.';

CREATE TABLE credential_utxo_bucket (
    credential_no       integer NOT NULL,
    lowest_tx_id        bigint  NOT NULL,
    lowest_output_index integer NOT NULL,
    outputs             integer NOT NULL,
    lovelace            bigint  NOT NULL,
    PRIMARY KEY (credential_no, lowest_tx_id, lowest_output_index)
);
COMMENT ON TABLE credential_utxo_bucket IS
    'The same for the unspent outputs of a payment credential at other addresses than its first.';

CREATE TABLE utxo_asset (
    address_no   integer NOT NULL,
    asset_no     integer NOT NULL,
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    PRIMARY KEY (address_no, asset_no, tx_id, output_index)
);
COMMENT ON TABLE utxo_asset IS
    'The assets of the unspent outputs of addresses with buckets. The outputs of other addresses are few enough to be '
    'read one by one.';

CREATE TABLE account_utxo_asset (
    stake_no     integer NOT NULL,
    asset_no     integer NOT NULL,
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    PRIMARY KEY (stake_no, asset_no, tx_id, output_index)
);
COMMENT ON TABLE account_utxo_asset IS 'The same for accounts with buckets.';

CREATE TABLE credential_utxo_asset (
    credential_no integer NOT NULL,
    asset_no      integer NOT NULL,
    tx_id         bigint  NOT NULL,
    output_index  integer NOT NULL,
    PRIMARY KEY (credential_no, asset_no, tx_id, output_index)
);
COMMENT ON TABLE credential_utxo_asset IS 'The same for payment credentials with buckets.';

-- Holders at the tip. Lists are sorted by quantity, then address_no, in either direction ------------------------------

CREATE TABLE holder (
    asset_no   integer NOT NULL,
    address_no integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (address_no, asset_no)
);
COMMENT ON TABLE holder IS 'The quantity of an asset in the unspent outputs of an address. A quantity of 0 has no row.';
CREATE INDEX holder_quantity ON holder (asset_no, quantity, address_no);

CREATE TABLE policy_holder (
    policy_no  integer NOT NULL,
    address_no integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (policy_no, address_no)
);
COMMENT ON TABLE policy_holder IS 'Addresses that hold assets of a policy, and how much over all its assets.';
CREATE INDEX policy_holder_quantity ON policy_holder (policy_no, quantity, address_no);

CREATE INDEX holder_opening ON holder (asset_no, quantity, address_no) WHERE opens_bucket(address_no);
CREATE INDEX policy_holder_opening ON policy_holder (policy_no, quantity, address_no) WHERE opens_bucket(address_no);

CREATE TABLE holder_bucket (
    asset_no          integer NOT NULL,
    lowest_quantity   numeric NOT NULL,
    lowest_address_no integer NOT NULL,
    holders           integer NOT NULL,
    PRIMARY KEY (asset_no, lowest_quantity, lowest_address_no)
);
COMMENT ON TABLE holder_bucket IS
    'The number of holders from one for which opens_bucket is true to the next, for lists with at least 4 such '
    'holders; used to find deep pages.';
COMMENT ON COLUMN holder_bucket.lowest_address_no IS
    'The address_no of the holder; 0 in the first bucket, which begins before all holders.';

CREATE TABLE policy_holder_bucket (
    policy_no         integer NOT NULL,
    lowest_quantity   numeric NOT NULL,
    lowest_address_no integer NOT NULL,
    holders           integer NOT NULL,
    PRIMARY KEY (policy_no, lowest_quantity, lowest_address_no)
);
COMMENT ON TABLE policy_holder_bucket IS 'The same for policy_holder.';

CREATE TABLE account_holder (
    asset_no   integer NOT NULL,
    account_no integer NOT NULL CHECK (account_no <> 0),
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (account_no, asset_no)
);
COMMENT ON TABLE account_holder IS 'The quantity of an asset in the unspent outputs of an account.';
COMMENT ON COLUMN account_holder.account_no IS
    'The stake_no of the account; the negative address_no of an address without one.';
CREATE INDEX account_holder_quantity ON account_holder (asset_no, quantity, account_no);

CREATE TABLE credential_holder (
    asset_no      integer NOT NULL,
    credential_no integer NOT NULL,
    quantity      numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (credential_no, asset_no)
);
COMMENT ON TABLE credential_holder IS
    'The quantity of an asset in the unspent outputs of a payment credential at other addresses than its first.';

CREATE TABLE policy_account_holder (
    policy_no  integer NOT NULL,
    account_no integer NOT NULL CHECK (account_no <> 0),
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (policy_no, account_no)
);
COMMENT ON TABLE policy_account_holder IS 'Accounts that hold assets of a policy, and how much over all its assets.';
CREATE INDEX policy_account_holder_quantity ON policy_account_holder (policy_no, quantity, account_no);

CREATE INDEX account_holder_opening ON account_holder (asset_no, quantity, account_no) WHERE opens_bucket(account_no);
CREATE INDEX policy_account_holder_opening ON policy_account_holder (policy_no, quantity, account_no)
    WHERE opens_bucket(account_no);

CREATE TABLE account_holder_bucket (
    asset_no          integer NOT NULL,
    lowest_quantity   numeric NOT NULL,
    lowest_account_no integer NOT NULL,
    holders           integer NOT NULL,
    PRIMARY KEY (asset_no, lowest_quantity, lowest_account_no)
);
COMMENT ON TABLE account_holder_bucket IS 'The same as holder_bucket for account_holder.';

CREATE TABLE policy_account_holder_bucket (
    policy_no         integer NOT NULL,
    lowest_quantity   numeric NOT NULL,
    lowest_account_no integer NOT NULL,
    holders           integer NOT NULL,
    PRIMARY KEY (policy_no, lowest_quantity, lowest_account_no)
);
COMMENT ON TABLE policy_account_holder_bucket IS 'The same for policy_account_holder.';

-- Datums and scripts, each stored once, with the first transaction that showed it in an output or among its witnesses
-- ---

CREATE TABLE datum (
    tx_id bigint NOT NULL,
    hash  bytea  NOT NULL,
    body  bytea  NOT NULL
);
COMMENT ON TABLE datum IS 'Datums, as CBOR. The hash of each (Blake2b-256) is unique: only missing ones are added.';
CREATE INDEX datum_hash ON datum USING hash (hash);
CREATE INDEX datum_tx_id ON datum USING brin (tx_id) WITH (autosummarize = on, pages_per_range = 16);

CREATE TABLE script (
    tx_id    bigint   NOT NULL,
    seq      integer  NOT NULL,
    language smallint NOT NULL CHECK (language BETWEEN 0 AND 4),
    hash     bytea    NOT NULL,
    body     bytea    NOT NULL
);
COMMENT ON TABLE script IS
    'Scripts: a native one as CBOR, others as the bytes in it. The hash of each is unique, as in datum.';
COMMENT ON COLUMN script.seq IS '0, 1, 2 … without gaps, by tx_id and hash: a page of all scripts is a range.';
COMMENT ON COLUMN script.language IS
    '0: native; n: Plutus version n. Its hash (Blake2b-224) is that of this byte and the body.';
CREATE INDEX script_hash ON script USING hash (hash);
CREATE UNIQUE INDEX script_seq ON script (seq);
CREATE INDEX script_tx_id ON script USING brin (tx_id) WITH (autosummarize = on, pages_per_range = 16);

-- Metadata of user tokens: the datums beside reference tokens (CIP-68) ------------------------------------------------

CREATE TABLE reference_output (
    asset_no     integer NOT NULL,
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    spent_tx_id  bigint,
    datum_hash   bytea,
    PRIMARY KEY (tx_id, output_index, asset_no)
);
COMMENT ON TABLE reference_output IS
    'Outputs that hold a reference token (CIP-68, label 100), spent or not, one row per token.';
COMMENT ON COLUMN reference_output.datum_hash IS 'Of its datum, inline or not; null if there is none.';
CREATE INDEX reference_output_unspent ON reference_output (asset_no, tx_id, output_index) WHERE spent_tx_id IS NULL;
CREATE INDEX reference_output_spent ON reference_output (spent_tx_id) WHERE spent_tx_id IS NOT NULL;

-- Outputs with a reference script (CIP-33) ----------------------------------------------------------------------------

CREATE TABLE script_output (
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    spent_tx_id  bigint,
    script_hash  bytea   NOT NULL,
    PRIMARY KEY (tx_id, output_index)
);
COMMENT ON TABLE script_output IS 'Outputs that hold a reference script, spent or not.';
CREATE INDEX script_output_unspent ON script_output (script_hash, tx_id, output_index) WHERE spent_tx_id IS NULL;
CREATE INDEX script_output_spent ON script_output (spent_tx_id) WHERE spent_tx_id IS NOT NULL;

-- Effects of certificates on stake and pools. tx_id -1: in the genesis; place: the order within a transaction ---------

CREATE TABLE stake_event (
    tx_id    bigint   NOT NULL,
    stake_no integer  NOT NULL,
    pool_no  integer,
    epoch_no integer  NOT NULL,
    place    smallint NOT NULL,
    kind     text     NOT NULL CHECK (kind IN ('registration', 'deregistration', 'delegation')),
    PRIMARY KEY (stake_no, tx_id, place),
    CHECK ((pool_no IS NOT NULL) = (kind = 'delegation'))
);
COMMENT ON TABLE stake_event IS
    'Changes of stake credentials. After every kind but a delegation the credential has no pool.';
CREATE INDEX stake_event_tx_id ON stake_event USING brin (tx_id) WITH (autosummarize = on, pages_per_range = 16);

CREATE TABLE vote_delegation (
    tx_id          bigint   NOT NULL,
    stake_no       integer  NOT NULL,
    place          smallint NOT NULL,
    kind           text     NOT NULL CHECK (kind IN ('delegation', 'deregistration', 'retirement', 'fork')),
    representative bytea,
    PRIMARY KEY (stake_no, tx_id, place),
    CHECK ((representative IS NOT NULL) = (kind = 'delegation'))
);
COMMENT ON TABLE vote_delegation IS
    'Stake credentials delegate their vote, and lose that delegation: the last row of a credential is its delegation '
    'now.';
COMMENT ON COLUMN vote_delegation.tx_id IS
    'The transaction of the certificate; for a fork, the first that its epoch could have.';
COMMENT ON COLUMN vote_delegation.place IS 'As in stake_event; -1 for a fork, which comes before all transactions.';
COMMENT ON COLUMN vote_delegation.kind IS
    'deregistration: of the stake credential. retirement: a representative retires whose set of delegators has this '
    'one. fork: to protocol 10, which ended the delegations to unknown representatives.';
COMMENT ON COLUMN vote_delegation.representative IS
    'The 29 bytes of a credential as in the CDDL (0 for a key, 1 for a script, and the hash), or a single byte: 2 '
    'always abstains, 3 has no confidence.';
CREATE INDEX vote_delegation_tx_id ON vote_delegation USING brin (tx_id)
    WITH (autosummarize = on, pages_per_range = 16);
CREATE INDEX vote_delegation_representative ON vote_delegation (representative) WHERE length(representative) = 29;

CREATE VIEW represented AS
SELECT * FROM (
    SELECT DISTINCT ON (stake_no) stake_no, representative FROM vote_delegation
    ORDER BY stake_no, tx_id DESC, place DESC
) last
WHERE representative IS NOT NULL;
COMMENT ON VIEW represented IS 'The stake credentials whose vote is delegated now, and to whom.';

CREATE TABLE representative_event (
    tx_id          bigint   NOT NULL,
    place          smallint NOT NULL,
    kind           text     NOT NULL CHECK (kind IN ('registration', 'update', 'retirement')),
    lovelace       bigint,
    representative bytea    NOT NULL,
    anchor_url     bytea,
    anchor_hash    bytea,
    PRIMARY KEY (representative, tx_id, place),
    CHECK ((lovelace IS NULL) = (kind = 'update')),
    CHECK ((anchor_url IS NULL) = (anchor_hash IS NULL))
);
COMMENT ON TABLE representative_event IS 'Registrations, updates and retirements of delegate representatives.';
COMMENT ON COLUMN representative_event.lovelace IS 'The deposit that is taken or returned.';
COMMENT ON COLUMN representative_event.anchor_url IS
    'Of its metadata, in UTF-8: it may hold a NUL. An update without an anchor removes the one before.';
CREATE INDEX representative_event_tx_id ON representative_event USING brin (tx_id)
    WITH (autosummarize = on, pages_per_range = 16);

CREATE VIEW registered_representative AS
SELECT representative, registered.lovelace AS deposit, registered.tx_id, last.anchor_url, last.anchor_hash
FROM representative_event registered JOIN LATERAL (
    SELECT kind, anchor_url, anchor_hash FROM representative_event later
    WHERE later.representative = registered.representative ORDER BY tx_id DESC, place DESC LIMIT 1
) last ON last.kind <> 'retirement'
WHERE registered.kind = 'registration'
  AND NOT EXISTS (SELECT FROM representative_event later
                  WHERE later.representative = registered.representative AND later.kind = 'registration'
                    AND (later.tx_id, later.place) > (registered.tx_id, registered.place));
COMMENT ON VIEW registered_representative IS
    'The representatives that are registered now: deposit and transaction of the registration, and the anchor of the '
    'last certificate.';

CREATE TABLE protocol_fork (
    epoch_no integer PRIMARY KEY,
    major    integer NOT NULL CHECK (major >= 10)
);
COMMENT ON TABLE protocol_fork IS
    'At most one row: the epoch that began with protocol 10 or, if the index begins later, its first. Without a row, '
    'the rules of protocol 9 apply.';
COMMENT ON COLUMN protocol_fork.major IS 'The major version in that epoch.';

CREATE TABLE pool_update (
    tx_id      bigint   NOT NULL,
    pool_no    integer  NOT NULL,
    place      smallint NOT NULL,
    parameters bytea    NOT NULL,
    PRIMARY KEY (pool_no, tx_id, place)
);
COMMENT ON TABLE pool_update IS
    'First registrations of pools and later ones, which change their parameters; packed by shared/packed.py.';

CREATE TABLE pool_retirement (
    tx_id    bigint   NOT NULL,
    pool_no  integer  NOT NULL,
    epoch_no integer  NOT NULL,
    place    smallint NOT NULL,
    PRIMARY KEY (pool_no, tx_id, place)
);
COMMENT ON TABLE pool_retirement IS
    'Announcements that a pool retires at the first slot of epoch_no. A later retirement or registration replaces it.';
CREATE INDEX pool_retirement_epoch_no ON pool_retirement (epoch_no);

CREATE TABLE instantaneous_reward (
    tx_id    bigint   NOT NULL,
    stake_no integer  NOT NULL,
    place    smallint NOT NULL,
    pot      text     NOT NULL CHECK (pot IN ('reserves', 'treasury')),
    lovelace bigint   NOT NULL,
    PRIMARY KEY (stake_no, tx_id, place)
);
COMMENT ON TABLE instantaneous_reward IS
    'Lovelace that certificates move from the reserves or the treasury to accounts; before Conway, which has none.';
COMMENT ON COLUMN instantaneous_reward.place IS 'Of the certificate among those of its transaction''s CBOR.';
COMMENT ON COLUMN instantaneous_reward.lovelace IS 'May be negative, in Alonzo and Babbage.';
CREATE INDEX instantaneous_reward_tx_id ON instantaneous_reward USING brin (tx_id)
    WITH (autosummarize = on, pages_per_range = 16);

CREATE TABLE pool_reward_account (
    tx_id    bigint   NOT NULL,
    stake_no integer  NOT NULL,
    pool_no  integer  NOT NULL,
    place    smallint NOT NULL,
    PRIMARY KEY (stake_no, tx_id, place)
);
COMMENT ON TABLE pool_reward_account IS
    'The reward accounts in pool_update: the account of the row with this tx_id and place.';
CREATE INDEX pool_reward_account_tx_id ON pool_reward_account USING brin (tx_id)
    WITH (autosummarize = on, pages_per_range = 16);

CREATE TABLE account_credit (
    tx_id    bigint  NOT NULL,
    lovelace bigint  NOT NULL,
    stake_no integer NOT NULL,
    PRIMARY KEY (stake_no, tx_id)
);
COMMENT ON TABLE account_credit IS 'Payments of transactions into reward accounts, which Dijkstra introduces.';
CREATE INDEX account_credit_tx_id ON account_credit USING brin (tx_id)
    WITH (autosummarize = on, pages_per_range = 16);

CREATE TABLE pool_reaping (
    pool_no  integer NOT NULL,
    epoch_no integer NOT NULL,
    PRIMARY KEY (pool_no, epoch_no)
);
COMMENT ON TABLE pool_reaping IS
    'Pools that were retired at the first slot of epoch_no, which ended all delegations to them (POOLREAP, Shelley '
    'ledger specification).';
CREATE INDEX pool_reaping_epoch_no ON pool_reaping (epoch_no);

CREATE VIEW delegation AS
SELECT stake_no, pool_no, active_epoch_no, balance FROM stake
WHERE pool_no IS NOT NULL
  AND NOT EXISTS (SELECT FROM pool_reaping r WHERE r.pool_no = stake.pool_no
      AND r.epoch_no > stake.active_epoch_no - 2);
COMMENT ON VIEW delegation IS
    'The delegations that count now: those to pools that were not retired after the epoch of the delegation, two '
    'before it became active.';

CREATE TABLE pool_epoch (
    pool_no      integer NOT NULL,
    epoch_no     integer NOT NULL,
    blocks       integer NOT NULL DEFAULT 0,
    active_stake bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (pool_no, epoch_no),
    CHECK (blocks > 0 OR active_stake > 0)
);
COMMENT ON TABLE pool_epoch IS 'Blocks and active stake of a pool in an epoch; no row if both are 0.';
COMMENT ON COLUMN pool_epoch.active_stake IS
    'In the snapshot taken at the start of the previous epoch, which counts in this one; without rewards, in lovelace.';
CREATE INDEX pool_epoch_epoch_no ON pool_epoch (epoch_no);

CREATE TABLE stake_snapshot (
    epoch_no       integer NOT NULL,
    pool_no        integer NOT NULL,
    first_stake_no integer NOT NULL,
    first_seq      integer NOT NULL,
    entries        bytea   NOT NULL CHECK (length(entries) BETWEEN 12 AND 768 AND length(entries) % 12 = 0),
    PRIMARY KEY (epoch_no, pool_no, first_stake_no)
);
COMMENT ON TABLE stake_snapshot IS
    'The delegators of each pool in the stake snapshot that counts in an epoch, by stake_no, 64 to a row. Only those '
    'that were taken while the index was live: in bulk, rewards are not known.';
COMMENT ON COLUMN stake_snapshot.first_seq IS 'The number of delegators in the rows of the epoch before this one.';
COMMENT ON COLUMN stake_snapshot.entries IS
    '12 bytes for each delegator: stake_no (4), and the lovelace in its outputs (8). reward_epoch has its rewards.';
ALTER TABLE stake_snapshot ALTER entries SET STORAGE EXTERNAL;
CREATE INDEX stake_snapshot_first_seq ON stake_snapshot (epoch_no, first_seq);

CREATE TABLE pool_earning (
    pool_no    integer NOT NULL,
    epoch_no   integer NOT NULL,
    delegators integer NOT NULL,
    lovelace   bigint  NOT NULL,
    PRIMARY KEY (pool_no, epoch_no)
);
COMMENT ON TABLE pool_earning IS
    'The delegators of a pool in the stake snapshot of an epoch, and the rewards of the epoch for its blocks, which '
    'are paid two epochs later: known once all rewards are read then. A reward account that is paid for several '
    'reasons counts for one pool, as in api/blockfrost/rewards.py.';
CREATE INDEX pool_earning_epoch_no ON pool_earning (epoch_no);

CREATE VIEW stake_snapshot_entry AS
SELECT epoch_no, pool_no, ('x' || encode(substr(entries, place * 12 + 1, 4), 'hex'))::bit(32)::integer AS stake_no,
       tx_id_at(entries, place * 12 + 4) AS lovelace
FROM stake_snapshot, generate_series(0, length(entries) / 12 - 1) AS place;
COMMENT ON VIEW stake_snapshot_entry IS 'The entries of stake_snapshot, a row each.';

-- Data that blocks do not contain, as last read from the node's ledger. A rollback resets data read in later epochs ---

CREATE TABLE ledger_state (
    one                  boolean PRIMARY KEY DEFAULT true CHECK (one),
    slot_no              bigint  NOT NULL,
    epoch_no             integer NOT NULL,
    next_stake_no        integer,
    complete_epoch_no    integer,
    desired_pools        integer,
    reserves             bigint,
    treasury             bigint
);
COMMENT ON TABLE ledger_state IS
    'Read once in each epoch, at slot_no of epoch_no. Null until the node has answered once; then the last answer.';
COMMENT ON COLUMN ledger_state.epoch_no IS
    'The epoch of this reading; -1: a rollback has removed that epoch, so everything is read again.';
COMMENT ON COLUMN ledger_state.next_stake_no IS
    'The first stake_no whose reward of this epoch is still to be read; null if all are read.';
COMMENT ON COLUMN ledger_state.complete_epoch_no IS 'The last epoch in which all rewards were read.';

CREATE TABLE node_comparison (
    kind        text    PRIMARY KEY,
    slot_no     bigint  NOT NULL,
    epoch_no    integer NOT NULL,
    compared    bigint  NOT NULL,
    differing   bigint  NOT NULL,
    differences json    NOT NULL
);
COMMENT ON TABLE node_comparison IS
    'What was compared with the node''s ledger, once in each epoch, by the kinds of indexer/ledger/subjects.py. A '
    'rollback to an earlier epoch deletes all rows.';
COMMENT ON COLUMN node_comparison.slot_no IS 'Our tip when the last part was compared.';
COMMENT ON COLUMN node_comparison.differing IS 'How many of the compared values differed.';
COMMENT ON COLUMN node_comparison.differences IS
    'The first of those: an array of objects with a name, our value and the node''s.';

CREATE TABLE epoch_parameters (
    epoch_no   integer PRIMARY KEY,
    parameters json    NOT NULL,
    nonce      bytea
);
COMMENT ON TABLE epoch_parameters IS
    'Protocol parameters under the names of Ogmios 7, of each epoch in which they were read. They do not change in an '
    'epoch.';
COMMENT ON COLUMN epoch_parameters.nonce IS
    'The randomness of its leader elections; null if it is neutral, or if the node did not tell it.';

CREATE TABLE genesis_configuration (
    era           text PRIMARY KEY,
    configuration json NOT NULL
);
COMMENT ON TABLE genesis_configuration IS
    'The genesis configuration of each era as Ogmios gives it, read once; without funds and vouchers, which '
    'genesis_output has.';

CREATE TABLE reward (
    stake_no integer PRIMARY KEY,
    lovelace bigint  NOT NULL CHECK (lovelace > 0)
);
COMMENT ON TABLE reward IS
    'Rewards of reward accounts, as last read, less what was withdrawn since. No row for a reward of 0.';

CREATE TABLE reward_due (
    stake_no integer PRIMARY KEY,
    slot_no  bigint  NOT NULL
);
COMMENT ON TABLE reward_due IS 'Reward accounts to read again, from the ledger state at slot_no or later.';

CREATE TABLE pool_reward (
    pool_no  integer NOT NULL,
    epoch_no integer NOT NULL,
    lovelace bigint  NOT NULL,
    PRIMARY KEY (pool_no, epoch_no)
);
COMMENT ON TABLE pool_reward IS 'The rewards to add to pool_epoch.active_stake.';
CREATE INDEX pool_reward_epoch_no ON pool_reward (epoch_no);

CREATE TABLE reward_round (epoch_no integer PRIMARY KEY);
COMMENT ON TABLE reward_round IS
    'The epochs in which all reward accounts were read: reward_epoch is complete for them.';

CREATE TABLE reward_epoch (
    chunk    integer NOT NULL,
    epoch_no integer NOT NULL,
    entries  bytea   NOT NULL CHECK (length(entries) BETWEEN 17 AND 1088 AND length(entries) % 17 = 0),
    PRIMARY KEY (chunk, epoch_no)
);
COMMENT ON TABLE reward_epoch IS
    'The reward accounts of 64 stake credentials when an epoch began: chunk is stake_no >> 6. Accounts that had '
    'nothing are left out.';
COMMENT ON COLUMN reward_epoch.entries IS
    '17 bytes for each account, in order: stake_no & 63 (1), the lovelace in it after what the beginning of the epoch '
    'paid (8), and what it paid (8), which is 0 if the epoch before is not in reward_round.';
ALTER TABLE reward_epoch ALTER entries SET STORAGE EXTERNAL;
CREATE INDEX reward_epoch_epoch_no ON reward_epoch (epoch_no);

CREATE VIEW reward_epoch_entry AS
SELECT epoch_no, (chunk << 6) + get_byte(entries, place * 17) AS stake_no,
       tx_id_at(entries, place * 17 + 1) AS lovelace, tx_id_at(entries, place * 17 + 9) AS paid
FROM reward_epoch, generate_series(0, length(entries) / 17 - 1) AS place;
COMMENT ON VIEW reward_epoch_entry IS 'The entries of reward_epoch, a row each.';

-- Delegators at the tip, with outputs and rewards; in bulk those of the genesis --------------------------------------

CREATE FUNCTION delegator_bucket_of(amount bigint, stake_no integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
-- The approximate position of a delegator in its pool's list: a lower number comes earlier. Each doubling of the amount has
-- 16 buckets; delegators with nothing, often many, have one per 8,192 values of stake_no.
SELECT CASE WHEN amount <= 0 THEN 1024 + (stake_no >> 13)
            ELSE 1023 - (64 - position(B'1' IN amount::bit(64))) * 16
                 - ((amount << 4 >> (64 - position(B'1' IN amount::bit(64))))::integer & 15)
       END
$$;

CREATE TABLE delegator (
    stake_no integer PRIMARY KEY,
    pool_no  integer NOT NULL,
    bucket   integer NOT NULL GENERATED ALWAYS AS (delegator_bucket_of(amount, stake_no)) STORED,
    amount   bigint  NOT NULL
);
COMMENT ON TABLE delegator IS 'Stake credentials with a pool; amount is the balance plus the reward.';
CREATE INDEX delegator_list ON delegator (pool_no, bucket, amount DESC, stake_no);

CREATE TABLE delegator_bucket (
    pool_no    integer NOT NULL,
    bucket     integer NOT NULL,
    delegators integer NOT NULL,
    lovelace   bigint  NOT NULL,
    PRIMARY KEY (pool_no, bucket)
) WITH (fillfactor = 70);
COMMENT ON TABLE delegator_bucket IS
    'Number and lovelace of the delegators in each bucket of a pool''s list: for its totals, and to find any offset.';

CREATE TABLE live_stake (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    lovelace bigint  NOT NULL
);
COMMENT ON TABLE live_stake IS 'At most one row: the sum of all delegators.';
