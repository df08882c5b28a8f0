"""A reader that changes between stream, pages and client while the chain forks and the API restarts."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import aiohttp
from ledgerline_client import AsyncLedgerline

from api.events.follower import Follower
from api.events.subjects import key_of
from devnet.generator import Generated, Options
from shared import database
from shared.network import PREVIEW
from tests.api.client import serving
from tests.api.conftest import IssueKey
from tests.api.reading_streams import Stream, reading
from tests.api.relays import Relay, relaying
from tests.chain.written import Written
from tests.patience import PATIENCE_S

FORKS, RESTART_EVERY, CUT_EVERY = 24, 6, 4
Json = dict[str, Any]


class Reader:
    """Reads a log in all ways, one after the other, each for some events."""

    def __init__(self, relay: Relay, key: str, subscription: str, random: Random) -> None:
        self.port, self.key, self.subscription, self.random = relay.port, key, subscription, random
        self.seen: list[Json] = []
        self.url = f"http://127.0.0.1:{relay.port}"
        self.ways: list[Callable[[int, int], Awaitable[None]]] = [self.by_stream, self.by_pages, self.by_client]
        self.used: dict[str, int] = {}

    async def read(self) -> None:
        while True:
            way = self.random.choice(self.ways)
            before = self.after
            try:
                async with asyncio.timeout(1):
                    await way(self.after, self.random.randint(1, 12))
            except (aiohttp.ClientError, ConnectionError, StopAsyncIteration, TimeoutError):
                await asyncio.sleep(0.02)
            self.used[way.__name__] = self.used.get(way.__name__, 0) + self.after - before

    @property
    def after(self) -> int:
        return self.seen[-1]["number"] if self.seen else 0

    async def by_stream(self, after: int, most: int) -> None:
        headers = {"Last-Event-ID": str(after)} if after else {}
        async with reading(self.port, self.subscription, key=self.key, headers=headers) as stream:
            if stream.answer.status == 200:
                await self._take(stream, most)

    async def _take(self, stream: Stream, most: int) -> None:
        while most:
            event = await stream.next()
            if event.name in ("apply", "undo", "reset"):
                assert event.last_id == str(event.data["number"])
                self.seen.append(event.data)
                most -= 1

    async def by_pages(self, after: int, most: int) -> None:
        path = f"{self.url}/v1/subscriptions/{self.subscription}/events?after={after}&limit={most}&wait=1"
        headers = {"Authorization": f"Bearer {self.key}"}
        async with aiohttp.ClientSession() as session, session.get(path, headers=headers) as answer:
            if answer.status == 200:
                self.seen += (await answer.json())["data"]

    async def by_client(self, after: int, most: int) -> None:
        async with AsyncLedgerline(self.url, api_key=self.key) as service:
            async for event in service.subscribe(self.subscription, after=after):
                self.seen.append(dict(event))
                most -= 1
                if not most:
                    break


async def test_no_number_is_missing_or_doubled_whatever_way_events_are_read(
    environment: Mapping[str, str],
    issue_key: IssueKey,
    database_url: str,
    no_aggregator: None,  # noqa: ARG001
) -> None:
    random, key = Random(7), await issue_key()
    chain = Generated(Options(seed=7, blocks_per_epoch=25, density=1.5, eras=(("conway", 0),)), 20)
    indexing, partners = await database.connect(database_url, PREVIEW), await database.connect(database_url)
    async with await database.create_pool(database_url, PREVIEW, max_size=1) as pool, relaying() as relay:
        written, follower = Written(indexing), Follower(PREVIEW, pool, partners)
        for block in chain.blocks:
            await written.index(block.decoded())
        await follower.step()
        subscription: str = await partners.fetchval(
            "INSERT INTO partner.subscription"
            " (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no)"
            " SELECT id, 1, 0, 'catching_up', $1, $1 FROM partner.credential RETURNING id::text",
            chain.blocks[1].slot,
        )
        await partners.execute(
            "INSERT INTO partner.subject (subscription_no, network_id, key, direction, least)"
            " SELECT subscription_no, 1, $1, 'both', 0 FROM partner.subscription",
            key_of("block"),
        )
        reader = Reader(relay, key, subscription, random)
        following = asyncio.create_task(reader.read())
        for restart in range(FORKS // RESTART_EVERY):
            async with serving(environment) as api:
                relay.target = api.port
                for fork in range(RESTART_EVERY):
                    depth = min(random.choice((1, 1, 2, 5, 10)), len(chain.blocks) - 3)
                    last = len(chain.blocks) - 1 - depth
                    chain = chain.fork(last, random.getrandbits(30), random.randint(1, depth + 3))
                    await written.back_to(chain.blocks[last].slot)
                    for block in chain.blocks[last + 1 :]:
                        await written.index(block.decoded())
                    for _ in range(12):
                        await follower.step()
                    if fork % CUT_EVERY == 1:
                        relay.cut()
                    await asyncio.sleep(random.choice((0, 0.05, 0.2)))
                if restart == FORKS // RESTART_EVERY - 1:
                    await all_read(reader, partners)
                    pages = await whole_log(reader, api.port)
                relay.target = None
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert [event["number"] for event in reader.seen] == list(range(1, len(pages) + 1))
        assert reader.seen == pages
        assert {event["action"] for event in pages} >= {"apply", "undo"}
        assert min(reader.used.get(way.__name__, 0) for way in reader.ways) > 0, reader.used
    await indexing.close()
    await partners.close()


async def all_read(reader: Reader, partners: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while reader.after < await partners.fetchval("SELECT last_number FROM partner.subscription"):
            await asyncio.sleep(0.02)


async def whole_log(reader: Reader, port: int) -> list[Json]:
    async with AsyncLedgerline(f"http://127.0.0.1:{port}", api_key=reader.key) as service:
        return [dict(event) async for event in service.iterate_events(reader.subscription, limit=50)]
