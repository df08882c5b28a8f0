"""How soon webhooks are sent: `python -m bench.webhooks`.

Each block pays 20 addresses, which 1,000 subscriptions of ten partners watch, 50 each, with a webhook at a host of its
own. Time from the commit of the block, and from that of its events, to the first byte at the endpoint; first alone,
then with ten endpoints beside them that accept connections and never answer. The follower and the sender share a loop,
as in the aggregator; the endpoint is a process of its own.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection as Pipe
from typing import cast

import asyncpg
import uvloop

from api.events import follower as following
from api.events.deliveries import Sender
from api.events.follower import Follower
from api.events.subjects import key_of
from api.sources import egress
from bench import databases
from shared import address, database, servers, settings
from shared.network import PREVIEW
from tests.chain.written import Json, Written, pays, person, tx
from tests.ports import free_port

WEBHOOKS, PARTNERS, TRANSACTIONS, BLOCKS, DEAD = 1_000, 10, 20, 10, 10
_PAUSE_S = 1.0  # between blocks, and until kept connections are open
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


def _endpoint(port: int, dead_port: int, pipe: Pipe) -> None:
    """Answer everything on one port and nothing on the other; send the time of each request."""

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.received = cast(asyncio.WriteTransport, transport), b""

        def data_received(self, data: bytes) -> None:
            if not self.received:
                pipe.send(time.monotonic())
            self.received += data
            head, _, body = self.received.partition(b"\r\n\r\n")
            if len(body) == int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or -1):
                self.transport.write(_ANSWER)
                self.received = b""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(Answering, "127.0.0.1", port, backlog=2_000)
        await loop.create_server(asyncio.Protocol, "127.0.0.1", dead_port, backlog=2_000)
        pipe.send(0.0)
        await asyncio.Event().wait()

    uvloop.run(serve())


def block(number: int) -> list[Json]:
    """Payments to the addresses that are watched."""
    return [tx(f"{number} {at}", pays(person(f"watched {at}", staked=True))) for at in range(TRANSACTIONS)]


async def own_webhooks(db: asyncpg.Connection, urls: Sequence[str]) -> None:
    """Live subscriptions of several partners, each of one address and with a webhook."""
    await db.execute(
        """
        WITH partner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions)
            SELECT 'x', '', '{}' FROM generate_series(1, $1) RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'x' FROM partner RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 60, 1, sha256(id::text::bytea), '', 'x' FROM account
        """,
        PARTNERS,
    )
    keys = [
        key_of("transaction", "address", address.of_node(person(f"watched {at}", staked=True)))
        for at in range(TRANSACTIONS)
    ]
    rows = await db.fetch(
        "INSERT INTO partner.subscription"
        " (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no, live_step, subjects)"
        " SELECT (array_agg(id))[1 + nth % $2], 1, 0, 'live', 0, 0, (SELECT step FROM partner.event_mark), 1"
        " FROM partner.credential, generate_series(0, $1 - 1) nth GROUP BY nth RETURNING subscription_no",
        len(urls),
        PARTNERS,
    )
    numbers = [row[0] for row in rows]
    await db.executemany(
        "INSERT INTO partner.subject VALUES ($1, 1, 'both', 0, $2)",
        [(number, keys[nth % TRANSACTIONS]) for nth, number in enumerate(numbers)],
    )
    await db.executemany(
        "INSERT INTO partner.webhook (subscription_no, url, secret, delivered_number) VALUES ($1, $2, $3, 0)",
        [(number, url, bytes(32)) for number, url in zip(numbers, urls, strict=True)],
    )
    await db.execute("ANALYZE")


async def main() -> None:
    """Run both cases."""
    async with servers.running(settings.read()) as running, databases.fresh(running.database_url) as url:
        await measure(url)


async def measure(url: str) -> None:
    """Send blocks, first alone and then beside dead endpoints."""
    writer, other = await database.connect(url, PREVIEW), await database.connect(url)
    connection, partners = await database.connect(url), await database.connect(url)
    port, dead_port = free_port(), free_port()
    pipe, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_endpoint, args=(port, dead_port, theirs), daemon=True)
    process.start()
    rules = egress.Rules(lambda address: address == "127.0.0.1", None, lambda _: ["127.0.0.1"])
    async with (
        await database.create_pool(url, PREVIEW, max_size=1) as pool,
        egress.opened(rules, most_kept=2_048, look_ups=64) as out,
    ):
        await asyncio.to_thread(pipe.recv)
        written, follower = Written(writer), Follower(PREVIEW, pool, partners)
        await written.append(0, *block(0))
        await follower.step()
        await own_webhooks(other, [f"http://h{nth}.example:{port}/" for nth in range(WEBHOOKS)])
        told: list[float] = []
        tasks = [asyncio.create_task(_follow(follower, told)), asyncio.create_task(Sender(connection, out).run())]
        number = 0
        for case in ("alone", f"beside {DEAD} dead endpoints"):
            if case != "alone":
                await own_webhooks(other, [f"http://dead{nth}.example:{dead_port}/" for nth in range(DEAD)])
            from_block, from_events, cpu = list[float](), list[float](), 0.0
            for nth in range(BLOCKS + 2):
                number += 1
                before = time.process_time()
                await written.append(20 * number, *block(number))
                committed = time.monotonic()
                at = await asyncio.to_thread(_times, pipe)
                await asyncio.sleep(_PAUSE_S / 2)
                if nth >= 2:  # the first ones open connections
                    cpu += time.process_time() - before
                    from_block += [each - committed for each in at]
                    from_events += [each - told[-1] for each in at]
                await asyncio.sleep(_PAUSE_S / 2)
            print(f"{case}: first byte after the block's commit {_shown(from_block)}, after the events'")
            print(
                f"  {_shown(from_events)}; CPU for an event, follower included: {cpu / BLOCKS / WEBHOOKS * 1e6:.0f} us"
            )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    process.terminate()
    for each in (writer, other, connection, partners):
        each.terminate()


async def _follow(follower: Follower, told: list[float]) -> None:
    while True:
        if await follower.step():
            told.append(time.monotonic())
        else:
            await asyncio.sleep(following.LOOK_EVERY_S)


def _times(pipe: Pipe) -> list[float]:
    """When the requests of a block began."""
    return [pipe.recv() for _ in range(WEBHOOKS)]


def _shown(seconds: list[float]) -> str:
    seconds.sort()
    p50, p99 = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]
    return f"p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms"


if __name__ == "__main__":
    asyncio.run(main())
