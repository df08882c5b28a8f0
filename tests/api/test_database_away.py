"""Answers while the database is reachable but not usable: full, failing, a standby, shutting down."""

import asyncio

import asyncpg
import pytest

from api.sources.chain_servers import ChainServer
from shared import database
from shared.network import PREVIEW
from tests.api.client import Client
from tests.api.partners import BOOTSTRAP_KEY
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    "sqlstate",
    ["25006", "53100", "53200", "53300", "57P01", "57P02", "57P03", "58030"],
    ids=["read-only", "disk full", "no memory", "no connection", "shutdown", "crash", "starting", "disk fails"],
)
async def test_a_server_that_cannot_serve_counts_as_unreachable(
    api: Client, db: asyncpg.Connection, caplog: pytest.LogCaptureFixture, sqlstate: str
) -> None:
    await db.execute(
        f"""
        CREATE FUNCTION partner.cannot() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'cannot' USING ERRCODE = '{sqlstate}'; END $$;
        CREATE TRIGGER cannot BEFORE INSERT ON partner.admin_key EXECUTE FUNCTION partner.cannot()
        """
    )
    reply = await api.call("POST", "/v1/admin/admin-keys", BOOTSTRAP_KEY, json={"entity_name": "ACME"})
    assert (reply.status, reply.error) == (503, "Database not available")
    assert "Traceback" not in caplog.text
    await db.execute("DROP TRIGGER cannot ON partner.admin_key")
    assert (await api.call("POST", "/v1/admin/admin-keys", BOOTSTRAP_KEY, json={"entity_name": "ACME"})).status == 201


async def test_a_read_only_primary_also_refuses_reads(api: Client, db: asyncpg.Connection) -> None:
    (name,) = await db.fetchrow("SELECT current_database()")
    made = await api.call("POST", "/v1/admin/admin-keys", BOOTSTRAP_KEY, json={"entity_name": "ACME"})
    admin_key = made.body["data"]["key"]
    await db.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for _ in range(10):
        reply = await api.get("/v1/admin/users", admin_key)
        assert (reply.status, reply.error) == (503, "Database not available")
    await db.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert (await api.get("/v1/admin/users", admin_key)).status == 200, "old connections are not used again"


async def test_a_chain_connection_that_was_lost_while_set_aside_is_replaced(
    database_url: str, db: asyncpg.Connection
) -> None:
    pool = await database.create_pool(database_url, PREVIEW, max_size=1, later=True)
    server, ended = ChainServer(database_url, {PREVIEW.network_id: pool}), asyncio.Event()
    try:
        async with server.connection(PREVIEW) as first:
            before = first.get_server_pid()
            first.add_termination_listener(lambda _: ended.set())
        await db.execute("SELECT pg_terminate_backend($1)", before)
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        async with server.connection(PREVIEW) as second:
            assert second.get_server_pid() != before
    finally:
        pool.terminate()
