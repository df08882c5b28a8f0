-- Version 12: what wallets ask for below /blockfrost. Rows of version 11 lack it, so every chain is emptied: its
-- indexer begins again. The counts of rollbacks stay, as metrics must not fall.

-- == partner ==

DELETE FROM partner.verification;

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

COMMENT ON TABLE partner.usage IS
    'Requests answered per credential and minute (UTC): the sum of the parts. The usage aggregator writes it, and '
    'retention deletes old minutes.';

CREATE OR REPLACE FUNCTION partner.usage_of(of_credential uuid, since timestamptz, until timestamptz)
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
COMMENT ON COLUMN partner.event.undone IS 'Whether there is nothing to undo: it is undone already, or undoes another.';
COMMENT ON COLUMN partner.event.key IS 'The subject that it matched; of a reset r-.';
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

-- == chain ==

DO $$
BEGIN
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') FROM pg_tables
             WHERE schemaname = current_schema() AND tablename <> 'rollback_depth');
END
$$;

-- What blocks and transactions say of themselves --------------------------------------------------------------------

ALTER TABLE block ADD size integer NOT NULL, ALTER pool_no SET NOT NULL;
COMMENT ON COLUMN block.size IS 'Bytes of the body; in Byron of the whole block.';
COMMENT ON COLUMN block.pool_no IS
    'The pool of the issuer''s verification key (also of genesis delegates); in Byron the genesis key of the issuer.';
COMMENT ON TABLE pool IS
    'Stake pools and other block issuers. pool_id is the hash of their cold key (28 bytes), in Byron the first 28 '
    'bytes of the hash of their genesis key.';

CREATE INDEX block_pool ON block (pool_no, slot_no);

ALTER TABLE tx ADD referred bytea;
ALTER TABLE tx ALTER referred SET STORAGE EXTERNAL;
COMMENT ON TABLE tx IS
    'One row per transaction; outputs, inputs, mint, extra, attached and referred are packed by shared/packed.py, with '
    'addresses and assets as their numbers.';
COMMENT ON COLUMN tx.referred IS
    'What it names without spending or making it: its reference inputs, its collateral, and the return of that; null '
    'if there is none of these, and if its scripts failed.';

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

ALTER TABLE tip ADD script_lovelace bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN tip.script_lovelace IS 'The lovelace in unspent outputs that scripts lock.';

ALTER TABLE epoch_parameters ADD nonce bytea;
COMMENT ON COLUMN epoch_parameters.nonce IS
    'The randomness of its leader elections; null if it is neutral, or if the node did not tell it.';

-- Lists of everything ------------------------------------------------------------------------------------------------

CREATE TABLE minted_asset (
    chunk     integer   PRIMARY KEY,
    asset_nos integer[] NOT NULL CHECK (cardinality(asset_nos) BETWEEN 1 AND 64)
);
COMMENT ON TABLE minted_asset IS
    'Assets in the order of their first mints, those of one transaction by policy id and name. 64 in each chunk but '
    'the last, so that a page is a range.';

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

CREATE FUNCTION label_tx_range(of_label_no bigint, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of a label's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM label_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                               least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE label_no = of_label_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE TABLE label_tx_staged (label_no bigint NOT NULL, tx_id bigint NOT NULL);
COMMENT ON TABLE label_tx_staged IS 'Rows of label_tx in bulk.';

CREATE TABLE redeemer_tx (
    script_no bigint  NOT NULL,
    chunk     integer NOT NULL,
    tx_ids    bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (script_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE redeemer_tx IS
    'Transactions with redeemers of a script, in order, an entry for each redeemer, without those whose scripts '
    'failed.';
COMMENT ON COLUMN redeemer_tx.script_no IS 'The first 8 bytes of the hash of the script.';

CREATE FUNCTION redeemer_tx_range(of_script_no bigint, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of a script's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM redeemer_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                  least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE script_no = of_script_no AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE TABLE redeemer_tx_staged (script_no bigint NOT NULL, tx_id bigint NOT NULL);
COMMENT ON TABLE redeemer_tx_staged IS 'Rows of redeemer_tx in bulk.';

DROP TABLE script;

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
-- Payment credentials -------------------------------------------------------------------------------------------------

ALTER TABLE address ADD COLUMN credential_no integer;
COMMENT ON COLUMN address.credential_no IS
    'The address_no of the first address with the same payment credential; null for that one, and in Byron. A payment '
    'credential has the lists of its first address and, in the tables with a credential_no, those of the others.';

CREATE FUNCTION payment_hash(raw bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
-- The hash in the payment credential of an address, of a key or of a script; null for an address of Byron.
SELECT CASE WHEN get_byte(raw, 0) >> 4 <> 8 THEN substr(raw, 2, 28) END
$$;
CREATE INDEX address_credential ON address USING hash (payment_hash(raw)) WHERE credential_no IS NULL;
-- NOTE: a hash index has no entry for a null, so it has none for Byron.

CREATE FUNCTION script_no(raw bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
-- The first 8 bytes of the hash of the script in the payment credential of an address; null for a key, and in Byron.
SELECT CASE WHEN get_byte(raw, 0) & 16 = 16 THEN ('x' || encode(substr(raw, 2, 8), 'hex'))::bit(64)::bigint END
$$;

CREATE TABLE credential_tx (
    credential_no integer NOT NULL,
    chunk         integer NOT NULL,
    tx_ids        bytea   NOT NULL CHECK (length(tx_ids) BETWEEN 8 AND 512 AND length(tx_ids) % 8 = 0),
    PRIMARY KEY (credential_no, chunk)
) WITH (fillfactor = 90);
COMMENT ON TABLE credential_tx IS
    'Transactions of a payment credential that spend from or pay to other addresses than its first, and not to that '
    'one, in order. With those of its first address in address_tx they are all.';

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

ALTER TABLE utxo ADD COLUMN credential_no integer;
COMMENT ON COLUMN utxo.credential_no IS 'That of the address; null at the first address of its payment credential.';
CREATE INDEX utxo_credential ON utxo (credential_no, tx_id, output_index) INCLUDE (lovelace)
    WHERE credential_no IS NOT NULL;
CREATE INDEX utxo_credential_opening ON utxo (credential_no, tx_id, output_index)
    WHERE credential_no IS NOT NULL AND opens_outputs(tx_id, output_index);

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

CREATE TABLE credential_utxo_asset (
    credential_no integer NOT NULL,
    asset_no      integer NOT NULL,
    tx_id         bigint  NOT NULL,
    output_index  integer NOT NULL,
    PRIMARY KEY (credential_no, asset_no, tx_id, output_index)
);
COMMENT ON TABLE credential_utxo_asset IS 'The same for payment credentials with buckets.';

CREATE TABLE credential_holder (
    asset_no      integer NOT NULL,
    credential_no integer NOT NULL,
    quantity      numeric NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (credential_no, asset_no)
);
COMMENT ON TABLE credential_holder IS
    'The quantity of an asset in the unspent outputs of a payment credential at other addresses than its first.';

CREATE INDEX genesis_output_stake ON genesis_output (substr(address, 30, 28)) WHERE get_byte(address, 0) < 64;
CREATE INDEX genesis_output_credential ON genesis_output (substr(address, 2, 28)) WHERE get_byte(address, 0) < 128;

CREATE INDEX dropped_output_address ON dropped_output (address_no) WHERE lovelace > 0;

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

-- Rewards and stakes by epoch ----------------------------------------------------------------------------------------

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
