"""Corruptions of an index, each with what `verify` names: a list, for tests and for whoever doubts an index.

SCHEMA differs from schema.sql, HARMLESS only in what changes no answer. ROWS are seen without a node, OF_NODE only with
`--against-node`. LOST is for each index, and TWICE for each table with a unique one, whichever there are.
"""

SCHEMA = {
    "an index dropped": ("DROP INDEX tx_hash", "index chain_preprod.tx_hash"),
    "an index invalid": (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'address_raw'::regclass",
        "index chain_preprod.address_raw",
    ),
    "an index that is not written": (
        "UPDATE pg_index SET indisready = false WHERE indexrelid = 'stake_raw'::regclass",
        "index chain_preprod.stake_raw",
    ),
    "an index on another column": (
        "DROP INDEX block_block_no; CREATE INDEX block_block_no ON block (slot_no)",
        "index chain_preprod.block_block_no",
    ),
    "an index in another order": (
        "DROP INDEX delegator_list; CREATE INDEX delegator_list ON delegator (pool_no, bucket, amount, stake_no)",
        "index chain_preprod.delegator_list",
    ),
    "an index with another condition": (
        "DROP INDEX mint_named; CREATE INDEX mint_named ON mint (asset_no, seq) WHERE NOT named",
        "index chain_preprod.mint_named",
    ),
    "a unique index that refuses blocks": (
        "CREATE UNIQUE INDEX block_once ON block (block_no)",
        "index chain_preprod.block_once",
    ),
    "a primary key dropped": ("ALTER TABLE utxo DROP CONSTRAINT utxo_pkey", "constraint utxo_pkey"),
    "a unique constraint dropped": (
        "ALTER TABLE genesis_output DROP CONSTRAINT genesis_output_tx_id_key",
        "constraint genesis_output_tx_id_key",
    ),
    "a check dropped": (
        "ALTER TABLE spender DROP CONSTRAINT spender_entries_check",
        "constraint spender_entries_check",
    ),
    "a check that holds for less": (
        "ALTER TABLE holder DROP CONSTRAINT holder_quantity_check;"
        " ALTER TABLE holder ADD CONSTRAINT holder_quantity_check CHECK (quantity > -1)",
        "constraint holder_quantity_check",
    ),
    "a check that was not made": (
        "ALTER TABLE reward DROP CONSTRAINT reward_lovelace_check;"
        " ALTER TABLE reward ADD CONSTRAINT reward_lovelace_check CHECK (lovelace > 0) NOT VALID",
        "constraint reward_lovelace_check",
    ),
    "a check too many": ("ALTER TABLE tx ADD CONSTRAINT small CHECK (size < 16385)", "constraint small"),
    "a foreign key of partners dropped": (
        "ALTER TABLE partner.usage DROP CONSTRAINT usage_credential_id_fkey",
        "constraint usage_credential_id_fkey",
    ),
    "foreign keys of partners not enforced": (
        "ALTER TABLE partner.usage DISABLE TRIGGER ALL",
        "usage_credential_id_fkey",
    ),
    "a column that may be null": ("ALTER TABLE tx ALTER hash DROP NOT NULL", "column hash of chain_preprod.tx"),
    "a column of another type": ("ALTER TABLE epoch ALTER fees TYPE numeric", "column fees of chain_preprod.epoch"),
    "a default changed": ("ALTER TABLE stake ALTER balance SET DEFAULT 1", "column balance of chain_preprod.stake"),
    "a column too many": ("ALTER TABLE block ADD surplus integer", "column surplus of chain_preprod.block"),
    "a column dropped": ("ALTER TABLE asset DROP burn_count", "column burn_count of chain_preprod.asset"),
    "a column that is no longer computed": (
        "ALTER TABLE delegator ALTER bucket DROP EXPRESSION",
        "column bucket of chain_preprod.delegator",
    ),
    "a table dropped": ("DROP TABLE utxo_asset", "utxo_asset"),
    "a table that a crash empties": ("ALTER TABLE datum SET UNLOGGED", "table chain_preprod.datum"),
    "a table that hides rows": ("ALTER TABLE tx ENABLE ROW LEVEL SECURITY", "table chain_preprod.tx"),
    "a table with rows of another": ("CREATE TABLE more () INHERITS (block)", "table chain_preprod.block"),
    "a function of the wrong bits": (
        "CREATE OR REPLACE FUNCTION opens_bucket(number integer) RETURNS boolean LANGUAGE sql IMMUTABLE"
        " AS 'SELECT number & 1023 = 0'",
        "function opens_bucket(integer)",
    ),
    "a function dropped": ("DROP FUNCTION mint_range", "function mint_range"),
    "a function that is planned as volatile": ("ALTER FUNCTION tx_id_at VOLATILE", "function tx_id_at"),
    "a function of partners that counts less": (
        "CREATE OR REPLACE FUNCTION partner.durations_add(a bigint[], b bigint[]) RETURNS bigint[]"
        " LANGUAGE sql IMMUTABLE AS 'SELECT a'",
        "function partner.durations_add",
    ),
    "a function that fits better": (
        "CREATE FUNCTION opens_bucket(number bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false'",
        "function opens_bucket(bigint)",
    ),
    "an aggregate dropped": ("DROP AGGREGATE partner.durations_sum(bigint[])", "aggregate partner.durations_sum"),
    "a view without a condition": (
        "CREATE OR REPLACE VIEW delegation AS"
        " SELECT stake_no, pool_no, active_epoch_no, balance FROM stake WHERE pool_no IS NOT NULL",
        "view chain_preprod.delegation",
    ),
    "a trigger that skips rows": (
        "CREATE TRIGGER skips BEFORE INSERT ON tx FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "trigger skips",
    ),
    "a rule that skips rows": (
        "CREATE RULE skips AS ON INSERT TO datum DO INSTEAD NOTHING",
        "rule skips",
    ),
    "a column in another order of texts": (
        'ALTER TABLE partner.user_account ALTER external_id TYPE text COLLATE "C"',
        "column external_id of partner.user_account",
    ),
    "a default dropped": ("ALTER TABLE stake ALTER balance DROP DEFAULT", "column balance of chain_preprod.stake"),
    "a number that is no longer given": (
        "ALTER TABLE partner.endpoint ALTER endpoint_no DROP IDENTITY",
        "column endpoint_no of partner.endpoint",
    ),
    "a sequence that goes on by two": (
        "ALTER SEQUENCE partner.usage_part INCREMENT 2",
        "sequence partner.usage_part",
    ),
    "a sequence that begins again": ("ALTER SEQUENCE partner.usage_part CYCLE", "sequence partner.usage_part"),
    "a foreign key that is checked later": (
        "ALTER TABLE partner.usage ALTER CONSTRAINT usage_credential_id_fkey DEFERRABLE INITIALLY DEFERRED",
        "constraint usage_credential_id_fkey",
    ),
    "a foreign key that deletes": (
        "ALTER TABLE partner.usage DROP CONSTRAINT usage_credential_id_fkey,"
        " ADD CONSTRAINT usage_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES partner.credential"
        " ON DELETE CASCADE",
        "constraint usage_credential_id_fkey",
    ),
    "a unique constraint that takes null once": (
        "ALTER TABLE partner.user_account DROP CONSTRAINT user_account_admin_key_id_external_id_key,"
        " ADD UNIQUE NULLS NOT DISTINCT (admin_key_id, external_id)",
        "constraint user_account_admin_key_id_external_id_key",
    ),
    "an index of prefixes only": (
        "DROP INDEX partner.audit_log_request;"
        " CREATE INDEX audit_log_request ON partner.audit_log ((details ->> 'request_id') text_pattern_ops)",
        "index partner.audit_log_request",
    ),
    "an index of another kind": (
        "DROP INDEX block_hash; CREATE INDEX block_hash ON block (hash)",
        "index chain_preprod.block_hash",
    ),
    "a function that is null for null": ("ALTER FUNCTION tx_id_at STRICT", "function tx_id_at"),
    "a function that finds other tables": (
        "ALTER FUNCTION address_tx_range SET search_path = partner",
        "function address_tx_range",
    ),
    "an aggregate that ends otherwise": (
        "CREATE FUNCTION partner.nothing(bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS 'SELECT NULL::bigint[]';"
        " CREATE OR REPLACE AGGREGATE partner.durations_sum(bigint[])"
        " (sfunc = partner.durations_add, stype = bigint[], initcond = '{}', finalfunc = partner.nothing)",
        "aggregate partner.durations_sum",
    ),
}
"""Statement, and what is named."""

