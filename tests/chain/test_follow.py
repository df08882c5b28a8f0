"""The loop between socket and store, in this process, with limits so small that short chains reach them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from devnet.generator import Generated, Options
from devnet.server import Server
from devnet.session import Session
from indexer import batches, known, store
from indexer.flags import Flags
from indexer.follow import Follower
from indexer.progress import Progress
from shared import database
from shared.network import PREVIEW
from tests.chain.dump import Dump, differences, dump


@asynccontextmanager
async def following(database_url: str, node: Server) -> AsyncIterator[asyncio.Task[None]]:
    """An indexer of preview, which stops at the end of the block."""
    stop = asyncio.Event()
    follower = Follower(PREVIEW, database_url, node.url, Progress(PREVIEW), Flags())
    task = asyncio.create_task(follower.run(stop))
    try:
        yield task
    finally:
        stop.set()
        await task


async def reaches(db: asyncpg.Connection, node: Server, task: asyncio.Task[None]) -> None:
    """Wait until the node's tip is ours. Raises what ended the indexer."""
    assert node.tip is not None
    async with asyncio.timeout(60):
        while not await db.fetchval("SELECT true FROM tip WHERE block_hash = $1", bytes.fromhex(node.tip.id)):
            if task.done():
                await task
            await asyncio.sleep(0.02)


async def indexed(db: asyncpg.Connection, database_url: str, node: Server) -> Dump:
    """Everything that a fresh index of the node's chain holds, which is erased again."""
    async with following(database_url, node) as task:
        await reaches(db, node, task)
    content = await dump(db, PREVIEW.schema)
    await store.erase(db)
    return content


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def test_caches_that_forget_at_once_still_know_what_is_not_committed(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Server(Generated(Options(seed=3, blocks_per_epoch=20, density=3), 60)) as node:
        straight = await indexed(db, database_url, node)
        for most in ("_REMEMBERED_OUTPUTS", "_REMEMBERED_NUMBERS", "_REMEMBERED_PAYEES"):
            monkeypatch.setattr(known, most, 2)
        monkeypatch.setattr(batches, "MOST_BLOCKS", 1)
        assert differences(straight, await indexed(db, database_url, node)) == []


BEYOND: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pools": ("protocolParameters", lambda told: told | {"desiredNumberOfStakePools": 1 << 40}),
    "reserves": ("treasuryAndReserves", lambda told: told | {"reserves": {"ada": {"lovelace": 1 << 64}}}),
    "rewards": (
        "rewardAccountSummaries",
        lambda told: [each | {"rewards": {"ada": {"lovelace": 1 << 63}}} for each in told],
    ),
}


@pytest.mark.parametrize("case", BEYOND)
async def test_figures_that_no_ledger_has_are_not_in_the_way_of_following(
    db: asyncpg.Connection, database_url: str, case: str
) -> None:
    name, beyond = BEYOND[case]

    class Nonsense(Server):
        def query(self, session: Session, method: str, params: Any) -> Any:
            told = super().query(session, method, params)
            return beyond(told) if method == f"queryLedgerState/{name}" else told

    chain = Generated(Options(seed=3, blocks_per_epoch=20, density=3, eras=(("conway", 0),)), 60)
    async with Nonsense(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        async with asyncio.timeout(20):
            while not node.requests[f"queryLedgerState/{name}"]:
                await asyncio.sleep(0.02)
        node.grow(5)
        await reaches(db, node, task)
        assert not task.done()
