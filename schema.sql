-- A fresh database. `shared/schema.py` makes the first section once and the second once per network, in the schemas
-- chain_mainnet, chain_preview and chain_preprod; `shared/migrations/` leads older databases here.

-- == partner ==

CREATE SCHEMA partner;

CREATE TABLE partner.schema_version (version integer NOT NULL);
COMMENT ON TABLE partner.schema_version IS 'One row: what shared/schema.py compares with the version it knows.';

-- Who may administrate ------------------------------------------------------------------------------------------------

CREATE TABLE partner.admin_key (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    is_bootstrap boolean     NOT NULL DEFAULT false,
    entity_name  text        NOT NULL,
    key_prefix   text        NOT NULL,
    key_hash     bytea       UNIQUE,
    permissions  text[]      NOT NULL
);
COMMENT ON TABLE partner.admin_key IS 'One row per partner, and one that stands for the operator: the bootstrap key and the command line act as it.';
COMMENT ON COLUMN partner.admin_key.key_hash IS 'SHA-256 of the key, which is stored nowhere; null only where the operator has set no bootstrap key.';
CREATE UNIQUE INDEX admin_key_bootstrap ON partner.admin_key (is_bootstrap) WHERE is_bootstrap;
CREATE INDEX admin_key_page ON partner.admin_key (created_at DESC, id DESC);

-- Whom a partner serves -----------------------------------------------------------------------------------------------

CREATE TABLE partner.user_account (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    admin_key_id uuid        NOT NULL REFERENCES partner.admin_key,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz,
    status       text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'pending')),
    name         text        NOT NULL,
    external_id  text,
    email        text,
    billing_plan text,
    metadata     json        NOT NULL DEFAULT '{}',
    UNIQUE (admin_key_id, external_id),
    UNIQUE (id, admin_key_id)
);
COMMENT ON TABLE partner.user_account IS 'A customer of a partner, seen and changed by the admin key that created it alone.';
COMMENT ON COLUMN partner.user_account.metadata IS 'json, not jsonb: given back as it came, the order of its keys included.';
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
    key_hash              bytea       NOT NULL UNIQUE,
    api_key_prefix        text        NOT NULL,
    name                  text        NOT NULL,
    description           text,
    metadata              json        NOT NULL DEFAULT '{}',
    FOREIGN KEY (user_account_id, admin_key_id) REFERENCES partner.user_account (id, admin_key_id)
);
COMMENT ON TABLE partner.credential IS 'An API key: for one user account, on one network. Revoked rows stay.';
COMMENT ON COLUMN partner.credential.admin_key_id IS 'The account''s owner, repeated here so that a partner''s list is one range of one index.';
COMMENT ON COLUMN partner.credential.key_hash IS 'SHA-256 of the key, which is stored nowhere.';
CREATE INDEX credential_page ON partner.credential (admin_key_id, created_at DESC, id DESC);
CREATE INDEX credential_user_account ON partner.credential (user_account_id);

-- What was asked ------------------------------------------------------------------------------------------------------

CREATE TABLE partner.usage (
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    minute        timestamptz NOT NULL,
    successful    bigint      NOT NULL,
    failed        bigint      NOT NULL,
    took_us       bigint      NOT NULL,
    PRIMARY KEY (credential_id, minute)
);
COMMENT ON TABLE partner.usage IS 'Requests answered per credential and minute (UTC). Written by the usage aggregator alone.';
COMMENT ON COLUMN partner.usage.successful IS 'Answers with status 2xx and 3xx; failed: 4xx and 5xx.';
COMMENT ON COLUMN partner.usage.took_us IS 'Response times of all of them, added up, in microseconds.';

CREATE TABLE partner.usage_day (
    credential_id uuid   NOT NULL REFERENCES partner.credential,
    day           date   NOT NULL,
    successful    bigint NOT NULL,
    failed        bigint NOT NULL,
    took_us       bigint NOT NULL,
    PRIMARY KEY (credential_id, day)
);
COMMENT ON TABLE partner.usage_day IS
    'The same per day (UTC), written in the same commit: a year is 365 rows to add up instead of half a million.';

