"""`verify` finds an error in each column and each row of every table of a chain."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from devnet.blocks import Chain
from devnet.generator import Generated, options_of
from devnet.server import NodeServer
from indexer.verify import moments
from indexer.verify.tables import catalog, indexes
from shared import packed
from shared.ledger import AddressNo, AssetNo
from shared.network import PREPROD
from tests.chain import corruptions
from tests.chain.harness import Ledgerline, Node, until
from tests.chain.in_turns import InTurns, in_turns
from tests.chain.planted import against, planted, within

# Errors that neither history nor the node reveals, and the reason why they are harmless. "X, deleted" is a row of X.
EXEMPT = {
    "rollback_depth, deleted": "counts what has happened on the way to this chain, for status and metrics",
    "tip.phase": "what is not live is not verified, and the command says so with status 1",
    "tip, deleted": "the same: nothing is indexed",
    "tip.numbering": "names a set of cached numbers: another one is a new, empty cache",
    "ledger_state.slot_no": "when figures were read: at any other slot of the epoch they are the same",
    "ledger_state, deleted": "an index without one has not read it yet, and the indexer does",
    "node_comparison": "what a comparison found that can't be made again, as the ledger has moved on",
}
# The rows of a table that verify compares: snapshots that most answers show now or in the next epoch, since neither
# history nor the node has older ones (verify/tables/stake.py), and numbers in use (a rollback leaves unused ones).
TELLING = {
    "address": "address_no IN (SELECT address_no FROM address_tx UNION SELECT address_no FROM utxo)",
    "asset": "first_tx_id IS NOT NULL",
    "policy": "asset_count > 0",
    "pool": "pool_no IN (SELECT pool_no FROM block)",
    "stake": "stake_no IN (SELECT stake_no FROM stake_event)",
    "delegator_bucket": "delegators > 0",
    "epoch_parameters": "epoch_no = (SELECT max(epoch_no) FROM epoch_parameters)",
    "pool_reward": "epoch_no = (SELECT max(epoch_no) FROM pool_reward)",
    "stake_snapshot": "epoch_no = (SELECT max(epoch_no) FROM stake_snapshot)",
    "reward_epoch": "epoch_no = (SELECT max(epoch_no) FROM reward_epoch)",
    "reward_round": "epoch_no = (SELECT max(epoch_no) FROM reward_round)",
}
pytestmark = pytest.mark.asyncio(loop_scope="module")

PARTS = 8
"""The number of tests among which the tables are divided, so that each test is short."""
PLACES = (0.3, 0.9)


class Paying(Node):
    """A node whose accounts hold rewards."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(chain)
        self.server = NodeServer(chain)


@pytest.fixture(scope="module")
def indexed(new_ledgerline: Callable[[], Ledgerline]) -> Iterator[tuple[Ledgerline, str]]:
    """A chain of all eras with blocks of all kinds, which has forked, and the node that it came from."""
    chain = Generated(options_of("preprod", seed=3, blocks_per_epoch=16, density=5, plain=0.2), 330)
    ledgerline = new_ledgerline()
    with Paying(chain) as node:
        with ledgerline.indexing("preprod", node.url) as process:
            ledgerline.reaches("preprod", node.tip(), process)
            chain = chain.fork(len(chain.blocks) - 20, 5, 24)
            node.do(node.server.switch, chain)
            ledgerline.reaches("preprod", node.tip(), process)
            read = "SELECT 1 FROM ledger_state WHERE next_stake_no IS NULL AND NOT EXISTS (SELECT FROM reward_due)"
            until("all rewards are read", lambda: ledgerline.rows("preprod", read))
            assert process.stop() == 0
        yield ledgerline, node.url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(indexed: tuple[Ledgerline, str]) -> AsyncIterator[InTurns]:
    """A connection that knows what `verify` reads in the index, which is correct, and no test changes it."""
    connection = await in_turns(indexed[0].database_url, PREPROD)
    assert await connection.learn(partial(within, network=PREPROD)) == {}
    assert await connection.learn(partial(against, network=PREPROD, url=indexed[1])) == {}
    yield connection
    await connection.close()


async def test_a_correct_index_has_no_differences(db: InTurns, indexed: tuple[Ledgerline, str]) -> None:
    await db.execute("CREATE TEMPORARY TABLE one (one integer)")
    assert await planted(db, "INSERT INTO one VALUES (1)", partial(within, network=PREPROD)) == {}
    again = "UPDATE ledger_state SET next_stake_no = 0"  # after a rollback from the next epoch, in which they were read
    assert await planted(db, again, partial(within, network=PREPROD)) == {}
    assert await against(db, PREPROD, indexed[1]) == {}


