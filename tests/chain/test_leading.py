"""The leader of a network: its heartbeats, and the takeover by a standby when they stop. Times are short here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from indexer.sync import leading
from shared import database, leader, schema
from shared.network import MAINNET, PREVIEW
from tests.patience import PATIENCE_S

Connect = Callable[[], Awaitable[asyncpg.Connection]]
BEAT_EVERY_S, SILENT_S = 0.8, 4.0  # long enough for heartbeats to be in time on busy cores


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "BEAT_EVERY_S", BEAT_EVERY_S)
    monkeypatch.setattr(leader, "SILENT_AFTER_S", SILENT_S)
    monkeypatch.setattr(leading, "POLL_S", 0.1)


@pytest.fixture
async def connect(database_url: str) -> AsyncIterator[Connect]:
    opened: list[asyncpg.Connection] = []

    async def one() -> asyncpg.Connection:
        opened.append(await database.connect(database_url, PREVIEW))
        return opened[-1]

    yield one
    for each in opened:
        each.terminate()


async def leads(db: asyncpg.Connection) -> leader.Leader | None:
    return (await leader.leaders(db)).get(PREVIEW.network_id)


async def seconds_until_led(db: asyncpg.Connection) -> float:
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(PATIENCE_S):
        await leading.take_the_lead(db, PREVIEW)
    return asyncio.get_running_loop().time() - began


async def test_a_leader_in_a_long_statement_stays_the_leader(connect: Connect, database_url: str) -> None:
    writer, standby = await connect(), await connect()
    await leading.take_the_lead(writer, PREVIEW)
    async with leading.sending_heartbeats(database_url, PREVIEW, writer):
        waiting = asyncio.create_task(leading.take_the_lead(standby, PREVIEW))
        await writer.execute("SELECT pg_sleep($1)", 3 * SILENT_S)
        assert not waiting.done()
        present = await leads(writer)
        assert present is not None and present.application.startswith("ledgerline preview ")
        assert present.beat_age_s is not None and present.beat_age_s < SILENT_S
        waiting.cancel()


@pytest.mark.parametrize("beats_first", [True, False], ids=["its beats stop", "it never beats"])
async def test_a_hung_leader_is_replaced_and_cannot_commit(connect: Connect, *, beats_first: bool) -> None:
    hung, standby = await connect(), await connect()
    await leading.take_the_lead(hung, PREVIEW)
    if beats_first:
        assert await leader.beat(hung, PREVIEW, hung.get_server_pid(), [])
    under_way = hung.transaction()
    await under_way.start()
    await hung.execute("INSERT INTO genesis_output VALUES (-1, 3, '\\x01', '\\x02')")
    assert await seconds_until_led(standby) >= SILENT_S * 0.9
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await under_way.commit()
    assert await standby.fetchval("SELECT count(*) FROM genesis_output") == 0


async def test_a_heartbeat_of_another_session_does_not_count(connect: Connect) -> None:
    hung, standby = await connect(), await connect()
    await leading.take_the_lead(hung, PREVIEW)
    assert not await leader.beat(standby, PREVIEW, standby.get_server_pid(), []), "it does not hold the lock"
    assert not await leader.beat(hung, MAINNET, hung.get_server_pid(), []), "nor does this one that of mainnet"
    assert await leader.beat(hung, PREVIEW, hung.get_server_pid(), [])
    await standby.execute("UPDATE partner.leader SET backend_pid = 0, beat_at = now() + interval '1 hour'")
    present = await leads(standby)
    assert present is not None and present.beat_age_s is None
    assert await seconds_until_led(standby) >= SILENT_S * 0.9


async def test_only_a_leading_session_is_terminated(connect: Connect) -> None:
    writer, other = await connect(), await connect()
    await leading.take_the_lead(writer, PREVIEW)
    present = await leads(other)
    assert present is not None
    await leader.terminate(writer, leader.Leader(PREVIEW.network_id, other.get_server_pid(), "", 30, 0))
    await leader.terminate(other, leader.Leader(MAINNET.network_id, present.backend_pid, "", 30, 0))
    assert await other.fetchval("SELECT 1") == await writer.fetchval("SELECT 1") == 1


async def test_a_session_that_lost_the_lock_is_closed_by_its_heartbeat(connect: Connect, database_url: str) -> None:
    writer = await connect()
    await leading.take_the_lead(writer, PREVIEW)
    async with leading.sending_heartbeats(database_url, PREVIEW, writer):
        await writer.execute("SELECT pg_advisory_unlock_all()")
        async with asyncio.timeout(PATIENCE_S):
            while not writer.is_closed():
                await asyncio.sleep(0.05)


async def test_a_newer_schema_ends_leader_and_standby(connect: Connect, database_url: str) -> None:
    writer, standby = await connect(), await connect()
    await leading.take_the_lead(writer, PREVIEW)
    async with leading.sending_heartbeats(database_url, PREVIEW, writer):
        waiting = asyncio.create_task(leading.take_the_lead(standby, PREVIEW))
        await writer.execute("UPDATE partner.schema_version SET version = 9999")
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(schema.WrongSchema):
                await waiting
            while not writer.is_closed():
                await asyncio.sleep(0.05)
