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

CREATE INDEX block_pool ON block (pool_no, slot_no) WHERE pool_no IS NOT NULL;