HARMLESS = {
    "room in the pages of an index": "ALTER INDEX tx_pkey SET (fillfactor = 70)",
    "other ranges of a sparse index": "ALTER INDEX mint_tx_id SET (pages_per_range = 32, autosummarize = off)",
    "room in the pages of a table": "ALTER TABLE utxo SET (fillfactor = 70)",
    "long values elsewhere": "ALTER TABLE tx ALTER outputs SET STORAGE EXTERNAL",
    "values packed otherwise": "ALTER TABLE tx ALTER outputs SET COMPRESSION pglz",
    "more statistics": "ALTER TABLE tx ALTER hash SET STATISTICS 1000; CREATE STATISTICS of_ours ON fee, size FROM tx",
    "vacuum by hand": "ALTER TABLE tx SET (autovacuum_enabled = off)",
    "a table in the order of an index": "ALTER TABLE block CLUSTER ON block_pkey",
    "a comment": "COMMENT ON TABLE tx IS 'ours'",
    "rights": "GRANT SELECT ON ALL TABLES IN SCHEMA chain_preprod TO pg_monitor",
    "an index of the operator": "CREATE INDEX of_ours ON tx (fee)",
}
"""Statements that change no answer, so that nothing is named."""

LOST = """
UPDATE pg_index SET indisready = false WHERE indexrelid = '{index}'::regclass;
WITH gone AS (
    DELETE FROM {table} WHERE ctid = (SELECT max(ctid) FROM {table} WHERE {condition}) RETURNING {columns}
)
INSERT INTO {table} ({columns}) SELECT {columns} FROM gone;
UPDATE pg_index SET indisready = true WHERE indexrelid = '{index}'::regclass
"""
"""Writes a row again, of which the index then has no entry: what an index is like after a lost write."""