async def test_an_index_that_may_not_be_used_yet_is_no_difference(db: InTurns) -> None:
    """Postgres uses no index that was built beside a change of its table until older transactions have ended."""
    built = (
        "UPDATE stake SET address_count = address_count WHERE stake_no = 1;"
        " DROP INDEX stake_raw; CREATE INDEX stake_raw ON stake USING hash (raw)"
    )

    async def found(db: InTurns) -> dict[str, list[str]]:
        assert await db.fetchval("SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'stake_raw'::regclass")
        return await within(db, PREPROD)

    assert await planted(db, built, found) == {}


# Wrong values by type; if the database refuses one, the next is used.
WRONG = {
    "int2": ("{0} + 1", "{0} + 30"),
    "int4": ("{0} + 1", "{0} - 1", "{0} + 1000000"),
    "int8": ("{0} + 1", "{0} - 1", "{0} + 1000000"),
    "numeric": ("{0} + 1",),
    "bytea": ("set_byte({0}, length({0}) - 1, get_byte({0}, length({0}) - 1) # 1)",),
    "_int4": ("{0} || 1000001", "{0}[2:] || 1000001"),
    "bool": ("NOT {0}",),
    "text": (
        "CASE {0} WHEN 'registration' THEN 'deregistration' ELSE 'registration' END",
        "CASE {0} WHEN 'reserves' THEN 'treasury' ELSE 'reserves' END",
    ),
    "timestamptz": ("{0} + interval '1 hour'",),
    "uuid": ("gen_random_uuid()",),
    "json": ("'{{}}'",),
}
# Columns that are null in every row of this index.
UNUSED = {
    "mint.large": "UPDATE mint SET large = quantity::numeric + 1, quantity = NULL WHERE mint.ctid = '(0,1)'",
    "ledger_state.next_stake_no": "UPDATE ledger_state SET next_stake_no = 1000000",
}
COLUMNS = """
SELECT relname, attname, typname, attnotnull
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
  AND attgenerated = ''
ORDER BY relname, attnum
"""
# Rows of tables that a chain of this length leaves empty.
FILLED = {
    "asset_bucket": "INSERT INTO asset_bucket SELECT policy_no, 0, '', 5 FROM policy LIMIT 1",
    "holder_bucket": "INSERT INTO holder_bucket SELECT asset_no, 1, 1, 5 FROM asset LIMIT 1",
    "policy_holder_bucket": "INSERT INTO policy_holder_bucket SELECT policy_no, 1, 1, 5 FROM policy LIMIT 1",
    "account_holder_bucket": "INSERT INTO account_holder_bucket SELECT asset_no, 1, 1, 5 FROM asset LIMIT 1",
    "policy_account_holder_bucket": (
        "INSERT INTO policy_account_holder_bucket SELECT policy_no, 1, 1, 5 FROM policy LIMIT 1"
    ),
    "utxo_bucket": "INSERT INTO utxo_bucket VALUES (1, 1, 1, 5, 5)",
    "account_utxo_bucket": "INSERT INTO account_utxo_bucket VALUES (1, 1, 1, 5, 5)",
    "credential_utxo_bucket": "INSERT INTO credential_utxo_bucket VALUES (1, 1, 1, 5, 5)",
    "utxo_asset": "INSERT INTO utxo_asset VALUES (1, 1, 1, 5)",
    "credential_utxo_asset": "INSERT INTO credential_utxo_asset VALUES (1, 1, 1, 5)",
    "account_utxo_asset": "INSERT INTO account_utxo_asset VALUES (1, 1, 1, 5)",
    "account_withdrawal_staged": "INSERT INTO account_withdrawal_staged VALUES (1, 1, 1)",
    "label_tx_staged": "INSERT INTO label_tx_staged VALUES (1, 1)",
    "redeemer_tx_staged": "INSERT INTO redeemer_tx_staged VALUES ('\\x01', 1)",
    "spender_staged": "INSERT INTO spender_staged VALUES (1, '\\x00')",
    "address_tx_staged": "INSERT INTO address_tx_staged VALUES (1, 1)",
    "asset_tx_staged": "INSERT INTO asset_tx_staged VALUES (1, 1, 1)",
    "mint_staged": "INSERT INTO mint_staged VALUES (1, 1, 1, NULL, false)",
    "balance_staged": "INSERT INTO balance_staged VALUES (1, 1)",
    "holder_staged": "INSERT INTO holder_staged VALUES (1, 1, 1)",
    "address_sent_staged": "INSERT INTO address_sent_staged VALUES (1, 1, 1)",
    "account_credit": "INSERT INTO account_credit SELECT max(tx_id), 5, 1 FROM tx",
    "pool_earning": "INSERT INTO pool_earning SELECT pool_no, 1, 1, 1 FROM pool LIMIT 1",
    "reward_due": "INSERT INTO reward_due SELECT 1000001, slot_no FROM tip",
}


