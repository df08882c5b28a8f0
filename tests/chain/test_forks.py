"""The index always matches the surviving blocks.

Chains grow, fork and roll back, connections drop, and the indexer is killed, in an order determined by a seed. The
database then equals, row by row, an index made from the surviving blocks without faults.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from random import Random

import asyncpg
import pytest

from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from shared import schema
from shared.ledger import SECURITY_PARAMETER
from shared.network import PREVIEW, Network
from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline, execute
from tests.chain.harness import Ledgerline, Node, Process, Rewardless, until
from tests.chain.planted import verified
from tests.chain.test_rewards import complete

Create = Callable[[asyncpg.Connection, Iterable[Network]], Awaitable[None]]

ERAS = (("alonzo", 0), ("babbage", 2), ("conway", 4))
# Each with the eras that an Ogmios of its version knows.
DIALECTS = [
    (Dialect((7, 0)), (*ERAS, ("dijkstra", 6))),
    (Dialect((6, 11)), ERAS),
    (Dialect((7, 0), metadata_cbor=False, detailed=True), (*ERAS, ("dijkstra", 6))),
    (Dialect((6, 14)), ERAS),
]


class Hardship:
    """A node and its indexer, under faults; `story` lists the faults."""

    def __init__(self, random: Random, ledgerline: Ledgerline, node: Node, chain: Generated) -> None:
        self.random, self.ledgerline, self.node, self.chain = random, ledgerline, node, chain
        self.story: list[str] = []
        self.process: Process = self.started()

    def started(self) -> Process:
        return self.ledgerline.start_indexer("preview", self.node.url)

    def grow(self, most: int) -> None:
        count = self.random.randint(1, most)
        self.story.append(f"grow {count}")
        self.node.do(self.node.server.grow, count)

    def fork(self, deepest: int) -> None:
        """Roll back up to `deepest` blocks, to a possibly shorter chain."""
        depth = self.random.randint(1, min(deepest, len(self.chain.blocks) - 1))
        self._fork(depth, self.random.randint(0, depth + 5))

    def fork_all(self) -> None:
        """Roll back nearly as many blocks as nodes of one chain do, to a chain that is longer."""
        depth = SECURITY_PARAMETER - self.random.randint(0, 500)
        self._fork(depth, depth + 5)

    def _fork(self, depth: int, fresh: int) -> None:
        self.story.append(f"fork {depth} back, {fresh} on")
        self.chain = self.chain.fork(len(self.chain.blocks) - 1 - depth, self.random.getrandbits(30), fresh)
        self.node.do(self.node.server.switch, self.chain)

    def drop(self) -> None:
        self.story.append("drop")
        self.node.do(self.node.server.drop_connections)

    def kill(self) -> None:
        """Send SIGKILL at a random instant."""
        self.story.append("kill")
        self.process.kill()
        self.process = self.started()

    def pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self.random.uniform(least_s, most_s))

    def finalized(self) -> int:
        """The number of steps from bulk to live that the running process has committed."""
        return self.process.output().count("bulk.step_completed")

    def has_begun(self) -> bool:
        return self.finalized() > 0 or "follow.intersected" in self.process.output()

    def settle(self, within_s: float = 60) -> None:
        """Let the indexer reach the node's tip."""
        self.story.append("settle")
        try:
            self.ledgerline.reaches("preview", self.node.tip(), self.process, within_s)
        except AssertionError as failure:
            raise AssertionError(f"{failure} after {self.story}") from None

    def read(self, ledgerline: Ledgerline) -> None:
        """Wait until an index has read the rewards that the node pays."""
        if not isinstance(self.node.server, Rewardless):
            complete(ledgerline, self.chain.ledger.epoch)

    def end(self, straight: Ledgerline) -> None:
        """Compare with an index of the same blocks without faults."""
        server = self.node.server
        self.settle()
        self.read(self.ledgerline)
        assert self.process.stop() == 0
        with (
            Node(self.chain, server.dialect, kind=type(server)) as node,
            straight.indexing("preview", node.url) as process,
        ):
            straight.reaches("preview", node.tip(), process)
            self.read(straight)
        assert differences(straight.dump("preview"), self.ledgerline.dump("preview")) == [], self.story
        assert asyncio.run(verified(self.ledgerline.database_url, PREVIEW)) == {}, self.story


