-- Version 12: what wallets ask for below /blockfrost. Rows of version 11 lack it, so every chain is emptied: its
-- indexer begins again. The counts of rollbacks stay, as metrics must not fall.

-- == partner ==

DELETE FROM partner.verification;

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

ALTER TABLE epoch_parameters ADD nonce bytea;
COMMENT ON COLUMN epoch_parameters.nonce IS
    'The randomness of its leader elections; null if it is neutral, or if the node did not tell it.';

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