def errors_in(table: str, columns: list[asyncpg.Record]) -> Iterator[tuple[str, list[str]]]:
    """Statements that corrupt a row, by the column or row that they change."""
    if table in FILLED:
        yield table, [FILLED[table]]
        return
    telling = TELLING.get(table, "true")
    for column in columns:
        name = column["attname"]
        if f"{table}.{name}" in UNUSED:
            yield f"{table}.{name}", [UNUSED[f"{table}.{name}"]]
            continue
        wrongs = [wrong.format(name) for wrong in WRONG[column["typname"]]]
        for place in PLACES:
            row = a_row(table, f"{telling} AND {name} IS NOT NULL", place)
            yield f"{table}.{name}", [f"UPDATE {table} SET {name} = {wrong} WHERE {row}" for wrong in wrongs]  # noqa: S608
            if not column["attnotnull"]:
                yield f"{table}.{name}", [f"UPDATE {table} SET {name} = NULL WHERE {row}"]  # noqa: S608
    for place in PLACES:
        yield f"{table}, deleted", [f"DELETE FROM {table} WHERE {a_row(table, telling, place)}"]  # noqa: S608


def a_row(table: str, where: str, place: float) -> str:
    """A condition for one row, at this distance from the first in its table."""
    rows = f"FROM {table} WHERE {where}"
    return f"ctid = (SELECT ctid {rows} ORDER BY ctid LIMIT 1 OFFSET (SELECT floor(count(*) * {place}) {rows}))"


@pytest.mark.parametrize("part", range(PARTS))
async def test_an_error_in_any_column_or_row_of_any_table_is_found(
    db: InTurns, indexed: tuple[Ledgerline, str], part: int
) -> None:
    finds = partial(within, network=PREPROD), partial(against, network=PREPROD, url=indexed[1])
    columns = await db.fetch(COLUMNS)
    every = list(dict.fromkeys(column["relname"] for column in columns))
    tables = every[part::PARTS]
    exempt = {name: name.split(".")[0].split(",")[0] for name in EXEMPT}
    assert set(exempt.values()) <= set(every)
    unseen, touched, seen = [], set(), set()
    for table in tables:
        for name, statements in errors_in(table, [column for column in columns if column["relname"] == table]):
            if table in EXEMPT or name in EXEMPT:
                touched.add(table if table in EXEMPT else name)
                continue
            for statement in statements:
                found = await planted(db, statement, *finds)
                if found is not None:
                    break
            if found == {}:
                unseen.append(statement)
            seen.add(name)
    assert unseen == []
    assert touched == {name for name in EXEMPT if exempt[name] in tables}, (
        "each exemption is of something that is there"
    )
    assert set(tables) == {name.split(".")[0].split(",")[0] for name in seen | touched}


async def test_each_corruption_of_the_schema_is_named(db: InTurns) -> None:
    expected = await catalog.expected(db, PREPROD)
    assert await catalog.described(db, PREPROD) == expected
    unnamed = []
    for name, (statement, said) in corruptions.SCHEMA.items():
        undone = db.transaction()
        await undone.start()
        await db.execute(statement)
        found = catalog.compared(await catalog.described(db, PREPROD), expected)
        if not any(said in str(each) for each in found):
            unnamed.append((name, found))
        await undone.rollback()
    assert unnamed == []


async def test_what_changes_no_answer_is_no_difference(db: InTurns) -> None:
    expected = await catalog.expected(db, PREPROD)
    undone = db.transaction()
    await undone.start()
    for statement in corruptions.HARMLESS.values():
        await db.execute(statement)
        assert catalog.compared(await catalog.described(db, PREPROD), expected) == [], statement
    await undone.rollback()


async def through(db: InTurns, index: indexes.Index) -> indexes.Count:
    """What is found through an index."""
    if index.hashed:
        return await indexes.by_hash(db, index)
    (table,) = [table for table in await indexes._tables.all(db) if table.name == index.of_table]
    (count,) = await indexes.in_order(db, table, [index])
    return count