@pytest.mark.parametrize("seed", range(4))
def test_an_index_with_faults_equals_one_without(new_ledgerline: NewLedgerline, seed: int) -> None:
    """At the tip: forks within and across epochs, on chains with every feature."""
    random = Random(seed)
    dialect, eras = DIALECTS[seed % len(DIALECTS)]
    chain = Generated(Options(seed=seed, blocks_per_epoch=30, density=3, eras=eras), random.randint(1, 200))
    with Node(chain, dialect, kind=NodeServer) as node:
        hardship = Hardship(random, new_ledgerline(), node, chain)
        try:
            for _ in range(30):
                action = random.choice(("grow", "grow", "grow", "fork", "fork", "deep", "drop", "kill", "settle"))
                match action:
                    case "grow":
                        hardship.grow(25)
                    case "fork":
                        hardship.fork(8)
                    case "deep":
                        hardship.fork(90)
                    case "drop":
                        hardship.drop()
                    case "kill":
                        hardship.kill()
                    case "settle":
                        hardship.settle()
                hardship.pause(0, 0.15)
            hardship.end(new_ledgerline())
        finally:
            hardship.process.kill()


SHORT_LISTS = """
CREATE OR REPLACE FUNCTION chain_preview.opens_bucket(number integer) RETURNS boolean LANGUAGE sql IMMUTABLE
AS 'SELECT number % 2 = 0';
CREATE OR REPLACE FUNCTION chain_preview.is_long_history(entries integer) RETURNS boolean LANGUAGE sql IMMUTABLE
AS 'SELECT entries > 5';
"""


async def create_with_short_lists(create: Create, db: asyncpg.Connection, networks: Iterable[Network]) -> None:
    """What verify compares with."""
    await create(db, networks)
    await db.execute(SHORT_LISTS)


@pytest.mark.parametrize("seed", [200, 202])
def test_long_lists_survive_faults(new_ledgerline: NewLedgerline, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every second number opens a bucket, instead of one in a thousand, so that short lists have buckets; and a history
    of 6 transactions is long, instead of one of 65.
    """
    random, ledgerline = Random(seed), new_ledgerline()
    asyncio.run(execute(ledgerline.database_url, SHORT_LISTS))
    monkeypatch.setattr(schema, "create", partial(create_with_short_lists, schema.create))
    tables = ("asset_bucket", "holder_bucket", "policy_holder_bucket", "address_sent", "account_sent")
    seen = set[str]()
    chain = Generated(Options(seed=seed, blocks_per_epoch=30, density=6, plain=0.1, eras=ERAS), 250)
    with Node(chain, kind=NodeServer) as node:
        hardship = Hardship(random, ledgerline, node, chain)
        try:
            for step in range(30):
                random.choice((lambda: hardship.grow(25), lambda: hardship.fork(8), lambda: hardship.fork(60)))()
                hardship.pause(0, 0.15)
                if step % 10 == 9:
                    hardship.settle()
                    seen.update(table for table in tables if ledgerline.rows("preview", f"SELECT FROM {table}"))
                    assert asyncio.run(verified(ledgerline.database_url, PREVIEW)) == {}, hardship.story
            assert seen == set(tables)
        finally:
            hardship.process.kill()


@pytest.mark.parametrize("seed", range(100, 102))
def test_bulk_survives_kills_and_rollbacks(new_ledgerline: NewLedgerline, seed: int) -> None:
    """Far from the tip: killed and disconnected in bulk, forked below the committed blocks, then far below its end."""
    random = Random(seed)
    dialect, eras = DIALECTS[seed % len(DIALECTS)]
    chain = Generated(Options(seed=seed, blocks_per_epoch=400, density=0.6, eras=eras), 4500)
    with Node(chain, dialect) as node:
        node.server.delay_s = 0.0005
        hardship = Hardship(random, new_ledgerline(), node, chain)
        try:
            for action in (hardship.kill, hardship.kill, hardship.drop, hardship.fork_all, hardship.kill):
                hardship.pause(0.7, 2)
                action()
            node.server.delay_s = 0
            hardship.settle(120)
            hardship.fork_all()
            hardship.pause(0, 0.5)
            hardship.kill()
            hardship.grow(50)
            hardship.end(new_ledgerline())
        finally:
            hardship.process.kill()


@pytest.mark.parametrize("forked", [False, True])
def test_each_step_from_bulk_to_live_survives_a_kill(new_ledgerline: NewLedgerline, forked: bool) -> None:
    """Killed as soon as each step is committed; in the second case the node then switches to another chain."""
    chain = Generated(Options(seed=7, blocks_per_epoch=400, density=0.6, eras=ERAS), 4500)
    with Node(chain) as node:
        hardship = Hardship(Random(7), new_ledgerline(), node, chain)
        try:
            until("the first step is committed", hardship.finalized, 60, every_s=0.0005)
            kills = 0
            while hardship.finalized():
                hardship.kill()
                kills += 1
                if forked and kills == 1:
                    hardship.fork_all()
                # To start takes a second, and each remaining step, which precedes the intersection, milliseconds.
                until("the indexer has started", hardship.process.output, 60, every_s=0.02)
                until("the next step or none is left", hardship.has_begun, 60, every_s=0.0005)
            assert kills > 1, "the steps were too quick"
            hardship.end(new_ledgerline())
        finally:
            hardship.process.kill()
