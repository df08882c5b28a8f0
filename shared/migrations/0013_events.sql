-- Version 13: events of what is in no block, webhooks; redeemers under 16 bytes of the hash of their script.

-- == partner ==

CREATE INDEX submitted_tx_ends ON partner.submitted_tx (network_id, invalid_hereafter)
    WHERE invalid_hereafter IS NOT NULL;

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

COMMENT ON COLUMN partner.event.key IS 'The subject that it matched, after a ! if it tells of a notice; of a reset r-.';
COMMENT ON COLUMN partner.event.undone IS
    'Whether there is nothing to undo: it is undone already, undoes another, or tells of what is in no block.';

ALTER TABLE partner.leader ADD COLUMN nodes text NOT NULL DEFAULT '[]';
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

ALTER TABLE partner.idempotency_key DROP CONSTRAINT idempotency_key_issued_to_check;
ALTER TABLE partner.idempotency_key ADD CHECK (issued_to IN ('credential', 'admin_key', 'webhook'));

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
ALTER TABLE partner.usage_hour ADD COLUMN events bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN partner.usage_hour.events IS
    'Events of subscriptions that were delivered: in answers, or acknowledged. Not requests.';
ALTER TABLE partner.usage_hour ADD COLUMN stream_minutes bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN partner.usage_hour.stream_minutes IS
    'Minutes in which streams of events were open, of each stream on its own.';
COMMENT ON TABLE partner.endpoint IS
    'Endpoints that were called with an API key: method and route template. And webhook, whose events are delivered.';

-- == chain ==

-- Keys of scripts -----------------------------------------------------------------------------------------------------

-- The hashes that have an old number, from all that the index knows; of two with the same number, the first. A number
-- without one is filled up with zeros: its script came before the first indexed block.
CREATE TEMP TABLE script_named AS
SELECT DISTINCT ON (prefix) substr(hash, 1, 8) AS prefix, substr(hash, 1, 16) AS script_key
FROM (
    SELECT hash FROM script
    UNION ALL SELECT policy_id FROM policy
    UNION ALL SELECT substr(raw, 2, 28) FROM stake WHERE get_byte(raw, 0) & 16 = 16
    UNION ALL SELECT substr(raw, 2, 28) FROM address WHERE script_no(raw) IS NOT NULL AND credential_no IS NULL
) known
ORDER BY prefix, hash;
CREATE UNIQUE INDEX ON script_named (prefix);
ANALYZE script_named;

CREATE TEMP TABLE redeemer_tx_kept AS
SELECT chunk, coalesce(script_key, int8send(script_no) || '\x0000000000000000') AS script_key, tx_ids
FROM redeemer_tx LEFT JOIN script_named ON prefix = int8send(script_no);
CREATE TEMP TABLE redeemer_tx_staged_kept AS
SELECT coalesce(script_key, int8send(script_no) || '\x0000000000000000') AS script_key, tx_id
FROM redeemer_tx_staged LEFT JOIN script_named ON prefix = int8send(script_no);

DROP FUNCTION script_no(bytea);
DROP FUNCTION redeemer_tx_range(bigint, bigint, bigint);
DROP TABLE redeemer_tx, redeemer_tx_staged;

