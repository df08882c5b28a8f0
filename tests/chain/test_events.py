"""Logs of subscriptions over forks and kills: each tells exactly what surviving blocks say, and undoes the rest.

What is in no block is told once, and never undone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TypeVar

import asyncpg
import pytest

from api.events.follower import Follower
from devnet.generator import Generated, Options
from shared import database
from shared.network import PREVIEW
from tests.chain import folding
from tests.chain.fixtures import NewLedgerline
from tests.chain.folding import Subscription
from tests.chain.harness import Json, Ledgerline, Node, Process, issue_keys, until
from tests.chain.written import Written
from tests.patience import PATIENCE_S

Done = TypeVar("Done")

ERAS = (("alonzo", 0), ("babbage", 2), ("conway", 4))
FORKS, KILLED_WITHIN_S = 100, 0.02


class Disturbed:
    """A follower in this process, on a chain that is indexed in this process, too: so it can have many forks."""

    def __init__(self, database_url: str, random: Random) -> None:
        self._url, self.random = database_url, random
        self._chain: asyncpg.Pool | None = None
        self._writer: asyncpg.Connection | None = None
        self._follower: Follower | None = None
        self.kills = 0

    async def follow(self) -> None:
        """Do all that there is to do."""
        idle = 0
        while idle < 12:  # it looks for new subscriptions at every tenth step
            idle = 0 if await (await self._ready()).step() else idle + 1

    async def follow_until_killed(self) -> None:
        """Be killed at a random instant."""
        following = asyncio.ensure_future(self.follow())
        await asyncio.wait((following,), timeout=self.random.uniform(0, KILLED_WITHIN_S))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        self.end()
        self.kills += 1

    def end(self) -> None:
        """End without any farewell."""
        if self._writer is not None and self._chain is not None:
            self._writer.terminate()
            self._chain.terminate()
        self._writer = self._chain = self._follower = None

    async def _ready(self) -> Follower:
        if self._follower is None:
            self._writer = await database.connect(self._url)
            self._chain = await database.create_pool(self._url, PREVIEW, max_size=1)
            self._follower = Follower(PREVIEW, self._chain, self._writer)
        return self._follower


@pytest.mark.parametrize("seed", range(2))
async def test_a_hundred_forks_with_kills_leave_what_surviving_blocks_say(database_url: str, seed: int) -> None:
    """Half of them for each seed. Most forks are short, as on a real chain; some go below the first events."""
    random = Random(seed)
    chain = Generated(Options(seed=seed, blocks_per_epoch=25, density=2.5, eras=ERAS), 40)
    db = await asyncpg.connect(database_url)
    disturbed = Disturbed(database_url, random)
    indexing = await database.connect(database_url, PREVIEW)
    written, subscriptions, left = Written(indexing), list[Subscription](), 0
    try:
        await issue_a_key(db)
        for block in chain.blocks:
            await written.index(block.decoded())
        await disturbed.follow()
        for fork in range(FORKS // 2):
            if fork % 5 == 0:
                subscriptions.append(await folding.subscribe_at_random(db, random, decoded(chain)))
            depth = min(random.choice((1, 1, 2, 3, 8, 30)), len(chain.blocks) - 2)
            last = len(chain.blocks) - 1 - depth
            tip_slot = chain.blocks[-1].slot
            chain = chain.fork(last, random.getrandbits(30), random.randint(0, depth + 2))
            new = [block.decoded() for block in chain.blocks[last + 1 :]]
            await folding.submit(db, random, new, max(tip_slot, chain.blocks[-1].slot))
            await written.back_to(chain.blocks[last].slot)
            for block in chain.blocks[last + 1 :]:
                if random.random() < 0.3:
                    await folding.notice(db, random, subscriptions)
                    await disturbed.follow_until_killed()
                await written.index(block.decoded())
            if random.random() < 0.2:
                await disturbed.follow()
                left += await folding.check(db, decoded(chain), subscriptions)
        await disturbed.follow()
        assert left + await folding.check(db, decoded(chain), subscriptions) > 0
        assert disturbed.kills > FORKS // 4
    finally:
        disturbed.end()
        await indexing.close()
        await db.close()


def decoded(chain: Generated) -> list[Json]:
    return [block.decoded() for block in chain.blocks]


async def issue_a_key(db: asyncpg.Connection) -> None:
    """A credential that owns the subscriptions."""
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


class Service:
    """A node, its indexer and a follower, each a process, and all disturbed."""

    def __init__(self, random: Random, ledgerline: Ledgerline, node: Node, chain: Generated) -> None:
        self.random, self.ledgerline, self.node, self.chain = random, ledgerline, node, chain
        self.story: list[str] = []
        self.processes = [self.start(at) for at in range(2)]

    def start(self, at: int) -> Process:
        if at:
            return self.ledgerline.start("tests.chain.following", self.ledgerline.database_url)
        return self.ledgerline.start_indexer("preview", self.node.url)

    def kill(self, at: int) -> None:
        self.story.append(f"kill {at}")
        self.processes[at].kill()
        self.processes[at] = self.start(at)

    def cut(self) -> None:
        """Cut all connections to Postgres."""
        self.story.append("cut")
        self.ledgerline.rows(
            "preview",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'ledgerline%'",
        )

    def fork(self, deepest: int) -> None:
        depth = self.random.randint(1, min(deepest, len(self.chain.blocks) - 1))
        fresh = self.random.randint(0, depth + 3)
        self.story.append(f"fork {depth} back, {fresh} on")
        self.chain = self.chain.fork(len(self.chain.blocks) - 1 - depth, self.random.getrandbits(30), fresh)
        self.node.do(self.node.server.switch, self.chain)

    def grow(self, most: int) -> None:
        count = self.random.randint(1, most)
        self.story.append(f"grow {count}")
        self.node.do(self.node.server.grow, count)

    def settle(self) -> None:
        """Wait until the logs are complete up to the node's tip."""
        self.story.append("settle")
        tip = self.node.tip()
        statement = """
        SELECT encode(block_hash, 'hex') AS at,
               EXISTS (SELECT FROM partner.subscription WHERE state = 'catching_up') AS behind
        FROM partner.event_mark WHERE network_id = 1
        """

        def settled() -> bool:
            rows = self.ledgerline.rows("preview", statement)
            return bool(rows) and rows[0]["at"] == tip["id"] and not rows[0]["behind"]

        try:
            until("the mark is at the tip", settled, PATIENCE_S)
        except AssertionError as late:
            said = "\n".join(process.output()[-2000:] for process in self.processes)
            raise AssertionError(f"{late}: {self.story[-30:]}\n{said}") from None

    def on_database(self, do: Callable[[asyncpg.Connection], Awaitable[Done]]) -> Done:
        async def done() -> Done:
            db = await asyncpg.connect(self.ledgerline.database_url)
            try:
                return await do(db)
            finally:
                await db.close()

        return asyncio.run(done())

    def subscribe(self) -> Subscription:
        return self.on_database(lambda db: folding.subscribe_at_random(db, self.random, self.node.blocks()))

    def check(self, subscriptions: list[Subscription]) -> int:
        try:
            return self.on_database(lambda db: folding.check(db, self.node.blocks(), subscriptions))
        except AssertionError as wrong:
            raise AssertionError(f"{wrong} after {self.story[-30:]}") from None