TWICE = """
UPDATE pg_index SET indisunique = false WHERE indexrelid = ANY ('{indexes}'::regclass[]);
INSERT INTO {table} ({columns}) SELECT {columns} FROM {table} ORDER BY ctid DESC LIMIT 1;
UPDATE pg_index SET indisunique = true WHERE indexrelid = ANY ('{indexes}'::regclass[])
"""
"""Writes a row twice, into each unique index, too: what a table is like after an index was broken."""

ROWS = {
    "a reward, in its list, too": (
        "UPDATE reward SET lovelace = lovelace + 5 WHERE stake_no = (SELECT min(stake_no) FROM reward JOIN delegator"
        " USING (stake_no));"
        " UPDATE delegator SET amount = amount + 5 WHERE stake_no = (SELECT min(stake_no) FROM reward JOIN delegator"
        " USING (stake_no));"
        " TRUNCATE delegator_bucket, live_stake;"
        " INSERT INTO delegator_bucket SELECT pool_no, bucket, count(*), sum(amount) FROM delegator GROUP BY 1, 2;"
        " INSERT INTO live_stake (lovelace) SELECT sum(amount) FROM delegator",
        "reward_epoch of stake_no",
    ),
    "the active stake of an old epoch": (
        "UPDATE pool_epoch SET active_stake = active_stake + 1"
        " WHERE ctid = (SELECT min(ctid) FROM pool_epoch WHERE active_stake > 0)",
        "active_stake of pool",
    ),
    "no active stake in an old epoch": (
        "DELETE FROM pool_epoch WHERE ctid = (SELECT min(ctid) FROM pool_epoch WHERE active_stake > 0 AND blocks = 0)",
        "active_stake of pool",
    ),
    "rewards read in the epoch before": (
        "UPDATE ledger_state SET complete_epoch_no = complete_epoch_no - 1",
        "complete_epoch_no of ledger_state",
    ),
    "rewards never read": (
        "UPDATE ledger_state SET complete_epoch_no = NULL",
        "complete_epoch_no of ledger_state",
    ),
    "rewards read from an account that is not there": (
        "UPDATE ledger_state SET next_stake_no = 1000000, complete_epoch_no = epoch_no - 1",
        "next_stake_no of ledger_state",
    ),
    "rewards to read again after a later epoch's were": (
        "UPDATE ledger_state SET next_stake_no = 1, complete_epoch_no = epoch_no + 1",
        "complete_epoch_no of ledger_state",
    ),
    "a reading in another epoch": ("UPDATE ledger_state SET epoch_no = epoch_no + 1", "epoch_no of ledger_state"),
    "a reading that no rollback has undone": ("UPDATE ledger_state SET epoch_no = -1", "epoch_no of ledger_state"),
    "a rollback more": ("UPDATE rollback_depth SET rollbacks = rollbacks + 1", "rollbacks of up to 20 blocks"),
    "a rollback of a block more": ("UPDATE rollback_depth SET blocks = blocks + 1", "rollbacks of up to 20 blocks"),
    "a rollback that is deeper than its bound": (
        "UPDATE rollback_depth SET last_blocks = blocks_at_most + 1, blocks = blocks_at_most + 1",
        "rollbacks of up to 20 blocks",
    ),
    "a rollback of no known bound": (
        "UPDATE rollback_depth SET blocks_at_most = 21",
        "rollbacks of up to 21 blocks",
    ),
    "a rollback tomorrow": (
        "UPDATE rollback_depth SET last_at = now() + interval '1 day'",
        "rollbacks of up to 20 blocks",
    ),
    "the stakes of two pools, with the same sum": (
        "WITH two AS (SELECT epoch_no, a.pool_no AS low, b.pool_no AS high FROM pool_epoch a"
        " JOIN pool_epoch b USING (epoch_no) WHERE a.active_stake > 0 AND a.active_stake < b.active_stake"
        " ORDER BY epoch_no, low, high LIMIT 1)"
        " UPDATE pool_epoch p SET active_stake = o.active_stake FROM two, pool_epoch o"
        " WHERE p.epoch_no = two.epoch_no AND o.epoch_no = two.epoch_no"
        " AND (p.pool_no, o.pool_no) IN ((low, high), (high, low))",
        "active_stake of pool",
    ),
    "the balances of two accounts, with the same sum": (
        "UPDATE stake s SET balance = o.balance FROM stake o,"
        " (SELECT min(stake_no) AS low, max(stake_no) AS high FROM stake WHERE balance > 0) two"
        " WHERE (s.stake_no, o.stake_no) IN ((low, high), (high, low))",
        "balance of stake credential",
    ),
    "the quantities of two holders, with the same sum": (
        "WITH two AS (SELECT asset_no, a.address_no AS low, b.address_no AS high"
        " FROM holder a JOIN holder b USING (asset_no)"
        " WHERE a.quantity < b.quantity LIMIT 1)"
        " UPDATE holder h SET quantity = o.quantity FROM two, holder o WHERE h.asset_no = two.asset_no"
        " AND o.asset_no = two.asset_no AND (h.address_no, o.address_no) IN ((low, high), (high, low))",
        "held by",
    ),
    "the fees of two transactions of an epoch, with the same sum": (
        "WITH two AS (SELECT min(tx_id) AS low, max(tx_id) AS high FROM tx WHERE fee > 0"
        " AND tx_id >> 16 > (SELECT max(slot_no) - 400000 FROM block))"
        " UPDATE tx SET fee = o.fee + 1 - 2 * (tx.tx_id = low)::integer FROM two, tx o"
        " WHERE tx.tx_id IN (low, high) AND o.tx_id = tx.tx_id",
        "leaves",
    ),
    "histories of two addresses": (
        "WITH two AS (SELECT min(address_no) AS low, max(address_no) AS high FROM address_tx WHERE chunk = 0)"
        " UPDATE address_tx a SET tx_ids = o.tx_ids FROM two, address_tx o WHERE a.chunk = 0 AND o.chunk = 0"
        " AND (a.address_no, o.address_no) IN ((low, high), (high, low))",
        "address_tx of",
    ),
    "spenders of two slots": (
        "WITH two AS (SELECT min(slot_no) AS low, max(slot_no) AS high FROM spender)"
        " UPDATE spender s SET entries = o.entries FROM two, spender o"
        " WHERE (s.slot_no, o.slot_no) IN ((low, high), (high, low))",
        "spender of output",
    ),
    "a delegator counted in the next bucket": (
        "WITH two AS (SELECT pool_no, min(bucket) AS low, max(bucket) AS high FROM delegator_bucket GROUP BY pool_no"
        " HAVING count(*) > 1 LIMIT 1)"
        " UPDATE delegator_bucket b SET delegators = delegators + 2 * (bucket = low)::integer - 1 FROM two"
        " WHERE b.pool_no = two.pool_no AND bucket IN (low, high)",
        "delegators with",
    ),
    "an output of the next index": (
        "UPDATE utxo SET output_index = output_index + 1 WHERE ctid = (SELECT max(ctid) FROM utxo)",
        "utxo ",
    ),
    "a transaction of the next block": (
        "UPDATE tx SET tx_id = (SELECT min(slot_no) FROM block WHERE slot_no > tx_id >> 16 AND tx_count = 0) << 16"
        " WHERE tx_id = (SELECT min(tx_id) FROM tx)",
        "tx_count of block",
    ),
    "a rollback forged": (
        "INSERT INTO rollback_depth VALUES (500, 1, 3000, now(), 3000)",
        "rollbacks of up to 500 blocks",
    ),
}
"""Statement, and what is named."""

