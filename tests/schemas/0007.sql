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
    refused        text
);
COMMENT ON TABLE partner.leader IS 'One row per network: the last heartbeat of its leading indexer, and the state of its node then.';
COMMENT ON COLUMN partner.leader.backend_pid IS 'The session that held the network''s lock then. The heartbeat is valid only for that session.';
COMMENT ON COLUMN partner.leader.beat_at IS 'By the database''s clock, like all times here, and compared only with that clock.';
COMMENT ON COLUMN partner.leader.failing IS 'Background tasks of that indexer that were failing.';
COMMENT ON COLUMN partner.leader.version IS 'Version of the indexer.';
COMMENT ON COLUMN partner.leader.node_since IS 'When the node was connected or, if it is not connected, lost.';
COMMENT ON COLUMN partner.leader.node_slot_no IS 'The node''s tip as last reported, kept after the node or the indexer has ended.';
COMMENT ON COLUMN partner.leader.node_moved_at IS 'When the node''s tip last changed.';
COMMENT ON COLUMN partner.leader.sync_left_s IS 'Seconds until the index reaches the node''s tip at the present rate; null at the tip or if unknown.';
COMMENT ON COLUMN partner.leader.finishing IS 'Whether the end of bulk is under way, during which no message of the node is read.';
COMMENT ON COLUMN partner.leader.refused IS 'Why the indexer stopped by itself, for operators; null unless it did.';

CREATE TABLE partner.retired_network (
    network_id smallint    PRIMARY KEY,
    retired_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE partner.retired_network IS 'Networks without an indexer on purpose, which is not reported as a fault. The next indexer deletes the row.';

CREATE TABLE partner.verification (
    network_id  smallint    PRIMARY KEY,
    began_at    timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    slot_no     bigint      NOT NULL,
    block_no    bigint      NOT NULL,
    node_blocks bigint,
    differing   text[]      NOT NULL
);
COMMENT ON TABLE partner.verification IS 'One row per network: the last `verify` that ran to its end on the present index.';
COMMENT ON COLUMN partner.verification.slot_no IS 'The last verified block.';
COMMENT ON COLUMN partner.verification.node_blocks IS 'How many blocks were compared with the node; null: none was asked.';
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
COMMENT ON TABLE partner.admin_key IS 'One row per partner, and one for the operator, under which the bootstrap key and the command line act.';
COMMENT ON COLUMN partner.admin_key.key_hash IS 'SHA-256 of the key; the key itself is not stored. Null only for an operator without a bootstrap key.';
COMMENT ON COLUMN partner.admin_key.credentials IS 'How many credentials it has created, revoked ones included: the total of its list of usage.';
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
COMMENT ON TABLE partner.user_account IS 'A customer of a partner. Only the admin key that created it can read and change it.';
COMMENT ON COLUMN partner.user_account.deleted_at IS
    'After that, the account is not found. Its texts are erased; the row is kept for the usage of its credentials.';
COMMENT ON COLUMN partner.user_account.metadata IS 'json, not jsonb, so that it is returned unchanged, including the order of its keys.';
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
COMMENT ON COLUMN partner.credential.admin_key_id IS 'The account''s owner, repeated here so that a partner''s list is one range of one index.';
COMMENT ON COLUMN partner.credential.key_hash IS 'SHA-256 of the key; the key itself is not stored.';
COMMENT ON COLUMN partner.credential.quota_requests IS 'The most requests per day or month (UTC) that are admitted; null: any number.';
COMMENT ON COLUMN partner.credential.ip_networks IS 'Where the key may be used from, in CIDR notation; empty: anywhere.';
COMMENT ON COLUMN partner.credential.scopes IS 'What the key may ask for; empty: everything.';
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
    PRIMARY KEY (credential_id, minute)
);
COMMENT ON TABLE partner.usage IS 'Requests answered per credential and minute (UTC). Only the usage aggregator writes it.';
COMMENT ON COLUMN partner.usage.successful IS 'Answers with status 2xx and 3xx; failed: 4xx and 5xx.';
COMMENT ON COLUMN partner.usage.took_us IS 'Sum of their response times, in microseconds.';

CREATE TABLE partner.usage_day (
    credential_id uuid   NOT NULL REFERENCES partner.credential,
    day           date   NOT NULL,
    successful    bigint NOT NULL,
    failed        bigint NOT NULL,
    took_us       bigint NOT NULL,
    limited       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (credential_id, day)
);
COMMENT ON TABLE partner.usage_day IS
    'The same per day (UTC), written in the same commit, so that a year is 365 rows instead of half a million.';