async def test_a_lost_entry_of_any_index_is_named(db: InTurns) -> None:
    """Of each index with rows: filled ones stand for those that are empty in a chain of this length."""
    unnamed, named = [], 0
    columns = await db.fetch(COLUMNS)
    undone = db.transaction(isolation="repeatable_read")
    await undone.start()
    for statement in (each for each in FILLED.values() if "bucket" in each or "utxo_asset" in each):
        await db.execute(statement)
    async with moments.noting(db) as noted:
        assert (await indexes.check(moments.Moments(db, noted))).result.differences == []
    for index in await indexes._indexes.all(db):
        of_table = [column["attname"] for column in columns if column["relname"] == index.of_table]
        statement = corruptions.LOST.format(
            index=index.name, table=index.of_table, condition=index.condition or "true", columns=", ".join(of_table)
        )
        if not (await through(db, index)).rows:
            continue
        lost = db.transaction()
        await lost.start()
        await db.execute(statement)
        count = await through(db, index)
        if count.found != count.rows - 1:
            unnamed.append((index.name, count))
        await lost.rollback()
        named += 1
    await undone.rollback()
    assert unnamed == []
    assert named > 60


async def test_a_row_twice_under_its_unique_indexes_is_named(db: InTurns) -> None:
    unnamed, named = [], 0
    columns = await db.fetch(COLUMNS)
    unique = await db.fetch(
        "SELECT indrelid::regclass::text AS of_table, array_agg(indexrelid::regclass::text)::text AS indexes"
        " FROM pg_index JOIN pg_class t ON t.oid = indrelid"
        " WHERE indisunique AND relkind = 'r' AND relnamespace = current_schema()::regnamespace GROUP BY 1 ORDER BY 1"
    )
    for table, indexes_of_table in unique:
        of_table = ", ".join(column["attname"] for column in columns if column["relname"] == table)
        if table in EXEMPT or not await db.fetchval(f"SELECT count(*) FROM {table}"):  # noqa: S608
            continue
        statement = corruptions.TWICE.format(table=table, indexes=indexes_of_table, columns=of_table)
        if table == "tip":
            found = await planted(db, statement, partial(within, network=PREPROD))
            assert found == {"tip": ["rows of tip: indexed 2, recomputed 1"]}
            named += 1
            continue
        if not await planted(db, statement, partial(within, network=PREPROD)):
            unnamed.append(table)
        named += 1
    assert unnamed == []
    assert named > 25


@pytest.mark.parametrize("index, table", [("address_raw", "address"), ("tx_hash", "tx")])
async def test_a_lost_entry_is_among_the_differences(db: InTurns, index: str, table: str) -> None:
    columns = ", ".join(column["attname"] for column in await db.fetch(COLUMNS) if column["relname"] == table)
    statement = corruptions.LOST.format(index=index, table=table, condition="true", columns=columns)
    found = await planted(db, statement, partial(within, network=PREPROD))
    assert found and f"rows found through index {index}" in str(found["index"])


@pytest.mark.parametrize("name", corruptions.ROWS)
async def test_a_corruption_of_rows_is_named_without_a_node(db: InTurns, name: str) -> None:
    statement, said = corruptions.ROWS[name]
    found = await planted(db, statement, partial(within, network=PREPROD))
    assert found and said in str(found)


async def test_a_wrong_reward_is_named_against_the_node_too(db: InTurns, indexed: tuple[Ledgerline, str]) -> None:
    statement, _ = corruptions.ROWS["a reward, in its list, too"]
    found = await planted(db, statement, partial(against, network=PREPROD, url=indexed[1]))
    assert any("stake_test1" in difference for differences in (found or {}).values() for difference in differences), (
        found
    )


@pytest.mark.parametrize("name", corruptions.OF_NODE)
async def test_a_corruption_that_only_the_node_shows_is_named_against_it(
    db: InTurns, indexed: tuple[Ledgerline, str], name: str
) -> None:
    statement, said = corruptions.OF_NODE[name]
    assert await planted(db, statement, partial(within, network=PREPROD)) == {}
    found = await planted(db, statement, partial(against, network=PREPROD, url=indexed[1]))
    assert found and said in str(found)


