"""After a rollback, the indexer's caches match the database."""

from random import Random
from typing import Any

import asyncpg
import pytest

from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.rows import caches, histories, resolver
from indexer.rows.caches import Recent
from indexer.rows.histories import AssetState, AssetStates
from indexer.rows.resolver import Resolver
from indexer.store import backward
from indexer.sync.pipeline import Arrived, Pipeline
from shared import database
from shared.ledger import Point
from shared.network import PREVIEW
from tests.chain.followers import following, reaches


@pytest.mark.parametrize(("seed", "most", "undone_at_once"), [(1, 500_000, 5_000), (2, 60, 5_000), (3, 500_000, 3)])
async def test_caches_survive_rollbacks(
    database_url: str, monkeypatch: pytest.MonkeyPatch, seed: int, most: int, undone_at_once: int
) -> None:
    """Also with trimmed caches, and with rollbacks of several commits."""
    for limit in ("MAX_OUTPUTS", "MAX_NUMBERS", "MAX_ADDRESSES"):
        monkeypatch.setattr(caches, limit, most)
    monkeypatch.setattr(backward, "MAX_UNDONE_BLOCKS", undone_at_once)
    db, other = await database.connect(database_url, PREVIEW), await database.connect(database_url, PREVIEW)
    undo, compared = Pipeline.backward, [0, 0]

    async def backward_and_compare(self: Pipeline, point: Point | None, arrived: Arrived) -> None:
        await undo(self, point, arrived)
        compared[0] += await _compare_assets(other, self._assets)
        compared[1] += await _compare_outputs(other, self._resolver)

    monkeypatch.setattr(Pipeline, "backward", backward_and_compare)
    random, chain = Random(seed), Generated(Options(seed=seed, blocks_per_epoch=20, density=3), 40)
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        for _ in range(12):
            depth = random.randint(1, min(12, len(chain.blocks) - 2))
            chain = chain.fork(len(chain.blocks) - 1 - depth, random.getrandbits(30), random.randint(0, depth + 5))
            node.switch(chain)
            await reaches(db, node, task)
    await db.close()
    await other.close()
    assert compared[0] > 20 and compared[1] > 100, compared


async def _compare_assets(db: asyncpg.Connection, known: AssetStates) -> int:
    """Compare the known states of assets; returns their number."""
    held = _entries(known._states)
    stored = {
        row.asset_no: AssetState(row.exists, row.is_minted, row.mints)
        for row in await histories._states.all(db, list(held))
    }
    assert held == stored
    return len(stored)


async def _compare_outputs(db: asyncpg.Connection, known: Resolver) -> int:
    """Compare the known outputs whose transactions are on the chain; returns their number."""
    fetched, of_genesis = await resolver._fetch(db, list(_entries(known.unspent)))
    stored = dict(zip(fetched, await resolver.resolve_outputs(db, list(fetched.values())), strict=True))
    assert {key: known.unspent.find(key) for key in stored} == stored
    places = [(output.tx_id, output.index) for output in stored.values()]
    places += [(one.tx_id, 0) for one in of_genesis.values()]
    unspent = {tuple(row) for row in await db.fetch("SELECT tx_id, output_index FROM utxo")}
    assert set(places) <= unspent
    return len(places)


def _entries(cache: Recent[Any, Any]) -> dict[Any, Any]:
    """Both halves of a cache."""
    return cache._older | dict(cache)
