"""The schema, the statements of the program and the Structs of their rows agree."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import api
import indexer
from indexer import verify
from shared import database, schema, sql
from shared.network import NETWORKS, PREVIEW

ROOT = Path(__file__).parents[1]


def _statements() -> list[sql.Command | sql.Query[Any]]:
    """Every statement of the program, known once all its modules are imported."""
    for package in (indexer, api):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return sorted(sql.statements, key=lambda statement: (str(statement.source), statement.name))


STATEMENTS = _statements()


async def test_every_statement_prepares_and_its_columns_are_its_struct(database_url: str) -> None:
    wrong = []
    connection = await database.connect(database_url, PREVIEW)
    await verify.make_tables(connection)
    for statement in STATEMENTS:
        name = f"{statement.source.name}: {statement.name}"
        try:
            columns = (await connection.prepare(statement.text)).get_attributes()
        except asyncpg.PostgresError as error:
            wrong.append(f"{name}: {error}")
            continue
        if isinstance(statement, sql.Query) and len(columns) != len(statement.row.__struct_fields__):
            wrong.append(f"{name}: {len(columns)} columns for {statement.row.__struct_fields__}")
    await connection.close()
    assert wrong == []


def test_every_statement_of_a_file_is_used() -> None:
    used = {(statement.source, statement.name) for statement in STATEMENTS}
    for source in (*ROOT.glob("indexer/**/*.sql"), *ROOT.glob("api/**/*.sql")):
        for line in source.read_text().splitlines():
            if line.startswith("-- name: "):
                assert (source, line.removeprefix("-- name: ")) in used, f"{line} of {source.name} has no caller"


async def test_every_table_says_what_it_is(database_url: str) -> None:
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
    assert tables[0] and tables[0] == tables[1] == tables[2]


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO chain_preview.genesis_output VALUES ('\\x01', '\\x02', 3)")
    await schema.migrate(connection)
    assert await connection.fetchval("SELECT count(*) FROM chain_preview.genesis_output") == 1
    await connection.close()


async def test_a_newer_schema_is_refused(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE partner.schema_version SET version = version + 1")
    with pytest.raises(schema.NewerSchema, match=f"{schema.VERSION + 1}.*{schema.VERSION}"):
        await schema.migrate(connection)
    await connection.close()


_CATALOG = (
    """SELECT table_schema, table_name, column_name, data_type, is_nullable,
           obj_description(format('%I.%I', table_schema, table_name)::regclass),
           col_description(format('%I.%I', table_schema, table_name)::regclass, ordinal_position)
    FROM information_schema.columns WHERE table_schema LIKE 'chain\\_%' OR table_schema = 'partner' ORDER BY 1, 2, 3""",
    "SELECT indexdef FROM pg_indexes WHERE schemaname LIKE 'chain\\_%' OR schemaname = 'partner' ORDER BY 1",
    """SELECT pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'chain\\_%') ORDER BY 1""",
)
# What leads a network's schema back to a version, from the one after it.
_BACK_TO = {
    2: """DROP TABLE asset_bucket;
    DROP INDEX holder_opening, policy_holder_opening, asset_opening, asset_supply;
    DROP FUNCTION opens_bucket;
    CREATE FUNCTION opens_bucket(address_id integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (address_id::bigint * 2654435761 >> 16) & 1023 = 0
    $$;
    CREATE INDEX holder_opening ON holder (asset_id, quantity, address_id) WHERE opens_bucket(address_id);
    CREATE INDEX policy_holder_opening ON policy_holder (policy_id, quantity, address_id)
        WHERE opens_bucket(address_id);
    CREATE INDEX asset_supply ON asset (policy_id, supply DESC, name) WHERE first_tx_id IS NOT NULL""",
    1: "DROP TABLE balance_staged, holder_staged",
}


async def _catalog(connection: asyncpg.Connection) -> list[list[asyncpg.Record]]:
    return [await connection.fetch(statement) for statement in _CATALOG]


async def _go_back_to(connection: asyncpg.Connection, version: int) -> None:
    for network in NETWORKS:
        await connection.execute(f"SET search_path = {network.schema}")
        for step in range(schema.VERSION - 1, version - 1, -1):
            await connection.execute(_BACK_TO[step])
    await connection.execute("UPDATE partner.schema_version SET version = $1", version)
    await connection.execute("RESET search_path")


@pytest.mark.parametrize("version", range(1, schema.VERSION))
async def test_a_database_of_any_version_becomes_a_present_one(database_url: str, version: int) -> None:
    connection = await asyncpg.connect(database_url)
    fresh = await _catalog(connection)
    assert all(fresh)
    await _go_back_to(connection, version)
    assert await _catalog(connection) != fresh
    await schema.migrate(connection)
    assert await _catalog(connection) == fresh
    await connection.close()


async def test_holders_that_version_1_has_moved_in_bulk_are_staged(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await _go_back_to(connection, 1)
    await connection.execute(
        """INSERT INTO chain_preview.tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)
            VALUES (1, 1, '\\x01', 0, 1, 'bulk');
        INSERT INTO chain_preview.holder VALUES (1, 2, 18446744073709551616);
        INSERT INTO chain_preview.policy_holder VALUES (1, 2, 18446744073709551616);
        INSERT INTO chain_preprod.holder VALUES (1, 2, 3)"""
    )
    await schema.migrate(connection)
    staged = await connection.fetch("SELECT asset_id, address_id, quantity, large FROM chain_preview.holder_staged")
    assert [tuple(row) for row in staged] == [(1, 2, None, 2**64)]
    for table in ("holder", "policy_holder"):
        assert await connection.fetchval(f"SELECT count(*) FROM chain_preview.{table}") == 0  # noqa: S608
    assert [tuple(row) for row in await connection.fetch("TABLE chain_preprod.holder")] == [(1, 2, 3)]
    await connection.close()


async def test_buckets_of_assets_are_counted_for_what_version_2_has_indexed(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await _go_back_to(connection, 2)
    for name, phase in (("preview", "live"), ("preprod", "bulk")):
        await connection.execute(
            f"""INSERT INTO chain_{name}.tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)
                VALUES (1, 1, '\\x01', 0, 1, '{phase}');
            INSERT INTO chain_{name}.asset (asset_id, policy_id, name, supply, first_tx_id)
            SELECT n, 1, int4send(n), n % 3, CASE WHEN n % 10 > 0 THEN 1 END FROM generate_series(1, 8000) AS n"""  # noqa: S608
        )
    await schema.migrate(connection)
    await connection.execute("SET search_path = chain_preview")
    assert await connection.fetchval("SELECT sum(assets) FROM asset_bucket") == 7_200
    assert await connection.fetch(dict(verify.CHECKS)["asset_bucket"].text, 5) == []
    assert await connection.fetchval("SELECT count(*) FROM chain_preprod.asset_bucket") == 0
    await connection.close()