# Typical corruptions: a statement and the text of its difference.
NAMED = {
    "pool hashes swapped": (
        "UPDATE pool SET pool_id = other.pool_id FROM pool other"
        " WHERE pool.pool_no IN (1, 2) AND other.pool_no = 3 - pool.pool_no",
        "pool",
    ),
    "parameters of another update": (
        "UPDATE pool_update u SET parameters = (SELECT parameters FROM pool_update o WHERE o.parameters <> u.parameters"
        " LIMIT 1) WHERE ctid = (SELECT ctid FROM pool_update LIMIT 1)",
        "certificate of pool_update",
    ),
    "a retirement moved by an epoch": (
        "UPDATE pool_retirement SET epoch_no = epoch_no + 1 WHERE ctid = (SELECT max(ctid) FROM pool_retirement)",
        "pool_retirement",
    ),
    "a registration deleted": (
        "DELETE FROM stake_event WHERE ctid = (SELECT max(ctid) FROM stake_event WHERE kind = 'registration')",
        "stake_event",
    ),
    "a deregistration deleted": (
        "DELETE FROM stake_event WHERE ctid = (SELECT min(ctid) FROM stake_event WHERE kind = 'deregistration')",
        "stake_no",
    ),
    "a delegation deleted": (
        "DELETE FROM stake_event WHERE ctid = (SELECT min(e.ctid)"
        " FROM stake_event e JOIN stake_event later USING (stake_no)"
        " WHERE e.kind = 'delegation' AND later.kind = 'delegation' AND later.tx_id > e.tx_id)",
        "stake_event",
    ),
    "a datum of another asset": (
        "UPDATE reference_output r SET datum_hash = (SELECT datum_hash FROM reference_output o"
        " WHERE o.datum_hash <> r.datum_hash LIMIT 1)"
        " WHERE ctid = (SELECT min(ctid) FROM reference_output WHERE datum_hash IS NOT NULL)",
        "datum_hash of reference_output",
    ),
    "a datum that nobody showed": (
        "INSERT INTO datum (hash, tx_id, body)"
        " SELECT decode('4f9d2f8ae9f8ebd2ff7ac9b2ff1b9c1ea29e8ac12e4dd2ee2d8f7d3cc6d4ee2d', 'hex'),"
        " min(tx_id), '\\x01' FROM tx",
        "datum",
    ),
    "a datum stored twice": ("INSERT INTO datum SELECT * FROM datum LIMIT 1", "datum"),
    "a script in another language": (
        "UPDATE script SET language = 3 - language WHERE ctid = (SELECT min(ctid) FROM script WHERE language > 0)",
        "hash of script",
    ),
    # Of the scripts that no output carries, and of those that one does: history alone finds the latter.
    "a script that a later transaction showed first": (
        "UPDATE script SET tx_id = (SELECT max(tx_id) FROM tx) WHERE ctid = (SELECT min(s.ctid) FROM script s"
        " WHERE NOT EXISTS (SELECT FROM tx WHERE position(s.hash IN attached) > 0))",
        "seq of script",
    ),
    "a script of an output that a later transaction showed first": (
        "UPDATE script SET tx_id = (SELECT max(tx_id) FROM tx) WHERE ctid = (SELECT min(s.ctid) FROM script s"
        " WHERE EXISTS (SELECT FROM tx WHERE position(s.hash IN attached) > 0))",
        "a row by tx_id",
    ),
    "a reference script that an output lacks": (
        "UPDATE tx SET attached = NULL WHERE tx_id = (SELECT max(tx_id) FROM tx WHERE attached IS NOT NULL"
        " AND tx_id NOT IN (SELECT tx_id FROM reference_output))",
        "script_hash of script_output",
    ),
    "a genesis output with a lovelace more": (
        "UPDATE genesis_output SET lovelace = lovelace + 1 WHERE tx_hash = (SELECT max(tx_hash) FROM genesis_output)",
        "#0",
    ),
    "a genesis output's place among them": (
        "UPDATE genesis_output SET tx_id = tx_id * 100 WHERE tx_hash = (SELECT max(tx_hash) FROM genesis_output)",
        "tx_id of the genesis output",
    ),
    "an unspent output that was spent": (
        "UPDATE spender SET entries = substr(entries, 13)"
        " WHERE slot_no = (SELECT max(slot_no) FROM spender WHERE length(entries) > 12)",
        "spender of output",
    ),
    "block hashes swapped": (
        "UPDATE block SET hash = (SELECT hash FROM block o WHERE o.block_no = 301 - block.block_no)"
        " WHERE block_no IN (150, 151)",
        "hash of block",
    ),
    "transaction hashes swapped": (
        "WITH last AS (SELECT tx_id, hash FROM tx WHERE tx_id IN (SELECT tx_id FROM tx ORDER BY tx_id DESC LIMIT 2))"
        " UPDATE tx SET hash = o.hash FROM last o WHERE tx.tx_id IN (SELECT tx_id FROM last) AND o.tx_id <> tx.tx_id",
        "hash of tx",
    ),
    "addresses swapped": (
        "UPDATE address SET raw = other.raw, stake_no = other.stake_no FROM address other"
        " WHERE address.address_no IN (1, 2) AND other.address_no = 3 - address.address_no",
        "of tx",
    ),
    "names of assets swapped": (
        "UPDATE asset SET name = other.name FROM asset other"
        " WHERE asset.asset_no IN (1, 2) AND other.asset_no = 3 - asset.asset_no",
        "fingerprint of asset_no",
    ),
    "a fee of a lovelace less, and the sum that contains it": (
        "WITH less AS (UPDATE tx SET fee = fee - 1 WHERE tx_id = (SELECT max(tx_id) FROM tx))"
        " UPDATE epoch SET fees = fees - 1 WHERE epoch_no = (SELECT max(epoch_no) FROM epoch)",
        "fee of tx",
    ),
    "a fee of a lovelace more": (
        "UPDATE tx SET fee = fee + 1 WHERE tx_id = (SELECT max(tx_id) FROM tx)",
        "leaves: indexed -1, recomputed 0",
    ),
    "reserves": ("UPDATE ledger_state SET reserves = reserves - 1", "reserves: indexed"),
    "a reward and the list that shows it": (
        "WITH more AS (UPDATE reward SET lovelace = lovelace + 1 WHERE stake_no = (SELECT max(stake_no) FROM delegator"
        " JOIN reward USING (stake_no)) RETURNING stake_no),"
        " list AS (UPDATE delegator SET amount = amount + 1 FROM more"
        " WHERE delegator.stake_no = more.stake_no RETURNING pool_no, bucket),"
        " total AS (UPDATE live_stake SET lovelace = lovelace + 1)"
        " UPDATE delegator_bucket b SET lovelace = lovelace + 1 FROM list"
        " WHERE b.pool_no = list.pool_no AND b.bucket = list.bucket",
        "stake_test1",
    ),
}


