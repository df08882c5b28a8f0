-- Version 9: the vote of an account as the ledger has it, representatives, comparisons with the node's ledger, and the
-- outputs that an era drops. Rows of version 8 lack what these tables need, so every chain is emptied: its indexer
-- begins again. The counts of rollbacks stay, as metrics must not fall.

-- == partner ==

DELETE FROM partner.verification;

-- == chain ==

DO $$
BEGIN
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') FROM pg_tables
             WHERE schemaname = current_schema() AND tablename <> 'rollback_depth');
END
$$;

DROP TABLE vote_delegation;

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

ALTER TABLE ledger_state DROP COLUMN compared_pools, DROP COLUMN pools_stake_mismatch, DROP COLUMN difference;

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
COMMENT ON TABLE reward IS
    'Rewards of reward accounts, as read at slot_no, less what was withdrawn since. No row for a reward of 0.';

CREATE TABLE era_start (
    slot_no bigint PRIMARY KEY,
    era     text   NOT NULL UNIQUE
);
COMMENT ON TABLE era_start IS
    'The first indexed block of each era, under Ogmios'' name. Byron, the first, has no row: without one, the tip is '
    'in Byron.';

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
