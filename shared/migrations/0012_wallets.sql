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