@pytest.mark.parametrize("name", NAMED)
async def test_an_error_that_changes_answers_is_named(db: InTurns, indexed: tuple[Ledgerline, str], name: str) -> None:
    statement, said = NAMED[name]
    finds = partial(within, network=PREPROD), partial(against, network=PREPROD, url=indexed[1])
    found = await planted(db, statement, *finds)
    assert found is not None
    assert any(said in difference for differences in found.values() for difference in differences), found


CERTIFIED = ("parameters of another update", "a retirement moved by an epoch", "a delegation deleted")


@pytest.mark.parametrize("name", CERTIFIED)
async def test_an_error_in_a_change_by_a_certificate_is_found_from_history_alone(db: InTurns, name: str) -> None:
    found = await planted(db, NAMED[name][0], partial(within, network=PREPROD))
    assert found is not None
    assert any("of tx_id" in difference for difference in found["certificates"]), found


def _naming(*outputs: packed.Referred, returned: packed.Returned | None = None) -> str:
    """A transaction names these outputs, and this return of its collateral."""
    said = packed.pack_referred(packed.References([*outputs], [], returned))
    assert said is not None, "it names something"
    last = "(SELECT max(tx_id) FROM tx WHERE referred IS NOT NULL)"
    return f"UPDATE tx SET referred = '\\x{said.hex()}' WHERE tx_id = {last}"  # noqa: S608 - ours


