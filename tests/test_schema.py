"""The schema, the statements of the program and the Structs of their rows agree."""

import asyncio
import datetime
import os
import re
import socket
import types
import typing
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import asyncpg
import msgspec
import pytest

from indexer.rows import tables
from indexer.verify.tables import digests
from shared import address, database, schema, sql
from shared.ledger import PoolNo
from shared.network import NETWORKS, PREVIEW
from tests.chain.written import Written, pays, tx
from tests.patience import PATIENCE_S
from tests.statements import every_statement

ROOT = Path(__file__).parents[1]


STATEMENTS = every_statement()


async def test_every_statement_prepares_and_its_columns_match_its_struct(database_url: str) -> None:
    wrong = []
    connection = await database.connect(database_url, PREVIEW)
    await digests.make_functions(connection)
    for statement in STATEMENTS:
        name = f"{statement.source.name}: {statement.name}"
        try:
            if isinstance(statement, sql.Query):
                wrong += [f"{name}: {each}" for each in await _mismatches(connection, statement.text, statement.row)]
            else:
                await connection.prepare(statement.text)
        except asyncpg.PostgresError as error:
            wrong.append(f"{name}: {error}")
    await connection.close()
    assert wrong == []


ONE_PAGE = ("tip", "ledger_state", "live_stake", "genesis_configuration")
"""Tables with one row, or with one per era."""


async def test_chain_answers_read_no_whole_table(database_url: str) -> None:
    found = []
    async with (
        await database.create_pool(database_url, PREVIEW, max_size=1) as pool,
        pool.acquire() as connection,
    ):
        for statement in STATEMENTS:
            if statement.source.parent.name != "chain" or statement.source.parents[1].name != "api":
                continue
            parameters = (await connection.prepare(statement.text)).get_parameters()
            arguments = f"({', '.join(['NULL'] * len(parameters))})" if parameters else ""
            await connection.execute(f"PREPARE each AS {statement.text}")
            plan = await connection.fetch(f"EXPLAIN EXECUTE each{arguments}")
            await connection.execute("DEALLOCATE each")
            scans = re.findall(r"(?:Seq|Bitmap Heap) Scan on (\w+)", "\n".join(line[0] for line in plan))
            found += [f"{statement.name}: {table}" for table in scans if table not in ONE_PAGE]
    assert found == []


class _LastBlock(msgspec.Struct):
    slot_no: int
    block_no: int
    pool_no: PoolNo | None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT slot_no, block_no, pool_no FROM block", []),
        ("SELECT block_no, slot_no, pool_no FROM block", ["block_no", "slot_no"]),
        ("SELECT slot_no, block_no FROM block", ["nothing"]),
        ("SELECT slot_no, block_no, pool_no, hash FROM block", ["hash"]),
        ("SELECT slot_no, hash AS block_no, pool_no FROM block", ["block_no"]),
        ("SELECT stake_no AS slot_no, pool_no AS block_no, pool_no FROM stake", ["block_no"]),
        ("SELECT stake_no AS slot_no, pool_no AS block_no, pool_no FROM stake WHERE pool_no IS NOT NULL", []),
    ],
)
async def test_a_column_that_differs_from_its_field_is_noticed(database_url: str, text: str, wrong: list[str]) -> None:
    connection = await database.connect(database_url, PREVIEW)
    found = await _mismatches(connection, text, _LastBlock)
    await connection.close()
    assert [each.split()[0] for each in found] == wrong


# The Python type of each Postgres type as asyncpg decodes it.
_PYTHON_TYPES: dict[str, type] = {
    "bool": bool,
    "bytea": bytes,
    "bytea[]": list,
    "date": datetime.date,
    "float8": float,
    "int2": int,
    "int4": int,
    "int8": int,
    "int4[]": list,
    "int8[]": list,
    "json": msgspec.Raw,
    "name": str,
    "text": str,
    "text[]": list,
    "timestamptz": datetime.datetime,
    "uuid": UUID,
    "uuid[]": list,
}


