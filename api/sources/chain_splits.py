"""Refuses chain requests of a network while its chain is split, if the operator wants that: docs/decisions/0080."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api import errors
from api.http.turns import FairPool
from shared import sql, tasks
from shared.network import Network

LOOK_EVERY_S = 1.0

_sql = sql.beside(__file__)
_split = _sql.values("split", int)


class ChainSplits:
    """The networks whose chain requests this process refuses."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self._split: frozenset[int] = frozenset()

    def check(self, network: Network) -> None:
        """Raises Refusal while the chain is split and requests are to be refused."""
        if network.network_id in self._split:
            raise errors.chain_split()

    async def look(self, pool: FairPool) -> None:
        """Find out which chains are split now."""
        async with pool.acquire() as db:
            self._split = frozenset(await _split.all(db))


@asynccontextmanager
async def opened(pool: FairPool, *, refuses: bool) -> AsyncIterator[ChainSplits]:
    """Those of this process, which looks for splits until the block ends, unless it refuses nothing anyway."""
    chain_splits = ChainSplits(refuses=refuses)

    async def watch() -> None:
        while True:
            await chain_splits.look(pool)
            await asyncio.sleep(LOOK_EVERY_S)

    if not refuses:
        yield chain_splits
        return
    async with tasks.background("chain splits", watch):
        yield chain_splits
