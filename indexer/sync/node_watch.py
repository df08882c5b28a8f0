"""Compare the nodes of a network with each other: docs/decisions/0080.

Every few seconds each node that is not followed is asked for its tip, and for the last block that it shares with the
index. That takes a few questions with a bounded number of our points; no block is read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer.blocks import eras, genesis
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.store import position
from indexer.sync import phase
from indexer.sync.choice import NodeChoice
from indexer.sync.signals import Signals
from shared import database, splits
from shared.ledger import Point
from shared.network import Network
from shared.phase import Phase
from shared.setting_forms import masked
from shared.splits import ChainBlock, WatchedNode

log = structlog.get_logger()

LOOK_EVERY_S, LOOK_WITHIN_S = 5.0, 10.0
POINTS = 32
"""The most points of our chain in one question."""

Blocks = Callable[[Sequence[int]], Awaitable[list[ChainBlock]]]
"""Our blocks with these numbers, those that there are, the last one first."""
Ask = Callable[[Sequence[ChainBlock]], Awaitable[tuple[ChainBlock | None, ChainBlock | None]]]
"""The first of these blocks that the node has, and its tip; None for none."""


class ChainMoved(Exception):
    """Our chain or the node's has changed between two questions."""


class Compared(msgspec.Struct, frozen=True):
    """The tips of two chains (None: the origin), and their last common block, if any."""

    ours: ChainBlock
    theirs: ChainBlock | None
    common: ChainBlock | None