async def _mismatches(connection: asyncpg.Connection, text: str, row: Any) -> list[str]:
    """The differences between the columns of a statement and the fields of its Struct, in name, type and nulls. A row
    that is a value stands for a Struct whose only field has the name of the first column.
    """
    columns = (await connection.prepare(text)).get_attributes()
    nullable = await _nullable_columns(connection, text)
    names = getattr(row, "__struct_fields__", (columns[0].name,))
    hints = typing.get_type_hints(row) if hasattr(row, "__struct_fields__") else {names[0]: row}
    fields = [(name, _plain(hints[name]), types.NoneType in typing.get_args(hints[name])) for name in names]
    found = []
    for column, field in zip_longest(columns, fields):
        if column is None or field is None:
            found.append(f"{column.name if column else 'nothing'} for the field {field}")
        elif (column.name, _PYTHON_TYPES.get(column.type.name)) != field[:2]:
            found.append(f"{column.name} of type {column.type.name} for the field {field[0]} of type {field[1]}")
        elif column.name in nullable and not field[2]:
            found.append(f"{column.name} may be null, the field may not be None")
    return found


async def _nullable_columns(connection: asyncpg.Connection, text: str) -> set[str]:
    """The columns that may be null, for a statement that reads one table; unknown for others."""
    simple = re.fullmatch(r"(?s)SELECT ([\w\s,]+)\bFROM (\w+)\b((?!JOIN|UNION).)*", text)
    if simple is None:
        return set()
    found = await connection.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attnotnull", simple[2]
    )
    nullable = {row["attname"] for row in found if f"{row['attname']} IS NOT NULL" not in text}
    names = (item.split() for item in simple[1].split(","))
    return {name[-1] for name in names if name[0] in nullable}