CREATE FUNCTION script_key(raw bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
-- The key of the script in the payment credential of an address; null for a key, and in Byron.
SELECT CASE WHEN get_byte(raw, 0) & 16 = 16 THEN substr(raw, 2, 16) END
$$;

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
INSERT INTO redeemer_tx (chunk, script_key, tx_ids)
SELECT chunk, script_key, tx_ids FROM redeemer_tx_kept ORDER BY script_key, chunk;

CREATE FUNCTION redeemer_tx_range(of_script_key bytea, lowest bigint, highest bigint)
RETURNS TABLE (seq bigint, tx_id bigint) LANGUAGE sql STABLE AS $$
-- The entries of a script's history from one seq to another.
SELECT (chunk::bigint << 6) + place, tx_id_at(tx_ids, place::integer * 8)
FROM redeemer_tx, generate_series(greatest(lowest - (chunk::bigint << 6), 0),
                                  least(highest - (chunk::bigint << 6), length(tx_ids) / 8 - 1)) AS place
WHERE script_key = of_script_key AND chunk BETWEEN lowest >> 6 AND highest >> 6
$$;

CREATE TABLE redeemer_tx_staged (script_key bytea NOT NULL, tx_id bigint NOT NULL);
COMMENT ON TABLE redeemer_tx_staged IS 'Rows of redeemer_tx in bulk.';
INSERT INTO redeemer_tx_staged SELECT script_key, tx_id FROM redeemer_tx_staged_kept;

-- Rows of transactions name scripts in their extras too, an array under the key "r".
CREATE FUNCTION pg_temp.after_item(data bytea, start integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
-- The position after an item of MessagePack, with everything in it.
DECLARE
    at integer := start; items bigint := 1; code integer; size bigint;
BEGIN
    WHILE items > 0 LOOP
        code := get_byte(data, at);
        items := items - 1;
        size := CASE
            WHEN code IN (196, 204, 208, 217) THEN get_byte(data, at + 1)
            WHEN code IN (197, 218, 220, 222) THEN (get_byte(data, at + 1) << 8) + get_byte(data, at + 2)
            WHEN code IN (198, 219, 221, 223) THEN ('x' || encode(substr(data, at + 2, 4), 'hex'))::bit(32)::bigint
        END;
        items := items + CASE
            WHEN code BETWEEN 128 AND 143 THEN (code & 15) * 2
            WHEN code BETWEEN 144 AND 159 THEN code & 15
            WHEN code IN (220, 221) THEN size
            WHEN code IN (222, 223) THEN size * 2
            ELSE 0
        END;
        at := at + CASE
            WHEN code BETWEEN 160 AND 191 THEN 1 + (code & 31)
            WHEN code IN (196, 217) THEN 2 + size
            WHEN code IN (197, 218) THEN 3 + size
            WHEN code IN (198, 219) THEN 5 + size
            WHEN code IN (204, 208) THEN 2
            WHEN code IN (205, 209, 220, 222) THEN 3
            WHEN code IN (206, 210, 221, 223) THEN 5
            WHEN code IN (207, 211) THEN 9
            ELSE 1
        END;
    END LOOP;
    RETURN at;
END $$;

CREATE FUNCTION pg_temp.key_in(item bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
-- The key in place of an old number, both in MessagePack. Short forms of numbers have no bytes that only say the sign.
DECLARE
    code integer := get_byte(item, 0); number bytea := substr(item, 2); fill text; found bytea;
BEGIN
    IF code = 192 THEN RETURN item; END IF;
    IF length(item) = 1 THEN number := item; END IF;
    fill := CASE WHEN code >= 208 AND get_byte(number, 0) > 127 THEN 'ff' ELSE '00' END;
    number := decode(repeat(fill, 8 - length(number)), 'hex') || number;
    SELECT script_key INTO found FROM script_named WHERE prefix = number;
    RETURN '\xc410'::bytea || coalesce(found, number || '\x0000000000000000');
END $$;

CREATE FUNCTION pg_temp.with_keys(extra bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
-- Extras with keys, null if they name no script: a version byte, then a map of at most 15 fields.
DECLARE
    at integer := 2; items integer; start integer; changed bytea;
BEGIN
    FOR field IN 1 .. get_byte(extra, 1) & 15 LOOP
        IF substr(extra, at + 1, 2) = '\xa172' THEN
            start := at + 2;
            items := get_byte(extra, start) & 15;
            at := start + 1;
            IF get_byte(extra, start) = 220 THEN
                items := (get_byte(extra, start + 1) << 8) + get_byte(extra, start + 2);
                at := start + 3;
            END IF;
            changed := substr(extra, 1, at);
            FOR item IN 1 .. items LOOP
                start := at;
                at := pg_temp.after_item(extra, start);
                changed := changed || pg_temp.key_in(substr(extra, start + 1, at - start));
            END LOOP;
            RETURN changed || substr(extra, at + 1);
        END IF;
        at := pg_temp.after_item(extra, at + 2);
    END LOOP;
    RETURN NULL;
END $$;

UPDATE tx SET extra = changed.extra
FROM (SELECT tx_id, pg_temp.with_keys(extra) AS extra FROM tx WHERE position('\xa172'::bytea IN extra) > 0) changed
WHERE tx.tx_id = changed.tx_id AND changed.extra IS NOT NULL;

DROP FUNCTION pg_temp.with_keys(bytea), pg_temp.key_in(bytea), pg_temp.after_item(bytea, integer);
DROP TABLE script_named, redeemer_tx_kept, redeemer_tx_staged_kept;