# Errors that only history shows, and the check that reports each.
WITHOUT_NODE = {
    "a reference token without its datum": (
        "UPDATE reference_output SET datum_hash = NULL"
        " WHERE ctid = (SELECT max(ctid) FROM reference_output WHERE datum_hash IS NOT NULL)",
        "attached",
    ),
    "the datum of another output": (
        "UPDATE reference_output SET datum_hash = sha256('') WHERE ctid = (SELECT max(ctid) FROM reference_output)",
        "attached",
    ),
    "outputs that carry nothing any more": (
        "UPDATE tx SET attached = NULL WHERE tx_id = (SELECT max(tx_id) FROM reference_output"
        " WHERE datum_hash IS NOT NULL)",
        "attached",
    ),
    "no inline datums": ("DELETE FROM datum", "attached"),
    "no reference scripts": ("DELETE FROM script", "attached"),
    "an output that no transaction has made": (_naming((1 << 16, 0)), "referred"),
    "an output of its own": (_naming((1 << 60, 0)), "referred"),
    "an output before the first block": (_naming((bytes(32), 0)), "referred"),
    "a return to none of its outputs": (_naming(returned=packed.Returned(60_000, 1)), "referred"),
    "attachments that can't be read": (
        "UPDATE tx SET attached = '\\x0000' WHERE tx_id = (SELECT max(tx_id) FROM tx)",
        "tx",
    ),
    "a snapshot of an epoch to come": (
        "INSERT INTO pool_epoch (pool_no, epoch_no, active_stake)"
        " SELECT pool_no, max(epoch_no) + 2, 1 FROM pool_epoch GROUP BY pool_no",
        "pool_epoch",
    ),
    "no policies": ("DELETE FROM policy WHERE policy_no = (SELECT max(policy_no) FROM asset)", "fingerprint"),
    "an empty bucket of a short list of holders": (
        "INSERT INTO holder_bucket SELECT asset_no, 0, 0, 0 FROM asset LIMIT 1",
        "holder_bucket",
    ),
    "an empty bucket of a short list of assets": (
        "INSERT INTO asset_bucket SELECT policy_no, '-Infinity', '', 0 FROM policy LIMIT 1",
        "asset_bucket",
    ),
    "a supply with decimals": (
        "UPDATE asset SET supply = (supply::text || '.00')::numeric WHERE ctid = (SELECT max(ctid) FROM asset)",
        "asset",
    ),
    "no reward account of a pool": (
        "DELETE FROM pool_reward_account WHERE ctid = (SELECT max(ctid) FROM pool_reward_account WHERE tx_id >= 0)",
        "certificates",
    ),
    "the highest number for an address": (
        "UPDATE address SET address_no = 2147483647 WHERE address_no = (SELECT max(address_no) FROM address)",
        "address",
    ),
    "the highest number for the account of an address": (
        "UPDATE address SET stake_no = 2147483647 WHERE address_no = (SELECT max(address_no) FROM address"
        " WHERE stake_no IS NOT NULL)",
        "address",
    ),
    "NaN as the output of an epoch": (
        "UPDATE epoch SET output = 'NaN' WHERE epoch_no = (SELECT max(epoch_no) FROM epoch)",
        "epoch",
    ),
    "an address with one byte": (
        "UPDATE address SET raw = '\\x61' WHERE address_no = (SELECT address_no FROM utxo ORDER BY tx_id DESC LIMIT 1)",
        "address",
    ),
    "a quantity with decimals": (
        "UPDATE holder SET quantity = (quantity::text || '.00')::numeric WHERE ctid = (SELECT max(ctid) FROM holder)",
        "holder",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_NODE)
async def test_an_error_is_found_from_history_alone(db: InTurns, name: str) -> None:
    statement, check = WITHOUT_NODE[name]
    found = await planted(db, statement, partial(within, network=PREPROD))
    assert found is not None
    assert check in found, found


async def test_an_inline_datum_that_appeared_later_is_found_from_history_alone(db: InTurns) -> None:
    shown = {row["hash"]: row["tx_id"] for row in await db.fetch("SELECT hash, tx_id FROM datum")}
    rows = await db.fetch("SELECT tx_id, attached FROM tx WHERE attached IS NOT NULL ORDER BY tx_id")
    inline = next(
        each.datum_hash
        for row in rows
        for each in packed.unpack_attached(row["attached"]).values()
        if each.inline and each.datum_hash and shown[each.datum_hash] == row["tx_id"]
    )
    statement = "UPDATE datum SET tx_id = (SELECT max(tx_id) FROM tx) WHERE hash = $1"
    found = await planted(db, statement, partial(within, network=PREPROD), arguments=(inline,))
    assert found is not None
    assert any(f"datum {inline.hex()}" in said for said in found["attached"]), found


# Values that no ledger has, each packed for a column of the last transaction.
IMPOSSIBLE = {
    "a quantity of 0": ("outputs", packed.pack_outputs(0, [packed.pack_output(AddressNo(1), 5, {AssetNo(1): 0})])),
    "less than no lovelace": ("outputs", packed.pack_outputs(0, [packed.pack_output(AddressNo(1), -1, {})])),
    "more lovelace than a row can hold": (
        "outputs",
        packed.pack_outputs(0, [packed.pack_output(AddressNo(1), 1 << 63, {})]),
    ),
    "nothing minted": ("mint", packed.pack_mint({AssetNo(1): 0})),
    "an unknown type of certificate": ("extra", packed.pack_extra(packed.Extra(certificates=[packed.Certificate(99)]))),
    "an unknown origin of a credential": (
        "extra",
        packed.pack_extra(packed.Extra(certificates=[packed.Certificate(0, stake=b"\x02" + bytes(28))])),
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
async def test_an_impossible_value_is_named(db: InTurns, what: str) -> None:
    column, data = IMPOSSIBLE[what]
    statement = f"UPDATE tx SET {column} = $1 WHERE tx_id = (SELECT max(tx_id) FROM tx)"  # noqa: S608
    found = await planted(db, statement, partial(within, network=PREPROD), arguments=(data,))
    assert found is not None
    assert any(f"{column} of tx" in said for said in found["tx"]), found


@pytest.mark.parametrize(
    "key, other",
    [
        pytest.param(b"\xa1h", b"\xa1z", id="a field with an unknown name"),
        pytest.param(b"\x02", b"\x03", id="an unknown version"),
        pytest.param(b"\xa1h", b"\xa1", id="a byte less"),
    ],
)
async def test_verify_reads_extras_that_nothing_else_reads(db: InTurns, key: bytes, other: bytes) -> None:
    """They belong to a transaction that neither mints nor withdraws, and has no certificate."""
    rows = await db.fetch("SELECT tx_id, extra FROM tx WHERE mint IS NULL AND extra IS NOT NULL ORDER BY tx_id")
    extra = next(
        row
        for row in rows
        if (unpacked := packed.unpack_extra(row["extra"])).invalid_hereafter
        and not (unpacked.withdrawals or unpacked.credits or unpacked.certificates)
    )
    statement = "UPDATE tx SET extra = $2 WHERE tx_id = $1"
    spoiled = extra["extra"].replace(key, other, 1)
    found = await planted(db, statement, partial(within, network=PREPROD), arguments=(extra["tx_id"], spoiled))
    assert found is not None
    assert "tx" in found, found


async def test_a_certificate_that_a_transaction_lacks_is_found_in_history(db: InTurns) -> None:
    rows = await db.fetch("SELECT tx_id, extra FROM tx WHERE extra IS NOT NULL ORDER BY tx_id")
    extras = {row["tx_id"]: packed.unpack_extra(row["extra"]) for row in rows}
    key, extra = next(
        (key, extra)
        for key, extra in extras.items()
        if any(each.type == "stakeDelegation" and each.pool_id for each in extra.certificates)
    )
    spoiled = packed.pack_extra(msgspec.structs.replace(extra, certificates=[]))
    statement = "UPDATE tx SET extra = $2 WHERE tx_id = $1"
    found = await planted(db, statement, partial(within, network=PREPROD), arguments=(key, spoiled))
    assert found is not None
    assert any(f"of tx_id {key}: indexed a row, recomputed none" in said for said in found["certificates"]), found


def resourced(spent: packed.Input, change: Callable[[packed.Output], dict[str, Any]]) -> packed.Input:
    assert spent.source is not None
    return msgspec.structs.replace(spent, source=msgspec.structs.replace(spent.source, **change(spent.source)))


def address_of(spent: packed.Input) -> int | None:
    return None if spent.source is None else spent.source.address_no


# Replacements of the last input of a transaction, from one of an earlier transaction.
INPUTS: dict[str, Callable[[packed.Input, packed.Input], packed.Input]] = {
    "names no transaction": lambda spent, _: msgspec.structs.replace(spent, tx_hash=bytes(32)),
    "names another transaction": lambda spent, other: msgspec.structs.replace(spent, tx_hash=other.tx_hash),
    "names a hash with another last byte": lambda spent, _: msgspec.structs.replace(
        spent, tx_hash=spent.tx_hash[:-1] + bytes([spent.tx_hash[-1] ^ 1])
    ),
    "names another index": lambda spent, _: msgspec.structs.replace(spent, output_index=spent.output_index + 1),
    "is spent already": lambda _, other: other,
    "has a lovelace more": lambda spent, _: resourced(spent, lambda source: {"lovelace": source.lovelace + 1}),
    "has an ada less": lambda spent, _: resourced(spent, lambda source: {"lovelace": source.lovelace - 1_000_000}),
    "is somebody else's": lambda spent, other: resourced(spent, lambda _: {"address_no": address_of(other)}),
    "has an asset": lambda spent, _: resourced(spent, lambda _: {"quantities": {1: 1_000_003}}),
    "has no source": lambda spent, _: msgspec.structs.replace(spent, source=None),
}


@pytest.mark.parametrize("wrong", INPUTS)
async def test_an_input_that_is_not_the_output_it_names_is_found_in_history(db: InTurns, wrong: str) -> None:
    rows = await db.fetch("SELECT tx_id, inputs FROM tx ORDER BY tx_id DESC LIMIT 200 OFFSET 40")
    others = [spent for row in rows[100:] for spent in packed.unpack_inputs(row["inputs"])]
    key, inputs = next((row["tx_id"], packed.unpack_inputs(row["inputs"])) for row in rows if row["inputs"][1] & 15 > 1)
    other = next(each for each in others if address_of(each) not in (None, address_of(inputs[-1])))
    inputs[-1] = INPUTS[wrong](inputs[-1], other)
    spoiled = packed.pack_inputs(
        [
            packed.pack_input(
                packed.output_key(each.tx_hash, each.output_index),
                None if each.source is None else packed.pack_output(*msgspec.structs.astuple(each.source)),
            )
            for each in inputs
        ]
    )
    statement = "UPDATE tx SET inputs = $2 WHERE tx_id = $1"
    found = await planted(db, statement, partial(within, network=PREPROD), arguments=(key, spoiled))
    assert found is not None
    if inputs[-1].source is None:
        assert any("source of an input" in said for said in found["value"]), found
    else:
        named = inputs[-1].tx_hash.hex()
        assert any(f"output {named}#{inputs[-1].output_index}" in said for said in found["spending"]), found