def _plain(hint: Any) -> Any:
    """The type of a field's values other than None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not types.NoneType)
    if isinstance(hint, typing.TypeVar):
        return hint.__bound__
    if typing.get_origin(hint) is Literal:
        return type(typing.get_args(hint)[0])
    return typing.get_origin(hint) or getattr(hint, "__supertype__", hint)


NUMBERED = {"script": {"seq"}}
"""Columns that the statement which inserts the rows computes."""


async def test_each_table_is_declared_once_with_its_columns(database_url: str) -> None:
    connection = await database.connect(database_url, PREVIEW)
    found = await connection.fetch(
        """SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS type, NOT a.attnotnull AS nullable,
                  a.attnotnull AND NOT a.atthasdef AS required
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"""
    )
    await connection.close()
    columns: dict[str, dict[str, asyncpg.Record]] = {}
    for column in found:
        columns.setdefault(column["relname"], {})[column["attname"]] = column
    assert sorted(tables.NAMES) == sorted(columns.keys() - {"rollback_depth"})
    python_types = {"bytea": bytes, "text": str, "boolean": bool}
    for table in tables.TABLES:
        schema_of, hints = columns[table.name], typing.get_type_hints(table.row)
        required = {name for name, column in schema_of.items() if column["required"]}
        assert required - NUMBERED.get(table.name, set()) <= hints.keys(), table.name
        for name, hint in hints.items():
            column, declared = schema_of[name], (_plain(hint), types.NoneType in typing.get_args(hint))
            assert declared == (python_types.get(column["type"], int), column["nullable"]), f"{table.name}.{name}"


async def test_every_table_has_a_comment(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    silent = await connection.fetch(
        """SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'r' AND (n.nspname = 'partner' OR n.nspname LIKE 'chain\\_%')
        AND obj_description(c.oid) IS NULL"""
    )
    await connection.close()
    assert silent == []


async def test_all_networks_have_the_same_tables(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    tables = [
        await connection.fetch(
            """SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
            WHERE table_schema = $1 ORDER BY 1, 2""",
            network.schema,
        )
        for network in NETWORKS
    ]
    await connection.close()
    assert tables[0] and all(each == tables[0] for each in tables)


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO chain_preview.genesis_output VALUES (-1, 3, '\\x01', '\\x02')")
    await schema.migrate(connection)
    assert await connection.fetchval("SELECT count(*) FROM chain_preview.genesis_output") == 1
    await connection.close()


async def test_a_newer_schema_is_refused(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE partner.schema_version SET version = version + 1")
    with pytest.raises(schema.WrongSchema, match=f"{schema.VERSION + 1}.*{schema.VERSION}"):
        await schema.migrate(connection)
    await connection.close()


# The content of the schemas $1. Columns are compared by name, since a migration adds them at the end of a table.
_CATALOG = {
    "tables": """SELECT oid::regclass::text, relkind::text, reloptions, obj_description(oid, 'pg_class')
        FROM pg_class WHERE relnamespace = ANY ($1::oid[]) ORDER BY 1""",
    "columns": """SELECT attrelid::regclass::text, attname::text, format_type(atttypid, atttypmod), attnotnull,
            attstorage::text, attgenerated::text, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)
        FROM pg_attribute
        JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
        WHERE relnamespace = ANY ($1::oid[]) AND relkind = 'r' AND attnum > 0 AND NOT attisdropped ORDER BY 1, 2""",
    "views": """SELECT oid::regclass::text, pg_get_viewdef(oid)
        FROM pg_class WHERE relnamespace = ANY ($1::oid[]) AND relkind = 'v' ORDER BY 1""",
    "constraints": """SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = ANY ($1::oid[]) ORDER BY 1, 2""",
    "indexes": """SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = ANY ($1::oid[]) ORDER BY 1""",
    "functions": """SELECT oid::regprocedure::text, pg_get_functiondef(oid), obj_description(oid, 'pg_proc')
        FROM pg_proc WHERE pronamespace = ANY ($1::oid[]) AND prokind <> 'a' ORDER BY 1""",
    "aggregates": """SELECT aggfnoid::text, aggtransfn::text, aggtranstype::regtype::text, agginitval
        FROM pg_aggregate JOIN pg_proc ON pg_proc.oid = aggfnoid WHERE pronamespace = ANY ($1::oid[]) ORDER BY 1""",
}
_SCHEMAS = ["partner", *(network.schema for network in NETWORKS)]
# The text of `schema.sql` in each version.
_FROZEN = {int(path.stem): path for path in sorted((ROOT / "tests" / "schemas").glob("*.sql"))}


async def _catalog(connection: asyncpg.Connection) -> dict[str, list[asyncpg.Record]]:
    ours = await connection.fetchval("SELECT array_agg(oid) FROM pg_namespace WHERE nspname = ANY ($1)", _SCHEMAS)
    return {kind: await connection.fetch(statement, ours) for kind, statement in _CATALOG.items()}


async def _replace_schema(connection: asyncpg.Connection, text: str, version: int) -> None:
    """Replace the database's schema with that of another version."""
    async with connection.transaction():
        for name in _SCHEMAS:
            await connection.execute(f"DROP SCHEMA {name} CASCADE")
        await schema._apply(connection, text)
        await connection.execute("INSERT INTO partner.schema_version VALUES ($1)", version)


@pytest.mark.parametrize("version", _FROZEN)
async def test_a_database_of_each_version_migrates_to_the_current_schema(database_url: str, version: int) -> None:
    connection = await asyncpg.connect(database_url)
    fresh = await _catalog(connection)
    assert all(fresh.values())
    await _replace_schema(connection, _FROZEN[version].read_text(), version)
    await schema.migrate(connection)
    assert await _catalog(connection) == fresh
    assert await connection.fetchval("SELECT version FROM partner.schema_version") == schema.VERSION
    await connection.close()


