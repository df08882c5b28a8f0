"""Corruptions of an index, each with what `verify` names: a list, for tests and for whoever doubts an index.

SCHEMA differs from schema.sql. ROWS are seen without a node, OF_NODE only with `--against-node`. LOST is for each
index, whichever there are.
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
    "a column too many": ("ALTER TABLE block ADD size integer", "column size of chain_preprod.block"),
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
}
"""Statement, and what is named."""

LOST = """
UPDATE pg_index SET indisready = false WHERE indexrelid = '{index}'::regclass;
WITH gone AS (
    DELETE FROM {table} WHERE ctid = (SELECT max(ctid) FROM {table} WHERE {condition}) RETURNING {columns}
)
INSERT INTO {table} ({columns}) SELECT {columns} FROM gone;
UPDATE pg_index SET indisready = true WHERE indexrelid = '{index}'::regclass
"""
"""Writes a row again, of which the index then has no entry: what an index is like after a lost write."""

ROWS = {
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
    "a reward, in its list, too": (
        "UPDATE reward SET lovelace = lovelace + 5 WHERE stake_no = (SELECT min(stake_no) FROM reward JOIN delegator"
        " USING (stake_no));"
        " UPDATE delegator SET amount = amount + 5 WHERE stake_no = (SELECT min(stake_no) FROM reward JOIN delegator"
        " USING (stake_no));"
        " TRUNCATE delegator_bucket, live_stake;"
        " INSERT INTO delegator_bucket SELECT pool_no, bucket, count(*), sum(amount) FROM delegator GROUP BY 1, 2;"
        " INSERT INTO live_stake (lovelace) SELECT sum(amount) FROM delegator",
        "stake",
    ),
}
"""The same."""