@contextmanager
def running(random: Random, ledgerline: Ledgerline, chain: Generated) -> Iterator[Service]:
    with Node(chain) as node:
        service = Service(random, ledgerline, node, chain)
        try:
            asyncio.run(issue_keys(ledgerline.database_url, "preview", 1))
            service.settle()
            yield service
        finally:
            for process in service.processes:
                process.kill()


@pytest.mark.parametrize("seed", range(2))
def test_logs_survive_kills_of_indexer_and_follower(new_ledgerline: NewLedgerline, seed: int) -> None:
    """The same with real processes, at the speed at which blocks can be generated."""
    random = Random(seed)
    chain = Generated(Options(seed=seed, blocks_per_epoch=25, density=3, eras=ERAS), random.randint(30, 90))
    with running(random, new_ledgerline(), chain) as service:
        subscriptions, left = [service.subscribe() for _ in range(4)], 0
        for _ in range(40):
            match random.choice(("grow", "grow", "fork", "fork", "deep", "kill", "cut", "subscribe")):
                case "grow":
                    service.grow(6)
                case "fork":
                    service.fork(6)
                case "deep":
                    service.fork(70)
                case "kill":
                    service.kill(random.choice((0, 1, 1)))
                case "cut":
                    service.cut()
                case "subscribe" if len(subscriptions) < 12:
                    subscriptions.append(service.subscribe())
            time.sleep(random.choice((0, 0.02, 0.1, 0.3)))
            if random.random() < 0.15:
                service.settle()
                left += service.check(subscriptions)
        service.settle()
        assert left + service.check(subscriptions) > 0, service.story