async def test_a_chain_of_0_1_0_begins_again(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    fresh = await _catalog(connection)
    await _replace_schema(connection, _FROZEN[7].read_text(), 7)
    added, _ = schema.parts(next(schema._MIGRATIONS.glob("0008_*")).read_text())
    await connection.execute(added)  # later checkouts of version 7 had these tables
    await connection.execute("INSERT INTO chain_preview.block VALUES (7, 1, 1, NULL, '')")
    await schema.migrate(connection)
    assert await _catalog(connection) == fresh
    assert await connection.fetchval("SELECT count(*) FROM chain_preview.block") == 0
    await connection.close()


async def test_a_network_that_an_older_version_did_not_know_gets_its_chain(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    fresh = await _catalog(connection)
    await _replace_schema(connection, _FROZEN[10].read_text(), 10)
    await connection.execute("DROP SCHEMA chain_preprod CASCADE")
    await schema.migrate(connection)
    assert await _catalog(connection) == fresh
    await connection.close()


async def test_the_migration_to_version_9_empties_chains_and_keeps_partner_data(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await _replace_schema(connection, _FROZEN[8].read_text(), 8)
    await connection.execute("SET search_path = chain_preview")
    for statement in (
        "INSERT INTO tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (7, 1, '', 0, 1, 'live')",
        "INSERT INTO block VALUES (7, 1, 1, NULL, '')",
        "INSERT INTO vote_delegation VALUES (7, NULL, 0, '\\x02')",
        "INSERT INTO stake (stake_no, raw) VALUES (1, '')",
        "INSERT INTO rollback_depth VALUES (1, 3, 3, now(), 1)",
        "INSERT INTO partner.admin_key (entity_name, key_prefix, key_hash, permissions)"
        " VALUES ('tests', 'iiak_admin_', '', '{manage_users}')",
        "INSERT INTO partner.verification VALUES (1, now(), now(), 7, 1, NULL, '{}')",
    ):
        await connection.execute(statement)
    await schema.migrate(connection)
    rows = {
        table: await connection.fetchval(f"SELECT count(*) FROM {table}")  # noqa: S608 - tables of ours
        for table in (
            "tip",
            "block",
            "vote_delegation",
            "stake",
            "rollback_depth",
            "partner.admin_key",
            "partner.verification",
        )
    }
    assert {table for table, count in rows.items() if count} == {"rollback_depth", "partner.admin_key"}
    await connection.close()


@pytest.mark.parametrize("version", [7, 9])
async def test_the_migration_to_version_10_keeps_usage(database_url: str, version: int) -> None:
    connection = await asyncpg.connect(database_url)
    await _replace_schema(connection, _FROZEN[version].read_text(), version)
    await connection.execute(
        """
        WITH owner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('x', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'x' FROM owner RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 60, 1, '', '', 'x' FROM account;
        INSERT INTO partner.endpoint (name) VALUES ('GET /x');
        INSERT INTO partner.usage SELECT id, '2026-11-02 10:07+00', 3, 4, 50 FROM partner.credential;
        INSERT INTO partner.usage_day SELECT id, '2026-11-02', 3, 4, 50, 1 FROM partner.credential;
        INSERT INTO partner.usage_hour SELECT id, '2026-11-02 10:00+00', 1, 2, 7, 50, '{7}' FROM partner.credential;
        INSERT INTO partner.usage_total SELECT id, admin_key_id, created_at, 3, 4 FROM partner.credential;
        INSERT INTO partner.usage_kept VALUES (true, '2026-11-01');
        INSERT INTO partner.usage_batch VALUES ('open', 38, now(), NULL), ('closed', 76, now(), now());
        """
    )
    await schema.migrate(connection)
    for table, figures in (
        ("usage", (3, 4, 50)),
        ("usage_day", (3, 4, 50)),
        ("usage_total", (3, 4, 0)),
        ("usage_hour", (7, 50, 0)),
    ):
        columns = {"usage_hour": "requests, took_us, part", "usage_total": "successful, failed, part"}
        chosen = columns.get(table, "successful, failed, took_us")
        assert tuple(await connection.fetchrow(f"SELECT {chosen} FROM partner.{table}")) == figures  # noqa: S608
    assert await connection.fetchval("SELECT hours_since = '2026-11-02 10:00+00' FROM partner.usage_kept")
    assert await connection.fetchval("SELECT sum(next_offset) FROM partner.usage_batch") == 114
    await connection.close()


async def test_the_migration_to_version_12_empties_chains_and_keeps_partner_data(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await _replace_schema(connection, _FROZEN[11].read_text(), 11)
    await connection.execute("SET search_path = chain_preview")
    for statement in (
        "INSERT INTO tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (7, 1, '', 0, 1, 'live')",
        "INSERT INTO block VALUES (7, 1, 1, NULL, '')",
        "INSERT INTO address_tx VALUES (1, 0, '\\x0000000000070000')",
        "INSERT INTO genesis_output VALUES (-65536, 5, '\\x00', '\\x01')",
        "INSERT INTO reward VALUES (1, 5)",
        "INSERT INTO rollback_depth VALUES (1, 3, 3, now(), 1)",
        "INSERT INTO partner.admin_key (entity_name, key_prefix, key_hash, permissions)"
        " VALUES ('tests', 'iiak_admin_', '', '{manage_users}')",
        "INSERT INTO partner.verification VALUES (1, now(), now(), 7, 1, NULL, '{}')",
    ):
        await connection.execute(statement)
    await schema.migrate(connection)
    tables = ("tip", "block", "address_tx", "genesis_output", "reward", "partner.verification")
    kept = ("rollback_depth", "partner.admin_key")
    rows = {table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in (*tables, *kept)}  # noqa: S608
    assert rows == dict.fromkeys(tables, 0) | dict.fromkeys(kept, 1)
    await connection.close()


OF_SCRIPTS = ("tx", "redeemer_tx", "redeemer_tx_staged", "script", "policy", "stake", "address")
# Hashes of scripts whose first 8 bytes take every form of a number in MessagePack.
HASHES = [
    first.to_bytes(8, signed=True) + bytes(range(20))
    for first in (5, 200, 60_000, 2**31, 2**40, 2**62, -1, -32, -100, -30_000, -(2**31), -(2**40), -(2**62))
]
NOT_KNOWN = (2**62 + 1).to_bytes(8) + bytes(range(20))


def _with_numbers(extra: bytes) -> bytes:
    """Extras as version 12 had them: with the first 8 bytes of scripts as numbers."""
    fields = msgspec.msgpack.decode(extra[1:])
    if "r" in fields:
        fields["r"] = [None if key is None else int.from_bytes(key[:8], signed=True) for key in fields["r"]]
    return extra[:1] + msgspec.msgpack.encode(fields)


async def _rows_of(db: asyncpg.Connection, table: str) -> list[asyncpg.Record]:
    return list(await db.fetch(f"SELECT * FROM {table} ORDER BY {table}"))  # noqa: S608 - a table of ours


async def _write_redeemers(db: asyncpg.Connection, *, bulk: bool) -> None:
    """Index redeemers of scripts: of many policies, also beside other fields of Extra, and of an account."""
    chain, metadata = Written(db, bulk=bulk), {"labels": {"721": {"cbor": "80"}, "674": {"json": "x" * 300}}}
    account = address.show_stake(b"\xf0" + HASHES[0])
    certificate = {"type": "stakeCredentialDeregistration", "credential": HASHES[1].hex(), "from": "verificationKey"}
    await chain.append(10, tx("few", mint={each.hex(): {"": 1} for each in (*HASHES[:2], NOT_KNOWN)}, redeemers=_of(3)))
    await chain.append(
        20,
        tx("none"),
        tx("locked", pays(address.show(b"\x70" + HASHES[5]))),
        tx(
            "many",
            mint={each.hex(): {"": 1} for each in HASHES},
            redeemers=_of(20),  # of which some point to nothing
            metadata=metadata,
            withdrawals={account: {"ada": {"lovelace": 3}}},
            validityInterval={"invalidBefore": 1, "invalidAfter": 2**40},
            certificates=[certificate],
        ),
    )


def _of(count: int) -> list[dict[str, Any]]:
    units = {"memory": 1, "cpu": 2}
    return [
        {"redeemer": "00", "executionUnits": units, "validator": {"purpose": "mint", "index": index}}
        for index in range(count)
    ]


@pytest.mark.parametrize("bulk", [False, True])
async def test_the_migration_to_version_13_keeps_the_redeemers_of_scripts(database_url: str, bulk: bool) -> None:
    db = await database.connect(database_url, PREVIEW)
    await _write_redeemers(db, bulk=bulk)
    expected = {table: await _rows_of(db, table) for table in OF_SCRIPTS}
    old = {table: [dict(row) for row in rows] for table, rows in expected.items()}
    for row in old["tx"]:
        row["extra"] = row["extra"] and _with_numbers(row["extra"])
    for row in (*old["redeemer_tx"], *old["redeemer_tx_staged"]):
        row["script_no"] = int.from_bytes(row.pop("script_key")[:8], signed=True)
    old["policy"] = [row for row in old["policy"] if row["policy_id"] != NOT_KNOWN]
    await _replace_schema(db, _FROZEN[12].read_text(), 12)
    for table, rows in old.items():
        for row in rows:
            places = ", ".join(f"${place}" for place in range(1, len(row) + 1))
            await db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())  # noqa: S608
    await schema.migrate(db)
    await db.execute(f"SET search_path = {PREVIEW.schema}")
    for table in OF_SCRIPTS:
        rows = await _rows_of(db, table)
        filled, whole = NOT_KNOWN[:8] + bytes(8), NOT_KNOWN[:16]
        found = [
            {name: value.replace(filled, whole) if isinstance(value, bytes) else value for name, value in row.items()}
            for row in rows
        ]
        kept = [dict(row) for row in expected[table] if table != "policy" or row["policy_id"] != NOT_KNOWN]
        assert found == kept, table
        assert (found != [dict(row) for row in rows]) == (table in ("tx", f"redeemer_tx{'_staged' * bulk}")), table
    await db.close()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("tables", "ALTER TABLE chain_preview.delegator_bucket RESET (fillfactor)"),
        ("tables", "COMMENT ON TABLE chain_preview.tip IS 'another'"),
        ("columns", "ALTER TABLE chain_preview.tx ALTER outputs SET STORAGE EXTENDED"),
        ("columns", "ALTER TABLE chain_preview.stake ALTER balance DROP DEFAULT"),
        ("columns", "ALTER TABLE partner.usage ALTER took_us TYPE numeric"),
        ("columns", "COMMENT ON COLUMN chain_preview.stake.balance IS NULL"),
        ("constraints", "ALTER TABLE chain_preview.stake DROP CONSTRAINT stake_check"),
        ("constraints", "ALTER TABLE partner.usage DROP CONSTRAINT usage_credential_id_fkey"),
        ("indexes", "DROP INDEX chain_preview.stake_raw"),
        ("functions", "DROP FUNCTION partner.usage_of"),
        ("functions", "ALTER FUNCTION chain_preview.address_tx_rank VOLATILE"),
    ],
)
async def test_the_comparison_of_schemas_sees_each_kind_of_difference(
    database_url: str, kind: str, change: str
) -> None:
    connection = await asyncpg.connect(database_url)
    fresh = await _catalog(connection)
    await connection.execute(change)
    changed = await _catalog(connection)
    assert changed[kind] != fresh[kind]
    await connection.close()


async def test_migrations_run_in_order_in_each_network(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0900_first.sql").write_text(
        "-- == partner ==\nCREATE TABLE partner.made (n integer);\n-- == chain ==\nCREATE TABLE made (n integer);\n"
    )
    (tmp_path / "0901_second.sql").write_text("-- == partner ==\n-- == chain ==\nINSERT INTO made VALUES (901);\n")
    (tmp_path / "0006_before.sql").write_text("-- == partner ==\nSELECT 1 / 0;\n-- == chain ==\n")
    monkeypatch.setattr(schema, "_MIGRATIONS", tmp_path)
    monkeypatch.setattr(schema, "VERSION", 901)
    connection = await asyncpg.connect(database_url)
    await schema.migrate(connection)
    for network in NETWORKS:
        made = await connection.fetch(f"TABLE {network.schema}.made")
        assert [row["n"] for row in made] == [901]
    assert await connection.fetch("TABLE partner.made") == []
    assert await connection.fetchval("SELECT version FROM partner.schema_version") == 901
    await connection.close()


@pytest.mark.parametrize("version", [1, 6])
async def test_a_schema_that_is_too_old_is_refused_and_left_unchanged(database_url: str, version: int) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE partner.schema_version SET version = $1", version)
    before = await _catalog(connection)
    with pytest.raises(
        schema.WrongSchema,
        match=f"^the database has schema version {version}, which this program cannot migrate: "
        "create a new database and index again$",
    ):
        await schema.migrate(connection)
    assert await _catalog(connection) == before
    assert await connection.fetchval("SELECT version FROM partner.schema_version") == version
    await connection.close()


@pytest.fixture
def newer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next version of the program, with an unchanged schema and short waits."""
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setattr(schema, "_PATIENCE_S", 0.3)


async def test_a_commit_into_a_newer_schema_is_refused(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    async with schema.commit(connection):
        await connection.execute("INSERT INTO chain_preview.genesis_output VALUES (-1, 3, '\\x01', '\\x02')")
    await connection.execute("UPDATE partner.schema_version SET version = version + 1")
    with pytest.raises(schema.WrongSchema, match=f"{schema.VERSION + 1}.*{schema.VERSION}"):
        async with schema.commit(connection):
            await connection.execute("DELETE FROM chain_preview.genesis_output")
    assert await connection.fetchval("SELECT count(*) FROM chain_preview.genesis_output") == 1
    await connection.close()


@pytest.mark.usefixtures("newer_program")
async def test_a_migration_waits_for_a_commit_and_a_commit_for_a_migration(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, late, newer = [await database.connect(database_url, PREVIEW) for _ in range(3)]
    async with schema.commit(writer):
        migrating = asyncio.create_task(schema.migrate(newer))
        await _waits_for_a_lock(late, newer)
        assert not migrating.done()
    await migrating
    assert await writer.fetchval("SELECT version FROM partner.schema_version") == schema.VERSION
    async with newer.transaction():  # as `migrate` does, while it changes tables
        await schema._shut_writers_out(newer)
        monkeypatch.setattr(schema, "VERSION", schema.VERSION - 1)
        committing = asyncio.create_task(_commit(late))
        await _waits_for_a_lock(writer, late)
        assert not committing.done()
    with pytest.raises(schema.WrongSchema):
        await committing
    for connection in (writer, late, newer):
        await connection.close()


async def _waits_for_a_lock(db: asyncpg.Connection, other: asyncpg.Connection) -> None:
    waits = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted"
    async with asyncio.timeout(PATIENCE_S):
        while not await db.fetchval(waits, other.get_server_pid()):
            await asyncio.sleep(0.02)


async def _commit(connection: asyncpg.Connection) -> None:
    async with schema.commit(connection):
        await connection.execute("DELETE FROM genesis_output")


@pytest.mark.usefixtures("newer_program")
async def test_a_migration_ends_a_writer_that_takes_too_long_and_names_it(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writer, newer = [await database.connect(database_url, PREVIEW) for _ in range(2)]
    commit = schema.commit(writer)
    await commit.__aenter__()
    await writer.execute("INSERT INTO genesis_output VALUES (-1, 3, '\\x01', '\\x02')")
    pid = await writer.fetchval("SELECT pg_backend_pid()")
    async with asyncio.timeout(PATIENCE_S):
        await schema.migrate(newer)
    # asyncpg may meet the end of its session in the middle of a message: an InternalClientError.
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)):
        await commit.__aexit__(None, None, None)
    assert await newer.fetchval("SELECT count(*) FROM genesis_output") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if str(pid) in line]
    assert ["waiting" in line for line in said] == [True, True, False]
    assert all(f"ledgerline preview {socket.gethostname()}:{os.getpid()}" in line for line in said)
    assert "schema.writer_ended" in said[-1]
    await newer.close()


@pytest.mark.usefixtures("newer_program")
async def test_a_migration_waits_for_other_programs_and_keeps_no_timeout(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, newer = await asyncpg.connect(database_url), await database.connect(database_url, PREVIEW)
    async with dump.transaction():
        await dump.execute("TABLE partner.schema_version")
        migrating = asyncio.create_task(schema.migrate(newer))
        said = ""
        async with asyncio.timeout(PATIENCE_S):
            while said.count("waiting") <= schema._MAX_LOOKS:
                await asyncio.sleep(0.05)
                said += capsys.readouterr().out
        assert not migrating.done() and "schema.writer_ended" not in said
    await migrating
    assert await newer.fetchval("SHOW lock_timeout") == "0"
    async with newer.transaction():
        await schema._shut_writers_out(newer)
        assert await newer.fetchval("SHOW lock_timeout") == "0"
    await dump.close()
    await newer.close()