COMMENT ON COLUMN partner.usage_day.limited IS 'Those of failed with status 429, which do not count towards a quota.';

CREATE TABLE partner.endpoint (
    endpoint_no smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text     NOT NULL UNIQUE
);
COMMENT ON TABLE partner.endpoint IS 'Endpoints that were called with an API key: method and route template.';

CREATE TABLE partner.usage_hour (
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    hour          timestamptz NOT NULL,
    endpoint_no   smallint    NOT NULL REFERENCES partner.endpoint,
    status_class  smallint    NOT NULL,
    requests      bigint      NOT NULL,
    took_us       bigint      NOT NULL,
    durations     bigint[]    NOT NULL,
    PRIMARY KEY (credential_id, hour, endpoint_no, status_class)
);
COMMENT ON TABLE partner.usage_hour IS
    'Requests answered per credential, hour (UTC), endpoint and class of status (4 for 4xx), written in the commit of usage.';
COMMENT ON COLUMN partner.usage_hour.durations IS
    'A histogram of response times: bucket << 48 | count for each bucket, ascending (api/usage/durations.py).';

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
    credential_id uuid        PRIMARY KEY REFERENCES partner.credential,
    admin_key_id  uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    successful    bigint      NOT NULL DEFAULT 0,
    failed        bigint      NOT NULL DEFAULT 0
);
COMMENT ON TABLE partner.usage_total IS
    'The same since the creation of the credential, written in the same commit, also for unused ones: lists read only their page.';
COMMENT ON COLUMN partner.usage_total.admin_key_id IS 'Copied from credential, like created_at, so that the list is one range of one index.';
CREATE INDEX usage_total_list
    ON partner.usage_total (admin_key_id, (successful + failed) DESC, created_at DESC, credential_id DESC)
    INCLUDE (successful, failed);

CREATE TABLE partner.usage_kept (
    one   boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL
);
COMMENT ON TABLE partner.usage_kept IS
    'At most one row: the first day (UTC) whose minutes of usage are kept. Earlier usage is known by day only.';