async def compare(first: int, last: int, blocks: Blocks, ask: Ask) -> Compared:
    """Compare a node's chain with ours, whose blocks have the numbers from `first` to `last`. Raises ChainMoved.

    The first question has points with doubling distances from our tip. Each further one divides what is left by
    POINTS: six questions are enough for ten million blocks.
    """
    offered = await blocks(_ladder(first, last))
    if not offered or offered[0].block_no != last:
        raise ChainMoved
    ours, common, below, above = offered[0], None, first - 1, last + 1
    while True:
        found, theirs = await ask(offered)
        if theirs is not None and below < theirs.block_no < last and theirs in await blocks([theirs.block_no]):
            return Compared(ours, theirs, theirs)
        if found is None:
            above = offered[-1].block_no
        else:
            place = offered.index(found)
            above = offered[place - 1].block_no if place else above
            common, below = found, found.block_no
        left = range(above - 1, below, -1)
        if not left:
            break
        offered = await blocks(left[:: -(-len(left) // POINTS)])
        if not offered:
            raise ChainMoved
    expected = [ours] if common in (None, ours) else [ours, common]
    if await blocks([block.block_no for block in expected]) != expected:
        raise ChainMoved
    return Compared(ours, theirs, common)


def _ladder(first: int, last: int) -> list[int]:
    """Numbers of blocks from the last to the first, with doubling distances."""
    distances = [0, *(1 << power for power in range(POINTS - 2))]
    return [*dict.fromkeys(max(last - distance, first) for distance in distances)]


class NodeWatch:
    """Compares the nodes of one network. `run` is for the leader, while it leads."""

    def __init__(
        self, network: Network, database_url: str, nodes: NodeChoice, split_blocks: int, signals: Signals
    ) -> None:
        self._network, self._database_url = network, database_url
        self._nodes, self._split_blocks, self._signals = nodes, split_blocks, signals
        self._connections: dict[int, ogmios.Ogmios] = {}
        self._turn = asyncio.Lock()  # of the connection to the database
        self._last: list[WatchedNode] = []

    async def run(self) -> None:
        """Look again and again until cancelled. Raises the errors of the database."""
        db = await database.connect(self._database_url, self._network)
        try:
            while True:
                await self._look(db)
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            db.terminate()
            for number in list(self._connections):
                await self._disconnect(number)

    async def _look(self, db: asyncpg.Connection) -> None:
        """Compare all nodes with a live index, and record splits."""
        index = await position.read(db)
        if index is None or phase.current(index) is not Phase.LIVE:
            self._signals.watched([])
            return
        followed = self._nodes.followed
        looks = [self._node(db, index, number, followed) for number in range(1, len(self._nodes.urls) + 1)]
        found = await asyncio.gather(*looks)
        await self._record(db, found)
        shown = [node for node, _ in found]
        self._log(shown)
        self._signals.watched(shown)

    async def _node(
        self, db: asyncpg.Connection, index: position.IndexPosition, number: int, followed: int | None
    ) -> tuple[WatchedNode, Compared | None]:
        if number == followed:
            await self._disconnect(number)
            return WatchedNode(number, "followed"), None

        async def blocks(numbers: Sequence[int]) -> list[ChainBlock]:
            async with self._turn:
                return [
                    ChainBlock(block.slot_no, block.block_no, block.block_hash.hex())
                    for block in await position.numbered(db, numbers)
                ]

        try:
            async with asyncio.timeout(LOOK_WITHIN_S):
                compared = await compare(index.first_block_no, index.block_no, blocks, await self._ask(number))
        except ChainMoved:
            before = [node for node in self._last if node.number == number]
            return before[0] if before else WatchedNode(number, "in_step"), None
        except genesis.WrongNetwork:
            await self._disconnect(number)
            return WatchedNode(number, "wrong_network"), None
        except (OSError, aiohttp.ClientError, ogmios.Refused, frames.Unreadable) as cause:
            await self._disconnect(number)
            log.debug("nodes.not_compared", network=self._network.name, node=number, cause=str(cause))
            return WatchedNode(number, "unreachable"), None
        word = splits.judge(compared.ours, compared.theirs, compared.common, self._split_blocks)
        return WatchedNode(number, word, compared.theirs, compared.common), compared

    async def _ask(self, number: int) -> Ask:
        """Questions to a node. Raises WrongNetwork, and the errors of the node."""
        node = self._connections.get(number)
        if node is None:
            node = await ogmios.connect(self._nodes.urls[number - 1], within_s=LOOK_WITHIN_S)
            self._connections[number] = node
            await eras.check(node, self._network)

        async def ask(offered: Sequence[ChainBlock]) -> tuple[ChainBlock | None, ChainBlock | None]:
            points = {Point(block.slot_no, bytes.fromhex(block.block_hash)): block for block in offered}
            found, tip = await node.intersect(list(points))
            return (
                None if found is None else points[found],
                None if tip is None else ChainBlock(tip.slot, tip.height, tip.point.block_hash.hex()),
            )

        return ask

    async def _record(self, db: asyncpg.Connection, found: Sequence[tuple[WatchedNode, Compared | None]]) -> None:
        """Note which chains differ. A node that can't be reached or compared leaves its split open."""
        still_open = set(await splits.open_nodes(db, self._network))
        for node, compared in found:
            if compared is not None and compared.theirs is not None and node.state == "diverged":
                await splits.note(db, self._network, node.number, compared.common, compared.ours, compared.theirs)
                still_open.discard(node.number)
            elif compared is None and node.state != "followed":
                still_open.discard(node.number)
        for number in still_open:
            await splits.end(db, self._network, number)

    def _log(self, nodes: list[WatchedNode]) -> None:
        """Log the nodes whose state has changed."""
        for node in nodes:
            if (node.number, node.state) not in {(last.number, last.state) for last in self._last}:
                log.log(
                    logging.INFO if node.state in ("followed", "in_step", "ahead") else logging.WARNING,
                    "follow.node_state",
                    network=self._network.name,
                    node=node.number,
                    state=node.state,
                    at=masked(self._nodes.urls[node.number - 1]),
                    tip=None if node.tip is None else node.tip.block_no,
                    common=None if node.common is None else node.common.block_no,
                )
        self._last = nodes

    async def _disconnect(self, number: int) -> None:
        node = self._connections.pop(number, None)
        if node is not None:
            await node.close()