OF_NODE = {
    "a fee and its sum": (
        "UPDATE tx SET fee = fee - 1 WHERE tx_id = (SELECT max(tx_id) FROM tx);"
        " UPDATE epoch SET fees = fees - 1 WHERE epoch_no = (SELECT max(epoch_no) FROM epoch)",
        "fee of tx",
    ),
    "the size of a transaction": (
        "UPDATE tx SET size = size + 1 WHERE tx_id = (SELECT max(tx_id) FROM tx)",
        "size of tx",
    ),
    "the hash of a block": (
        "UPDATE block SET hash = set_byte(hash, 3, get_byte(hash, 3) # 1) WHERE block_no = 200",
        "hash of block",
    ),
    "the reserves": ("UPDATE ledger_state SET reserves = reserves - 1", "reserves"),
    "the treasury": ("UPDATE ledger_state SET treasury = treasury + 1", "treasury"),
    "the number of pools": ("UPDATE ledger_state SET desired_pools = desired_pools + 1", "desired_pools"),
    "the makers of two blocks of an epoch": (
        "UPDATE block b SET pool_no = o.pool_no FROM block o, (SELECT a.slot_no AS low, b.slot_no AS high FROM block a"
        " JOIN block b ON b.block_no BETWEEN a.block_no + 1 AND a.block_no + 5 AND b.pool_no <> a.pool_no"
        " AND (a.slot_no - 86400) / 432000 = (b.slot_no - 86400) / 432000 ORDER BY a.slot_no DESC LIMIT 1) two"
        " WHERE (b.slot_no, o.slot_no) IN ((low, high), (high, low))",
        "pool_no of block",
    ),
    "the sizes of two transactions": (
        "UPDATE tx t SET size = o.size FROM tx o, (SELECT max(a.tx_id) AS high, min(a.tx_id) AS low FROM tx a) two"
        " WHERE (t.tx_id, o.tx_id) IN ((low, high), (high, low))",
        "size of tx",
    ),
}
"""The same."""