CREATE FUNCTION partner.usage_of(of_credential uuid, since timestamptz, until timestamptz)
RETURNS TABLE (day date, successful bigint, failed bigint, took_us bigint) LANGUAGE sql STABLE AS $$
    -- The days from head_end to tail_start are whole; minutes before and after them are read one by one.
    -- Where minutes are no longer kept, a period begins and ends with its days.
    WITH kept AS (
        SELECT coalesce((SELECT usage_kept.since FROM partner.usage_kept), '-infinity') AS minutes_since
    ), asked AS (
        SELECT CASE WHEN since < minutes_since THEN date_trunc('day', since, 'UTC') ELSE date_trunc('minute', since) END AS since,
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
         AND usage_day.day >= (head_end AT TIME ZONE 'UTC')::date AND usage_day.day < (tail_start AT TIME ZONE 'UTC')::date
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
    'The rows to sum for a credential, from the minute of `since` to the last minute that begins before `until`; either may be infinite.';

CREATE TABLE partner.usage_batch (
    spool       text        PRIMARY KEY,
    next_offset bigint      NOT NULL,
    added_at    timestamptz NOT NULL DEFAULT now(),
    closed_at   timestamptz
);
COMMENT ON TABLE partner.usage_batch IS
    'The batches that are in usage: those of a spool with an offset below next_offset, since they are added in order.';
COMMENT ON COLUMN partner.usage_batch.closed_at IS
    'When the spool''s file, then completely in usage, was deleted. The row is deleted 30 days later.';
CREATE INDEX usage_batch_closed ON partner.usage_batch (closed_at);

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
COMMENT ON TABLE partner.audit_log IS 'Admin actions, each written in the commit of its change or its read access, and never changed, except that names of deleted accounts are erased.';
CREATE INDEX audit_log_page ON partner.audit_log (created_at DESC, id DESC);
CREATE INDEX audit_log_admin_key ON partner.audit_log (admin_key_id, created_at DESC, id DESC);
CREATE INDEX audit_log_target ON partner.audit_log (target_id, created_at DESC, id DESC);
CREATE INDEX audit_log_request ON partner.audit_log ((details ->> 'request_id'));
CREATE INDEX audit_log_reading ON partner.audit_log (created_at) WHERE right(action, 7) IN ('.viewed', '.listed');

-- == chain ==

-- Tips ----------------------------------------------------------------------------------------------------------------

CREATE TABLE tip (
    one            boolean  PRIMARY KEY DEFAULT true CHECK (one),
    slot_no        bigint   NOT NULL,
    block_no       bigint   NOT NULL,
    block_hash     bytea    NOT NULL,
    first_block_no bigint   NOT NULL,
    tx_count       bigint   NOT NULL,
    phase          text     NOT NULL CHECK (phase IN ('bulk', 'live')),
    finalize_step  smallint NOT NULL DEFAULT 0,
    numbering      uuid     NOT NULL DEFAULT gen_random_uuid()
);
COMMENT ON TABLE tip IS
    'At most one row: the last committed block. It moves in the commit that writes the rows of its blocks. Without a row, nothing is indexed.';
COMMENT ON COLUMN tip.first_block_no IS 'If above 0, the index is partial: outputs from before this block are unknown.';
COMMENT ON COLUMN tip.phase IS 'bulk: histories are staged without indexes and nothing can be queried yet; live: complete.';
COMMENT ON COLUMN tip.finalize_step IS 'How many steps from bulk to live are committed.';
COMMENT ON COLUMN tip.numbering IS
    'While it stays the same, so do row numbers. Each session of the indexer sets a new one, as Postgres may have lost commits before it.';

CREATE TABLE rollback_depth (
    blocks_at_most integer     PRIMARY KEY,
    rollbacks      bigint      NOT NULL,
    blocks         bigint      NOT NULL,
    last_at        timestamptz NOT NULL,
    last_blocks    integer     NOT NULL
);
COMMENT ON TABLE rollback_depth IS 'Rollbacks by the node since the index began, by depth; not part of the chain. Those of resync do not count.';
COMMENT ON COLUMN rollback_depth.blocks_at_most IS 'Upper bound of the depth; the lower bound is that of the next smaller row. 2147483647 has no bound.';
COMMENT ON COLUMN rollback_depth.blocks IS 'Sum of the depths.';
COMMENT ON COLUMN rollback_depth.last_blocks IS 'Depth of the last one, at last_at.';

-- Blocks and transactions ---------------------------------------------------------------------------------------------

CREATE TABLE block (
    slot_no  bigint  PRIMARY KEY,
    block_no bigint  NOT NULL,
    tx_count integer NOT NULL,
    pool_no  integer,
    hash     bytea   NOT NULL
);
COMMENT ON TABLE block IS 'All blocks except epoch boundary blocks.';
COMMENT ON COLUMN block.pool_no IS 'The pool of the issuer''s verification key (also of genesis delegates); null in Byron.';
CREATE INDEX block_block_no ON block (block_no);
CREATE INDEX block_hash ON block USING hash (hash);

CREATE TABLE epoch_boundary_block (
    slot_no  bigint PRIMARY KEY,
    block_no bigint NOT NULL,
    hash     bytea  NOT NULL
);
COMMENT ON TABLE epoch_boundary_block IS
    'Byron''s blocks without a slot: each gets the first slot of its epoch and precedes any block in that slot.';

CREATE TABLE tx (
    tx_id   bigint  PRIMARY KEY,
    fee     bigint,
    size    integer,
    hash    bytea   NOT NULL,
    outputs bytea   NOT NULL,
    inputs  bytea   NOT NULL,
    mint    bytea,
    extra   bytea
);
COMMENT ON TABLE tx IS
    'One row per transaction; outputs, inputs, mint and extra are packed by shared/packed.py, with addresses and assets as their numbers.';
COMMENT ON COLUMN tx.tx_id IS 'slot_no << 16 | index in the block; Dijkstra''s sub-transactions are numbered before their host.';
COMMENT ON COLUMN tx.fee IS 'Lovelace; null if it depends on an output from before the first indexed block.';
COMMENT ON COLUMN tx.size IS 'Bytes as the ledger counts them; null if the node does not send transactions as CBOR.';
-- NOTE: packed bytes hardly compress, and Postgres would try on every row above 2 kB.
ALTER TABLE tx ALTER outputs SET STORAGE EXTERNAL, ALTER inputs SET STORAGE EXTERNAL,
    ALTER mint SET STORAGE EXTERNAL, ALTER extra SET STORAGE EXTERNAL;
CREATE INDEX tx_hash ON tx USING hash (hash);

CREATE TABLE genesis_output (
    tx_hash  bytea  PRIMARY KEY,
    address  bytea  NOT NULL,
    lovelace bigint NOT NULL
);
COMMENT ON TABLE genesis_output IS 'Outputs, each at index 0, that exist before the first block and belong to no transaction.';

-- Row numbers of byte strings. Never deleted and never reused, so that packed rows may hold them, and caches of them stay
-- valid over rollbacks (see tip.numbering) --------------------------------------------------------------------------------

CREATE TABLE stake (
    stake_no        integer PRIMARY KEY,
    pool_no         integer,
    active_epoch_no integer,
    balance         bigint  NOT NULL DEFAULT 0,
    raw             bytea   NOT NULL,
    CHECK ((pool_no IS NULL) = (active_epoch_no IS NULL))
);
COMMENT ON TABLE stake IS 'Stake credentials, as the 29 bytes of their reward account (CIP-19).';
COMMENT ON COLUMN stake.pool_no IS 'The pool that it delegates to now, according to its last row in stake_event.';
COMMENT ON COLUMN stake.active_epoch_no IS 'The first epoch in which that delegation counts: two after its certificate.';
COMMENT ON COLUMN stake.balance IS 'Lovelace in the unspent outputs of its addresses.';
CREATE INDEX stake_raw ON stake USING hash (raw);
-- NOTE: balance is in no index, so that its many updates touch none.
CREATE INDEX stake_pool_no ON stake (pool_no) WHERE pool_no IS NOT NULL;

CREATE TABLE address (
    address_no integer PRIMARY KEY,
    stake_no   integer,
    raw        bytea   NOT NULL
);
COMMENT ON TABLE address IS 'Payment addresses, as their bytes (CIP-19).';
COMMENT ON COLUMN address.stake_no IS 'Its stake credential; only base addresses have one.';
CREATE INDEX address_raw ON address USING hash (raw);

CREATE TABLE pool (
    pool_no integer PRIMARY KEY,
    pool_id bytea   NOT NULL
);
COMMENT ON TABLE pool IS 'Stake pools and other block issuers. pool_id is the hash of their cold key (28 bytes).';
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
    'The first 8 bytes of the digest in its fingerprint (CIP-14), as a signed number. Assets may share it; the fingerprint decides.';
COMMENT ON COLUMN asset.first_tx_id IS 'The first transaction that moved it; null if a rollback removed all of them, and the asset does not exist.';
COMMENT ON COLUMN asset.first_mint_tx_id IS 'The first transaction that minted it; null if it precedes the first indexed block.';
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
    'The number of assets of a policy from one with opens_bucket to the next, by supply (greatest first) and name. For policies with at least 4 such assets; used to find deep pages.';
COMMENT ON COLUMN asset_bucket.rank IS 'The negative supply, by which the list is sorted, then by name; -Infinity in the first bucket, which begins before all assets.';

-- Histories: seq is 0, 1, 2 … without gaps, so that a page is a range and the total is the last seq + 1. Those of addresses
-- and assets are packed, 64 entries to a chunk: chunk is seq >> 6 ---------------------------------------------------

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
    chunk   integer NOT NULL,
    tx_ids     bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (address_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE address_tx IS 'Transactions that spend from or pay to an address, in order.';
COMMENT ON COLUMN address_tx.tx_ids IS 'The tx_id of each, in 8 bytes.';

CREATE TABLE asset_tx (
    asset_no integer NOT NULL,
    chunk integer NOT NULL,
    entries  bytea   NOT NULL CHECK (length(entries) BETWEEN 18 AND 1152 AND length(entries) % 18 = 0),
    PRIMARY KEY (asset_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE asset_tx IS 'Transactions with the asset in at least one output, in order.';
COMMENT ON COLUMN asset_tx.entries IS 'The tx_id of each, in 8 bytes, and the total quantity in its outputs, in 10.';

CREATE VIEW address_tx_entry AS
SELECT address_no, (chunk << 6) + place AS seq, tx_id_at(tx_ids, place * 8) AS tx_id
FROM address_tx, generate_series(0, length(tx_ids) / 8 - 1) AS place;
COMMENT ON VIEW address_tx_entry IS 'The entries of address_tx, a row each.';

CREATE VIEW asset_tx_entry AS
SELECT asset_no, (chunk << 6) + place AS seq, tx_id_at(entries, place * 18) AS tx_id,
       quantity_at(entries, place * 18 + 8) AS quantity
FROM asset_tx, generate_series(0, length(entries) / 18 - 1) AS place;
COMMENT ON VIEW asset_tx_entry IS 'The entries of asset_tx, a row each.';

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
COMMENT ON TABLE mint IS 'Net quantity of an asset that a transaction minted (above 0) or burned (below 0). A net of 0 has no row.';
COMMENT ON COLUMN mint.named IS 'Whether quantity is above 0 and the transaction''s metadata label 721 names the asset (CIP-25).';
CREATE INDEX mint_tx_id ON mint USING brin (tx_id) WITH (autosummarize = on);
CREATE INDEX mint_named ON mint (asset_no, seq) WHERE named;

CREATE FUNCTION mint_range(of_asset_no integer, lowest bigint, highest bigint)
RETURNS TABLE (seq integer, tx_id bigint, quantity numeric) LANGUAGE sql STABLE AS $$
-- The mints of an asset from one seq to another.
SELECT seq, tx_id, coalesce(large, quantity) FROM mint WHERE asset_no = of_asset_no AND seq BETWEEN lowest AND highest
$$;

CREATE TABLE address_tx_staged (address_no integer NOT NULL, tx_id bigint NOT NULL);
CREATE TABLE asset_tx_staged (asset_no integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric);
CREATE TABLE mint_staged (asset_no integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric, named boolean NOT NULL);
COMMENT ON TABLE address_tx_staged IS 'Rows of address_tx in bulk: sorted, numbered and indexed when bulk ends; empty when live.';
COMMENT ON TABLE asset_tx_staged IS 'Rows of asset_tx in bulk.';
COMMENT ON TABLE mint_staged IS 'Rows of mint in bulk.';

CREATE TABLE balance_staged (stake_no integer NOT NULL, lovelace bigint NOT NULL);
CREATE TABLE holder_staged (asset_no integer NOT NULL, address_no integer NOT NULL, quantity bigint, large numeric);
COMMENT ON TABLE balance_staged IS
    'Changes of stake.balance in bulk, with the opposite sign for rollbacks: added up when an epoch begins and when bulk ends.';
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

-- Holders at the tip. Lists are sorted by quantity, then address_no, in either direction ------------------------------

CREATE TABLE holder (
    asset_no   integer NOT NULL,
    address_no integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (asset_no, address_no)
);
COMMENT ON TABLE holder IS 'The quantity of an asset in the unspent outputs of an address. A quantity of 0 has no row.';
CREATE INDEX holder_quantity ON holder (asset_no, quantity, address_no);

CREATE TABLE policy_holder (
    policy_no  integer NOT NULL,
    address_no integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (policy_no, address_no)
);
COMMENT ON TABLE policy_holder IS 'The same over all assets of a policy.';
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
    'The number of holders from one with opens_bucket to the next, for lists with at least 4 such holders; used to find deep pages.';
COMMENT ON COLUMN holder_bucket.lowest_address_no IS 'The address_no of the holder; 0 in the first bucket, which begins before all holders.';

CREATE TABLE policy_holder_bucket (
    policy_no         integer NOT NULL,
    lowest_quantity   numeric NOT NULL,
    lowest_address_no integer NOT NULL,
    holders           integer NOT NULL,
    PRIMARY KEY (policy_no, lowest_quantity, lowest_address_no)
);
COMMENT ON TABLE policy_holder_bucket IS 'The same for policy_holder.';

-- Metadata of user tokens: the datums beside reference tokens (CIP-68) ------------------------------------------------

CREATE TABLE reference_output (
    asset_no     integer NOT NULL,
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    spent_tx_id  bigint,
    datum_hash   bytea,
    datum        bytea,
    PRIMARY KEY (tx_id, output_index, asset_no)
);
COMMENT ON TABLE reference_output IS 'Outputs that hold a reference token (CIP-68, label 100), spent or not, one row per token.';
COMMENT ON COLUMN reference_output.datum IS 'The inline datum as CBOR, null if there is none.';
CREATE INDEX reference_output_unspent ON reference_output (asset_no, tx_id, output_index) WHERE spent_tx_id IS NULL;
CREATE INDEX reference_output_spent ON reference_output (spent_tx_id) WHERE spent_tx_id IS NOT NULL;

CREATE TABLE datum (
    hash  bytea  PRIMARY KEY,
    tx_id bigint NOT NULL,
    body  bytea  NOT NULL
);
COMMENT ON TABLE datum IS 'Datums in witnesses that begin like CIP-68 metadata; others are not stored.';
COMMENT ON COLUMN datum.tx_id IS 'The first transaction whose witnesses had it.';
CREATE INDEX datum_tx_id ON datum USING brin (tx_id) WITH (autosummarize = on);

-- Effects of certificates on stake and pools. tx_id -1: in the genesis; place: the order within a transaction ---------

CREATE TABLE stake_event (
    tx_id    bigint   NOT NULL,
    stake_no integer  NOT NULL,
    pool_no  integer,
    epoch_no integer  NOT NULL,
    place    smallint NOT NULL,
    kind     text     NOT NULL CHECK (kind IN ('registration', 'deregistration', 'delegation', 'reaping')),
    PRIMARY KEY (stake_no, tx_id, place),
    CHECK ((pool_no IS NOT NULL) = (kind = 'delegation'))
);
COMMENT ON TABLE stake_event IS 'Changes of stake credentials. After every kind but a delegation the credential has no pool.';
COMMENT ON COLUMN stake_event.kind IS
    'reaping: the pool was retired at the epoch''s first slot; the row has the first tx_id of that slot and precedes its transactions.';
CREATE INDEX stake_event_tx_id ON stake_event USING brin (tx_id) WITH (autosummarize = on);

CREATE TABLE pool_update (
    tx_id      bigint   NOT NULL,
    pool_no    integer  NOT NULL,
    place      smallint NOT NULL,
    parameters bytea    NOT NULL,
    PRIMARY KEY (pool_no, tx_id, place)
);
COMMENT ON TABLE pool_update IS 'First registrations of pools and later ones, which change their parameters; packed by shared/packed.py.';

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
    'Lovelace of its delegators, without rewards, in the snapshot that counts in this epoch. It was taken when the epoch before began.';
CREATE INDEX pool_epoch_epoch_no ON pool_epoch (epoch_no);

-- Data that blocks do not contain, as last read from the node's ledger: not part of the chain, and not rolled back ----

CREATE TABLE ledger_state (
    one                  boolean PRIMARY KEY DEFAULT true CHECK (one),
    slot_no              bigint  NOT NULL,
    epoch_no             integer NOT NULL,
    next_stake_no        integer,
    complete_epoch_no    integer,
    desired_pools        integer,
    reserves             bigint,
    treasury             bigint,
    compared_pools       integer,
    pools_stake_mismatch integer,
    difference           bigint
);
COMMENT ON TABLE ledger_state IS 'Read once in each epoch, at slot_no of epoch_no. Null if the node could not answer.';
COMMENT ON COLUMN ledger_state.next_stake_no IS 'The first stake_no whose reward of this epoch is still to be read; null if all are read.';
COMMENT ON COLUMN ledger_state.complete_epoch_no IS 'The last epoch in which all rewards were read.';
COMMENT ON COLUMN ledger_state.compared_pools IS
    'The number of live stakes compared with the node''s, how many of them differed, and by how many lovelace in total.';

CREATE TABLE reward (
    stake_no integer PRIMARY KEY,
    slot_no  bigint  NOT NULL,
    lovelace bigint  NOT NULL CHECK (lovelace > 0)
);
COMMENT ON TABLE reward IS 'Rewards of reward accounts, read at slot_no. No row for a reward of 0, or after a withdrawal until it is read again.';

CREATE TABLE reward_due (
    stake_no integer PRIMARY KEY,
    slot_no  bigint  NOT NULL
);
COMMENT ON TABLE reward_due IS 'Accounts whose reward changed, or began to count, at slot_no: it must be read there or later.';

CREATE TABLE pool_reward (
    pool_no  integer NOT NULL,
    epoch_no integer NOT NULL,
    lovelace bigint  NOT NULL,
    PRIMARY KEY (pool_no, epoch_no)
);
COMMENT ON TABLE pool_reward IS 'The rewards to add to pool_epoch.active_stake.';

-- Delegators at the tip, with outputs and rewards. Empty in bulk, filled when it ends ---------------------------------

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