CREATE FUNCTION partner.usage_of(of_credential uuid, since timestamptz, until timestamptz)
RETURNS TABLE (day date, successful bigint, failed bigint, took_us bigint) LANGUAGE sql STABLE AS $$
    -- The days from head_end to tail_start are whole; minutes before and after them are read one by one.
    WITH period AS (
        SELECT date_trunc('minute', since) AS since,
               CASE WHEN date_trunc('day', since, 'UTC') = since THEN since
                    ELSE date_trunc('day', since, 'UTC') + interval '1 day' END AS head_end
    ), whole AS (
        SELECT since, head_end, greatest(head_end, date_trunc('day', until, 'UTC')) AS tail_start FROM period
    )
    SELECT usage_day.day, usage_day.successful, usage_day.failed, usage_day.took_us
    FROM whole
    JOIN partner.usage_day ON usage_day.credential_id = of_credential
         AND usage_day.day >= (head_end AT TIME ZONE 'UTC')::date AND usage_day.day < (tail_start AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT (usage.minute AT TIME ZONE 'UTC')::date, usage.successful, usage.failed, usage.took_us
    FROM whole
    JOIN partner.usage ON usage.credential_id = of_credential
         AND usage.minute >= whole.since AND usage.minute < least(until, head_end)
    UNION ALL
    SELECT (usage.minute AT TIME ZONE 'UTC')::date, usage.successful, usage.failed, usage.took_us
    FROM whole
    JOIN partner.usage ON usage.credential_id = of_credential
         AND usage.minute >= tail_start AND usage.minute < until
$$;
COMMENT ON FUNCTION partner.usage_of IS
    'What to add up for a credential from the minute of `since` on, for minutes that begin before `until`; may be infinite.';

CREATE TABLE partner.usage_batch (
    spool       text        PRIMARY KEY,
    next_offset bigint      NOT NULL,
    added_at    timestamptz NOT NULL DEFAULT now(),
    closed_at   timestamptz
);
COMMENT ON TABLE partner.usage_batch IS
    'The names of the batches in usage: of a spool, whose batches are added in order, all with an offset below next_offset.';
COMMENT ON COLUMN partner.usage_batch.closed_at IS 
    'When the spool''s file was found added to its end and deleted. Such rows are dropped 30 days later.';
CREATE INDEX usage_batch_closed ON partner.usage_batch (closed_at);

-- Who did what --------------------------------------------------------------------------------------------------------

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
COMMENT ON TABLE partner.audit_log IS 'Written in the commit of the change, or of the reading, that it tells of; never changed.';
CREATE INDEX audit_log_page ON partner.audit_log (created_at DESC, id DESC);
CREATE INDEX audit_log_admin_key ON partner.audit_log (admin_key_id, created_at DESC, id DESC);
CREATE INDEX audit_log_target ON partner.audit_log (target_id, created_at DESC, id DESC);

-- == chain ==

-- Where the index stands ----------------------------------------------------------------------------------------------

CREATE TABLE tip (
    one            boolean  PRIMARY KEY DEFAULT true CHECK (one),
    slot_no        bigint   NOT NULL,
    block_no       bigint   NOT NULL,
    block_hash     bytea    NOT NULL,
    first_block_no bigint   NOT NULL,
    tx_count       bigint   NOT NULL,
    phase          text     NOT NULL CHECK (phase IN ('bulk', 'live')),
    finalize_step  smallint NOT NULL DEFAULT 0
);
COMMENT ON TABLE tip IS
    'At most one row: the last committed block. It moves in the commit that writes the rows of its blocks. No row: nothing is indexed.';
COMMENT ON COLUMN tip.first_block_no IS 'Above 0 the index is partial: inputs from before this block are unknown.';
COMMENT ON COLUMN tip.phase IS 'bulk: histories are staged without index and nothing can be asked yet; live: complete.';
COMMENT ON COLUMN tip.finalize_step IS 'How many steps from bulk to live are committed.';

CREATE TABLE node_tip (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    slot_no  bigint      NOT NULL,
    block_no bigint      NOT NULL,
    seen_at  timestamptz NOT NULL
);
COMMENT ON TABLE node_tip IS 'What the node last said of its own tip, for status and lag; no part of the chain.';

-- Blocks and transactions ---------------------------------------------------------------------------------------------

CREATE TABLE block (
    slot_no  bigint  PRIMARY KEY,
    block_no bigint  NOT NULL,
    tx_count integer NOT NULL,
    pool_id  integer,
    hash     bytea   NOT NULL
);
COMMENT ON TABLE block IS 'Every block but epoch boundary blocks.';
COMMENT ON COLUMN block.pool_id IS 'The pool of the issuer''s verification key (also of genesis delegates); null in Byron.';
CREATE INDEX block_block_no ON block (block_no);
CREATE INDEX block_hash ON block USING hash (hash);

CREATE TABLE epoch_boundary_block (
    slot_no  bigint PRIMARY KEY,
    block_no bigint NOT NULL,
    hash     bytea  NOT NULL
);
COMMENT ON TABLE epoch_boundary_block IS
    'Byron''s blocks without slot: theirs is the first of their epoch, which a block may share, and comes before it.';

CREATE TABLE tx (
    tx_id   bigint  PRIMARY KEY,
    fee     bigint,
    size    integer,
    hash    bytea   NOT NULL,
    outputs bytea   NOT NULL,
    inputs  bytea   NOT NULL,
    extra   bytea
);
COMMENT ON TABLE tx IS 'One row per transaction; outputs, inputs and extra are packed by shared/packed.py.';
COMMENT ON COLUMN tx.tx_id IS 'slot_no << 16 | index in the block; Dijkstra''s sub-transactions are numbered before their host.';
COMMENT ON COLUMN tx.fee IS 'Lovelace; null where it depends on an input from before the first indexed block.';
COMMENT ON COLUMN tx.size IS 'Bytes as the ledger counts them; null where the node does not send transactions as CBOR.';
-- NOTE: packed bytes hardly compress, and Postgres would try on every row above 2 kB.
ALTER TABLE tx ALTER outputs SET STORAGE EXTERNAL, ALTER inputs SET STORAGE EXTERNAL, ALTER extra SET STORAGE EXTERNAL;
CREATE INDEX tx_hash ON tx USING hash (hash);

CREATE TABLE genesis_output (
    tx_hash  bytea  PRIMARY KEY,
    address  bytea  NOT NULL,
    lovelace bigint NOT NULL
);
COMMENT ON TABLE genesis_output IS 'Outputs, each at index 0, that exist before the first block and belong to no transaction.';

-- Who is who: numbers for byte strings. Never deleted and never given twice, so that caches of them hold over rollbacks -

CREATE TABLE stake (
    stake_id        integer PRIMARY KEY,
    pool_id         integer,
    active_epoch_no integer,
    balance         bigint  NOT NULL DEFAULT 0,
    raw             bytea   NOT NULL,
    CHECK ((pool_id IS NULL) = (active_epoch_no IS NULL))
);
COMMENT ON TABLE stake IS 'Stake credentials, as the 29 bytes of their reward account (CIP-19).';
COMMENT ON COLUMN stake.pool_id IS 'What it delegates to now: the last word of its rows in stake_event.';
COMMENT ON COLUMN stake.active_epoch_no IS 'The epoch in which that delegation counts first: two after its certificate.';
COMMENT ON COLUMN stake.balance IS 'Lovelace in unspent outputs.';
CREATE INDEX stake_raw ON stake USING hash (raw);
-- NOTE: balance is in no index, so that its many updates touch none.
CREATE INDEX stake_pool_id ON stake (pool_id) WHERE pool_id IS NOT NULL;

CREATE TABLE address (
    address_id integer PRIMARY KEY,
    raw        bytea   NOT NULL
);
COMMENT ON TABLE address IS 'Payment addresses, as their bytes (CIP-19).';
CREATE INDEX address_raw ON address USING hash (raw);

CREATE TABLE pool (
    pool_id integer PRIMARY KEY,
    hash    bytea   NOT NULL
);
COMMENT ON TABLE pool IS 'Stake pools and other block issuers, by the hash of their cold key (28 bytes).';
CREATE INDEX pool_hash ON pool USING hash (hash);

CREATE TABLE policy (
    policy_id   integer PRIMARY KEY,
    asset_count integer NOT NULL DEFAULT 0,
    hash        bytea   NOT NULL
);
COMMENT ON TABLE policy IS 'Minting policies, by the hash of their script (28 bytes).';
COMMENT ON COLUMN policy.asset_count IS 'How many of its assets exist, burned ones included.';
CREATE INDEX policy_hash ON policy USING hash (hash);

CREATE FUNCTION opens_bucket(number integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether what has this number, a holder or an asset, begins a bucket in whatever list it stands: about one in 1,024 does.
SELECT (number::bigint * 2654435761 >> 16) & 1023 = 0
$$;

CREATE TABLE asset (
    asset_id         integer NOT NULL PRIMARY KEY,
    policy_id        integer NOT NULL,
    name             bytea   NOT NULL,
    supply           numeric NOT NULL DEFAULT 0,
    mint_count       integer NOT NULL DEFAULT 0,
    burn_count       integer NOT NULL DEFAULT 0,
    first_tx_id      bigint,
    first_mint_tx_id bigint
);
COMMENT ON TABLE asset IS 'Native assets and their supply: what was minted less what was burned, as far as indexed.';
COMMENT ON COLUMN asset.first_tx_id IS 'The first transaction that moved it; null where a rollback took all of them: then it does not exist.';
COMMENT ON COLUMN asset.first_mint_tx_id IS 'The first transaction that minted it; null where that lies before the first indexed block.';
CREATE INDEX asset_name ON asset (policy_id, name);
CREATE INDEX asset_supply ON asset (policy_id, (-supply), name) INCLUDE (supply) WHERE first_tx_id IS NOT NULL;
CREATE INDEX asset_opening ON asset (policy_id, (-supply), name) INCLUDE (supply)
    WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_id);

CREATE TABLE asset_bucket (
    policy_id integer NOT NULL,
    rank      numeric NOT NULL,
    name      bytea   NOT NULL,
    assets    integer NOT NULL,
    PRIMARY KEY (policy_id, rank, name)
);
COMMENT ON TABLE asset_bucket IS
    'How many assets of a policy there are from one with opens_bucket to the next, by supply, greatest first, and name, for policies with 4 such or more: deep pages are found by it.';
COMMENT ON COLUMN asset_bucket.rank IS 'What the list goes by, then name: the negative supply; -Infinity in the first bucket, which begins before all assets.';

-- Histories: seq counts 0, 1, 2 … without gap, so that a page is a range and the total is the last seq + 1 --------------

CREATE TABLE address_tx (
    address_id integer NOT NULL,
    seq        integer NOT NULL,
    tx_id      bigint  NOT NULL,
    PRIMARY KEY (address_id, seq) INCLUDE (tx_id)
);
COMMENT ON TABLE address_tx IS 'Transactions that spend from or pay to an address, in order.';
CREATE INDEX address_tx_tx_id ON address_tx USING brin (tx_id) WITH (autosummarize = on);

CREATE TABLE asset_tx (
    asset_id integer NOT NULL,
    seq      integer NOT NULL,
    tx_id    bigint  NOT NULL,
    quantity bigint,
    large    numeric,
    PRIMARY KEY (asset_id, seq),
    CHECK ((quantity IS NULL) <> (large IS NULL))
);
COMMENT ON TABLE asset_tx IS 'Transactions with the asset in at least one output, and how much of it in all their outputs.';
COMMENT ON COLUMN asset_tx.large IS 'The quantity where it is beyond 63 bits.';
CREATE INDEX asset_tx_tx_id ON asset_tx USING brin (tx_id) WITH (autosummarize = on);

CREATE TABLE mint (
    asset_id integer NOT NULL,
    seq      integer NOT NULL,
    tx_id    bigint  NOT NULL,
    quantity bigint,
    large    numeric,
    named    boolean NOT NULL,
    PRIMARY KEY (asset_id, seq),
    CHECK ((quantity IS NULL) <> (large IS NULL))
);
COMMENT ON TABLE mint IS 'Net quantity that a transaction minted (above 0) or burned (below 0) of an asset; a net of 0 is no row.';
COMMENT ON COLUMN mint.named IS 'Whether quantity is above 0 and the transaction''s metadata label 721 names the asset (CIP-25).';
CREATE INDEX mint_tx_id ON mint USING brin (tx_id) WITH (autosummarize = on);
CREATE INDEX mint_named ON mint (asset_id, seq) WHERE named;

CREATE TABLE address_tx_staged (address_id integer NOT NULL, tx_id bigint NOT NULL);
CREATE TABLE asset_tx_staged (asset_id integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric);
CREATE TABLE mint_staged (asset_id integer NOT NULL, tx_id bigint NOT NULL, quantity bigint, large numeric, named boolean NOT NULL);
COMMENT ON TABLE address_tx_staged IS 'Rows of address_tx while in bulk: sorted, numbered and indexed at its end; empty when live.';
COMMENT ON TABLE asset_tx_staged IS 'Rows of asset_tx while in bulk.';
COMMENT ON TABLE mint_staged IS 'Rows of mint while in bulk.';

CREATE TABLE balance_staged (stake_id integer NOT NULL, lovelace bigint NOT NULL);
CREATE TABLE holder_staged (asset_id integer NOT NULL, address_id integer NOT NULL, quantity bigint, large numeric);
COMMENT ON TABLE balance_staged IS
    'What batches, and rollbacks with the other sign, move of stake.balance while in bulk: added up where an epoch begins and at its end.';
COMMENT ON TABLE holder_staged IS 'What they move of held quantities while in bulk: added up at its end.';

CREATE FUNCTION address_tx_rank(address integer, before bigint) RETURNS integer LANGUAGE plpgsql STABLE AS $$
-- How many transactions of an address have a tx_id below `before`: a binary search, 21 probes for two million.
DECLARE
    low integer := 0; high integer; middle integer; found bigint;
BEGIN
    SELECT coalesce(max(seq) + 1, 0) INTO high FROM address_tx WHERE address_id = address;
    WHILE low < high LOOP
        middle := (low + high) / 2;
        SELECT tx_id INTO found FROM address_tx WHERE address_id = address AND seq = middle;
        IF found < before THEN low := middle + 1; ELSE high := middle; END IF;
    END LOOP;
    RETURN low;
END $$;

-- Who holds what, at this block. Lists go by quantity and address_id, from either end -------------------------------------

CREATE TABLE holder (
    asset_id   integer NOT NULL,
    address_id integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (asset_id, address_id)
);
COMMENT ON TABLE holder IS 'How much of an asset lies in the unspent outputs of an address; no row for none.';
CREATE INDEX holder_quantity ON holder (asset_id, quantity, address_id);

CREATE TABLE policy_holder (
    policy_id  integer NOT NULL,
    address_id integer NOT NULL,
    quantity   numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (policy_id, address_id)
);
COMMENT ON TABLE policy_holder IS 'The same over all assets of a policy.';
CREATE INDEX policy_holder_quantity ON policy_holder (policy_id, quantity, address_id);

CREATE INDEX holder_opening ON holder (asset_id, quantity, address_id) WHERE opens_bucket(address_id);
CREATE INDEX policy_holder_opening ON policy_holder (policy_id, quantity, address_id) WHERE opens_bucket(address_id);

CREATE TABLE holder_bucket (
    asset_id        integer NOT NULL,
    lowest_quantity numeric NOT NULL,
    lowest_address  integer NOT NULL,
    holders         integer NOT NULL,
    PRIMARY KEY (asset_id, lowest_quantity, lowest_address)
);
COMMENT ON TABLE holder_bucket IS
    'How many holders there are from one with opens_bucket to the next, for lists with 4 such or more: deep pages are found by it.';
COMMENT ON COLUMN holder_bucket.lowest_address IS 'The address_id of the holder; 0 in the first bucket, which begins before all holders.';

CREATE TABLE policy_holder_bucket (
    policy_id       integer NOT NULL,
    lowest_quantity numeric NOT NULL,
    lowest_address  integer NOT NULL,
    holders         integer NOT NULL,
    PRIMARY KEY (policy_id, lowest_quantity, lowest_address)
);
COMMENT ON TABLE policy_holder_bucket IS 'The same for policy_holder.';

-- What describes user tokens: the datums beside reference tokens (CIP-68) -------------------------------------------------

CREATE TABLE reference_output (
    asset_id     integer NOT NULL,
    tx_id        bigint  NOT NULL,
    output_index integer NOT NULL,
    spent_tx_id  bigint,
    datum_hash   bytea,
    datum        bytea,
    PRIMARY KEY (tx_id, output_index, asset_id)
);
COMMENT ON TABLE reference_output IS 'Outputs that hold a reference token (CIP-68, label 100), spent or not, one row per token.';
COMMENT ON COLUMN reference_output.datum IS 'The inline datum, as CBOR; null where there is none.';
CREATE INDEX reference_output_unspent ON reference_output (asset_id, tx_id, output_index) WHERE spent_tx_id IS NULL;
CREATE INDEX reference_output_spent ON reference_output (spent_tx_id) WHERE spent_tx_id IS NOT NULL;

CREATE TABLE datum (
    hash  bytea  PRIMARY KEY,
    tx_id bigint NOT NULL,
    body  bytea  NOT NULL
);
COMMENT ON TABLE datum IS 'Datums in witnesses that begin like CIP-68 metadata; others are not kept.';
COMMENT ON COLUMN datum.tx_id IS 'The first transaction whose witnesses had it.';
CREATE INDEX datum_tx_id ON datum USING brin (tx_id) WITH (autosummarize = on);

-- What certificates said about stake and pools. tx_id -1: in the genesis; place: the order within a transaction -----------

CREATE TABLE stake_event (
    tx_id    bigint   NOT NULL,
    stake_id integer  NOT NULL,
    pool_id  integer,
    epoch_no integer  NOT NULL,
    place    smallint NOT NULL,
    kind     text     NOT NULL CHECK (kind IN ('registration', 'deregistration', 'delegation', 'reaping')),
    PRIMARY KEY (stake_id, tx_id, place),
    CHECK ((pool_id IS NOT NULL) = (kind = 'delegation'))
);
COMMENT ON TABLE stake_event IS 'The life of stake credentials; all but a delegation leave one without a pool.';
COMMENT ON COLUMN stake_event.kind IS
    'reaping: the pool was taken away at the epoch''s first slot, whose first tx_id the row has, before all of its transactions.';
CREATE INDEX stake_event_tx_id ON stake_event USING brin (tx_id) WITH (autosummarize = on);

CREATE TABLE pool_update (
    tx_id      bigint   NOT NULL,
    pool_id    integer  NOT NULL,
    place      smallint NOT NULL,
    parameters bytea    NOT NULL,
    PRIMARY KEY (pool_id, tx_id, place)
);
COMMENT ON TABLE pool_update IS 'Registrations of pools, the first and all that changed them; parameters are packed by shared/packed.py.';

CREATE TABLE pool_retirement (
    tx_id    bigint   NOT NULL,
    pool_id  integer  NOT NULL,
    epoch_no integer  NOT NULL,
    place    smallint NOT NULL,
    PRIMARY KEY (pool_id, tx_id, place)
);
COMMENT ON TABLE pool_retirement IS
    'Announcements that a pool ends with the first slot of epoch_no. A later one, or a later registration, takes its place.';
CREATE INDEX pool_retirement_epoch_no ON pool_retirement (epoch_no);

CREATE TABLE pool_epoch (
    pool_id      integer NOT NULL,
    epoch_no     integer NOT NULL,
    blocks       integer NOT NULL DEFAULT 0,
    active_stake bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (pool_id, epoch_no),
    CHECK (blocks > 0 OR active_stake > 0)
);
COMMENT ON TABLE pool_epoch IS 'What a pool had and did in an epoch; no row for nothing.';
COMMENT ON COLUMN pool_epoch.active_stake IS
    'Lovelace of its delegators, rewards aside, in the snapshot that counts in this epoch: taken where the one before it began.';
CREATE INDEX pool_epoch_epoch_no ON pool_epoch (epoch_no);

-- What blocks don't say, as last read from the node's ledger: no part of the chain, and never undone ----------------------

CREATE TABLE ledger_state (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    slot_no           bigint  NOT NULL,
    epoch_no          integer NOT NULL,
    next_stake_id     integer,
    complete_epoch_no integer,
    desired_pools     integer,
    reserves          bigint,
    treasury          bigint,
    compared_pools    integer,
    unlike_pools      integer,
    difference        bigint
);
COMMENT ON TABLE ledger_state IS 'Read once in each epoch: at slot_no of epoch_no. Null: the node could not answer.';
COMMENT ON COLUMN ledger_state.next_stake_id IS 'From which on rewards of this epoch have still to be read; null: all are.';
COMMENT ON COLUMN ledger_state.complete_epoch_no IS 'The last epoch of which all rewards were read.';
COMMENT ON COLUMN ledger_state.compared_pools IS
    'How many live stakes were compared with the node''s, how many were not the same, and by how many lovelace in all.';

CREATE TABLE reward (
    stake_id integer PRIMARY KEY,
    slot_no  bigint  NOT NULL,
    lovelace bigint  NOT NULL CHECK (lovelace > 0)
);
COMMENT ON TABLE reward IS 'Reward balances, read at slot_no; no row for none, nor after a withdrawal until it is read again.';

CREATE TABLE reward_due (
    stake_id integer PRIMARY KEY,
    slot_no  bigint  NOT NULL
);
COMMENT ON TABLE reward_due IS 'Accounts whose reward changed, or came to matter, at slot_no: to be read there or later.';

CREATE TABLE pool_reward (
    pool_id  integer NOT NULL,
    epoch_no integer NOT NULL,
    lovelace bigint  NOT NULL,
    PRIMARY KEY (pool_id, epoch_no)
);
COMMENT ON TABLE pool_reward IS 'What rewards add to pool_epoch.active_stake.';

-- Who delegates how much now: outputs and rewards together. Empty in bulk, filled at its end -------------------------------

CREATE FUNCTION delegator_bucket_of(amount bigint, stake_id integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
-- Where a delegator stands in its pool's list, roughly: a lower number comes earlier. Each doubling of the amount has 16
-- buckets; those who have nothing, often many, have one per 8,192 stake_ids.
SELECT CASE WHEN amount <= 0 THEN 1024 + (stake_id >> 13)
            ELSE 1023 - (64 - position(B'1' IN amount::bit(64))) * 16
                 - ((amount << 4 >> (64 - position(B'1' IN amount::bit(64))))::integer & 15)
       END
$$;

CREATE TABLE delegator (
    stake_id integer PRIMARY KEY,
    pool_id  integer NOT NULL,
    bucket   integer NOT NULL GENERATED ALWAYS AS (delegator_bucket_of(amount, stake_id)) STORED,
    amount   bigint  NOT NULL
);
COMMENT ON TABLE delegator IS 'Stake credentials with a pool, each with its balance and reward: amount.';
CREATE INDEX delegator_list ON delegator (pool_id, bucket, amount DESC, stake_id);

CREATE TABLE delegator_bucket (
    pool_id    integer NOT NULL,
    bucket     integer NOT NULL,
    delegators integer NOT NULL,
    lovelace   bigint  NOT NULL,
    PRIMARY KEY (pool_id, bucket)
) WITH (fillfactor = 70);
COMMENT ON TABLE delegator_bucket IS
    'How many delegators, and lovelace, each bucket of a pool''s list holds: its totals, and the way to any offset in it.';
