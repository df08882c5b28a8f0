"""What a block costs the follower of events: `python -m bench.events`.

Blocks of 20 transactions, with no subscription, with 10,000 of one subject of which 20 match each block, with one of
100,000 addresses of which none does, and with both. CPU time of this process and of its sessions in Postgres.

Then how long after a block's commit its events arrive at the readers of streams. Indexer, follower, API and readers
share one process, so each waits for the others.
"""

import asyncio
import hashlib
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg

from api.events import follower as following
from api.events.follower import Follower
from api.events.subjects import key_of
from api.keys import tokens
from bench import databases
from shared import address, database, servers, settings, tasks
from shared.network import PREVIEW
from tests.api.client import serving
from tests.api.reading_streams import reading
from tests.chain.written import Json, Written, pays, person, tx

BLOCKS, TRANSACTIONS, STREAMS = 100, 20, 200
_SLOTS_PER_BLOCK = 20
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def block(number: int) -> list[Json]:
    """Payments of two outputs each; one of them goes to an address that is paid again and again."""
    return [
        tx(f"{number} {at}", pays(person(f"regular {at}", staked=True)), pays(person(f"{number} {at}", staked=True)))
        for at in range(TRANSACTIONS)
    ]


def keys(count: int, *, matching: int) -> list[bytes]:
    """The keys of addresses, some of them of those that each block pays."""
    paid = [address.of_node(person(f"regular {at}", staked=True)) for at in range(matching)]
    made_up = (hashlib.sha512(b"%d" % at).digest()[:57] for at in range(count - matching))
    return [key_of("transaction", "address", raw) for raw in (*paid, *made_up)]


async def subscribe(db: asyncpg.Connection, subjects: list[list[bytes]]) -> None:
    """Create live subscriptions, each with its subjects."""
    step = await db.fetchval("SELECT step FROM partner.event_mark")
    rows = await db.fetch(
        "INSERT INTO partner.subscription"
        " (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no, live_step, subjects)"
        " SELECT credential.id, 1, 0, 'live', 0, 0, $1, 1 FROM partner.credential, generate_series(1, $2)"
        " RETURNING subscription_no",
        step,
        len(subjects),
    )
    pairs = [(row[0], key) for row, some in zip(rows, subjects, strict=True) for key in some]
    await db.copy_records_to_table(
        "subject",
        schema_name="partner",
        columns=("subscription_no", "network_id", "direction", "least", "key"),
        records=[(number, 1, "both", 0, key) for number, key in pairs],
    )
    await db.execute("ANALYZE partner.subject, partner.subscription")


async def main() -> None:
    async with servers.running(settings.read()) as running:
        async with databases.fresh(running.database_url) as url:
            await measure(url)
        async with databases.fresh(running.database_url) as url:
            with TemporaryDirectory() as folder:
                settled = {"DATABASE_URL": url, "REDIS_URL": running.redis_url, "DATA_DIR": folder, "ACCESS_LOG": "off"}
                await measure_streams(url, settled)


async def measure_streams(url: str, environment: dict[str, str]) -> None:
    """Print how long events take from the commit of their block to readers, of which twenty get each block."""
    writer, other = await database.connect(url, PREVIEW), await database.connect(url)
    await _own_a_key(other)
    key = tokens.new_api_key()
    await other.execute(
        "UPDATE partner.credential SET key_hash = $1, rate_limit_per_minute = 10000", tokens.hash_of(key)
    )
    written, committed, took = Written(writer), dict[str, float](), list[float]()
    await written.append(0, *block(0))

    opened = asyncio.Semaphore(0)

    async def read(port: int, subscription: str) -> None:
        async with reading(port, subscription, key=key) as stream:
            await stream.next()
            opened.release()
            while True:
                event = await stream.next()
                if event.name == "apply":
                    took.append(time.perf_counter() - committed[event.data["block"]["block_hash"]])

    async with (
        await database.create_pool(url, None, max_size=1) as pool,
        tasks.background("events", lambda: following.run(pool, url, PREVIEW)),
        serving({**environment, "EVENTS_STREAMS_EACH": str(STREAMS)}) as api,
    ):
        while await other.fetchval("SELECT step FROM partner.event_mark") is None:
            await asyncio.sleep(0.05)
        matching = keys(TRANSACTIONS, matching=TRANSACTIONS)
        await subscribe(other, [[each] for each in matching + keys(STREAMS - TRANSACTIONS, matching=0)])
        ids = [row[0] for row in await other.fetch("SELECT id::text FROM partner.subscription")]
        readers = [asyncio.create_task(read(api.port, each)) for each in ids]
        for _ in readers:
            await opened.acquire()
        for number in range(1, BLOCKS + 1):
            block_hash = await written.append(number * _SLOTS_PER_BLOCK, *block(number))
            committed[block_hash] = time.perf_counter()
            await asyncio.sleep(0.25)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    for connection in (writer, other):
        await connection.close()
    took.sort()
    print(
        f"{STREAMS} streams, {len(took)} events of {BLOCKS} blocks: p50 {took[len(took) // 2] * 1e3:.0f} ms, p99"
        f" {took[len(took) * 99 // 100] * 1e3:.0f} ms, at most {took[-1] * 1e3:.0f} ms after their commit"
    )


async def measure(url: str) -> None:
    writer, partners, other = (
        await database.connect(url, PREVIEW),
        await database.connect(url),
        await database.connect(url),
    )
    await _own_a_key(other)
    written, number = Written(writer), 0
    async with await database.create_pool(url, PREVIEW, max_size=1) as pool:
        follower = Follower(PREVIEW, pool, partners)
        await written.append(0, *block(0))
        await follower.step()
        cases = {
            "none": [],
            "10,000 of 1 (20 match)": [[key] for key in keys(10_000, matching=TRANSACTIONS)],
            "1 of 100,000": [keys(100_000, matching=0)],
        }
        for name, subjects in cases.items():
            await other.execute("TRUNCATE partner.subject, partner.subscription CASCADE")
            await subscribe(other, subjects)
            pids = [partners.get_server_pid()]
            async with pool.acquire() as chain:
                pids.append(chain.get_server_pid())
            indexed, followed = 0.0, 0.0
            took = []
            for _ in range(BLOCKS):
                number += 1
                before = _cpu(writer.get_server_pid())
                await written.append(number * _SLOTS_PER_BLOCK, *block(number))
                indexed += _cpu(writer.get_server_pid()) - before
                before, began = _cpu(*pids), time.perf_counter()
                await follower.step()
                took.append(time.perf_counter() - began)
                followed += _cpu(*pids) - before
            took.sort()
            print(
                f"{name:24} index {indexed / BLOCKS * 1e3:6.2f} ms, events {followed / BLOCKS * 1e3:6.2f} ms of CPU a"
                f" block; events take {took[len(took) // 2] * 1e3:.1f} ms, at most {took[-1] * 1e3:.1f}"
            )
    for connection in (writer, partners, other):
        await connection.close()


def _cpu(*pids: int) -> float:
    """Seconds of CPU of this process and of sessions of Postgres."""
    ticks = sum(sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) for pid in pids)
    return time.process_time() + ticks / _TICKS_PER_S


async def _own_a_key(db: asyncpg.Connection) -> None:
    await db.execute(
        """
        WITH partner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('x', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'x' FROM partner RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 60, 1, '\\x00', '', 'x' FROM account
        """
    )


if __name__ == "__main__":
    asyncio.run(main())
