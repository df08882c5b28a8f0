"""The follower of a network: it reads the blocks that the indexer has committed, and writes the logs of subscriptions.

It knows by its own record which blocks it has told of. If the chain does not contain the last one any more, it undoes
what it has told, back to one that the chain contains, and goes on from there. Mark, record and events move in one
commit, so a kill at any instant loses and doubles nothing. One process of the usage aggregator follows each network:
the one whose connection has the lock, and which writes on that connection (docs/decisions/0078).
"""

import asyncio
from collections.abc import Mapping, Sequence

import asyncpg
import structlog

from api.chain.names import Renumbered
from api.events import happenings, submissions
from api.events import log as logs
from api.events.happenings import BlockPoint, BlockRow, ChainEnd, Reader
from api.events.log import Block, CatchingUp, Held, Mark, Matched
from shared import database, schema
from shared.network import Network

log = structlog.get_logger()

LOOK_EVERY_S = 0.05
_LOOKS_FOR_NEW = 10  # how many of these looks pass until new subscriptions and notices are looked for
_TRY_EVERY_S = 1.0

MAX_BLOCKS, MAX_TRANSACTIONS = 50, 250
"""The most that one commit tells of, except that a block is told of as a whole."""

MAX_UNDONE_BLOCKS = 50
"""The most that one commit undoes."""

MAX_CATCHING_UP = 1_000
"""How many subscriptions catch up together, from each end."""

MAX_NOTICES = 1_000
"""The most that one commit tells of what is in no block."""

_PAGE = 200  # remembered blocks that are compared with the chain at a time


async def run(pool: asyncpg.Pool, database_url: str, network: Network) -> None:
    """Follow a network whenever no other process does, until cancelled. `pool` is of the partners' tables."""
    while True:
        async with pool.acquire() as db:
            followed = await logs.is_followed(db, network)
        if not followed:
            await _lead(database_url, network)
        await asyncio.sleep(_TRY_EVERY_S)


async def _lead(database_url: str, network: Network) -> None:
    """Follow a network with the lock, until cancelled; returns at once if another process got it first."""
    writer = await database.connect(database_url)
    try:
        if not await logs.try_to_follow(writer, network):
            return
        log.info("events.following", network=network.name)
        async with await database.create_pool(database_url, network, max_size=1) as chain:
            follower = Follower(network, chain, writer)
            while True:
                if not await follower.step():
                    await asyncio.sleep(LOOK_EVERY_S)
    finally:
        writer.terminate()


class Follower:
    """Follows one network. Each `step` is at most one commit."""

    def __init__(self, network: Network, chain: asyncpg.Pool, writer: asyncpg.Connection) -> None:
        self._network, self._chain, self._db = network, chain, writer
        self._mark: Mark | None = None
        self._catching: list[CatchingUp] = []
        self._nearest = False
        self._looks = 0

    async def step(self) -> bool:
        """Do the next thing; False if there is nothing to do now."""
        try:
            return await self._step()
        except (logs.Moved, Renumbered):
            self._mark = None  # read everything again
            return True

    async def _step(self) -> bool:
        async with self._chain.acquire() as chain:
            end = await happenings.chain_end.one(chain)
            if end is None:
                return False
            if self._mark is None:
                self._mark = await logs.mark_of(self._db, self._network)
                if self._mark is None:
                    return await self._begin(chain)
            self._looks += 1
            if self._looks % _LOOKS_FOR_NEW == 1:
                if not self._catching:
                    self._catching = await logs.catching_up(self._db, self._network, MAX_CATCHING_UP)
                if await logs.has_notices(self._db, self._network):
                    await self._notify(self._mark)
                    return True
            if self._mark.block_hash == end.block_hash and not self._catching:
                return False
            async with chain.transaction(isolation="repeatable_read", readonly=True):
                return await self._read(chain, self._mark)

    async def _begin(self, chain: asyncpg.Connection) -> bool:
        """Set the first mark: to the tip, with the blocks before it, since a fork may begin among them."""
        blocks = await happenings.last_blocks.all(chain, logs.KEPT_BLOCKS)
        async with schema.commit(self._db):
            await logs.begin(self._db, self._network, blocks)
        log.info("events.begun", network=self._network.name, slot_no=blocks[-1].slot_no)
        return True

    async def _notify(self, mark: Mark) -> None:
        """Tell of what is in no block."""
        async with schema.commit(self._db):
            await logs.hold(self._db, self._network, mark)
            await logs.tell_notices(self._db, self._network, mark, MAX_NOTICES)

    async def _read(self, chain: asyncpg.Connection, mark: Mark) -> bool:
        """Go on from the mark in a snapshot of the chain."""
        end = await happenings.chain_end.one(chain)
        if end is None:
            return False
        if not await _has(chain, mark):
            return await self._undo(chain, end, mark)
        reader = Reader(chain, self._network, end)
        if mark.slot_no < end.slot_no:
            await self._forward(chain, reader, mark, end)
            return True
        if self._catching:
            await self._catch_up(chain, reader, mark)
            return True
        return False

    async def _forward(self, chain: asyncpg.Connection, reader: Reader, mark: Mark, end: ChainEnd) -> None:
        """Tell the live subscriptions of the next blocks after the mark."""
        rows = _cut(await happenings.blocks_between.all(chain, mark.slot_no, end.slot_no, MAX_BLOCKS))
        async with schema.commit(self._db):
            # NOTE: subjects are looked up while the mark is held: whoever adds one meanwhile waits, and then knows the
            # first step that may tell of it.
            held = await logs.hold(self._db, self._network, mark)
            moved = await logs.move(self._db, self._network, mark, rows)
            if held.is_watched:
                blocks = await self._blocks(chain, reader, rows, held)
                matched = await logs.matches(self._db, self._network, blocks)
                steps = {row.block_hash: mark.step + nth for nth, row in enumerate(rows, 1)}
                await self._append(reader, steps, matched)
            if held.is_watched or held.has_waiting:
                await logs.tell_due(self._db, self._network, moved)
        self._mark = moved

    async def _catch_up(self, chain: asyncpg.Connection, reader: Reader, mark: Mark) -> None:
        """Tell some subscriptions of the next blocks up to the mark.

        In turn those that are furthest behind, and those that are nearest to the mark: a new one does not wait until
        another has read a month. The former take along all that they reach, so the latter at most double their time.
        """
        self._nearest = not self._nearest
        behind = (max if self._nearest else min)(each.at_slot_no for each in self._catching)
        rows = _cut(await happenings.blocks_between.all(chain, behind, mark.slot_no, MAX_BLOCKS))
        upto = rows[-1].slot_no if rows else mark.slot_no
        these = [each for each in self._catching if behind <= each.at_slot_no <= upto]
        async with schema.commit(self._db):
            held = await logs.hold(self._db, self._network, mark)
            if rows:
                blocks = await self._blocks(chain, reader, rows, held)
                matched = await logs.matches(self._db, self._network, blocks, these)
                steps = await logs.steps(self._db, self._network, rows[0], rows[-1])
                await self._append(reader, steps, matched)
                await logs.tell_due(self._db, self._network, mark)
            await logs.caught_up(self._db, these, upto, mark.step if upto >= mark.slot_no else None)
        self._catching = await logs.catching_up(self._db, self._network, MAX_CATCHING_UP)

    async def _blocks(
        self, chain: asyncpg.Connection, reader: Reader, rows: Sequence[BlockRow], held: Held
    ) -> list[Block]:
        """Blocks with what happens in them, and to submitted transactions if anybody wants to be told of those."""
        found = await reader.read(rows)
        if held.has_submitters:
            also = await submissions.read(chain, self._db, self._network, rows)
            found = [[*some, *more] for some, more in zip(found, also, strict=True)]
        return [Block(row, some) for row, some in zip(rows, found, strict=True)]

    async def _append(self, reader: Reader, steps: Mapping[bytes, int], matched: Sequence[Matched]) -> None:
        await reader.name([each.happening for each in matched])
        await logs.append(self._db, self._network, steps, matched, await logs.made(matched))

    async def _undo(self, chain: asyncpg.Connection, end: ChainEnd, mark: Mark) -> bool:
        """Go back to the last block that the chain still contains, some blocks at a time; False to wait.

        An index that has not reached the remembered blocks is being built again. One that has others in the place of
        all of them is of another chain, which is told of from the first of these places on.
        """
        last, lowest = await self._last_in_common(chain, mark)
        if last is None:
            if end.block_no < lowest.block_no:
                return False
            last = BlockPoint(lowest.slot_no - 1, lowest.block_no - 1, b"")
        if mark.block_no - last.block_no > MAX_UNDONE_BLOCKS:
            last = (await logs.blocks_down(self._db, self._network, mark.block_no - MAX_UNDONE_BLOCKS, 1))[0]
        async with schema.commit(self._db):
            await logs.hold(self._db, self._network, mark)
            moved = await logs.undo(self._db, self._network, mark, last)
        self._mark, self._catching = moved, []
        log.info("events.undone", network=self._network.name, from_block_no=mark.block_no, to_block_no=last.block_no)
        return True

    async def _last_in_common(self, chain: asyncpg.Connection, mark: Mark) -> tuple[BlockPoint | None, BlockPoint]:
        """The last remembered block that the chain contains, if any, and the lowest one that was looked at."""
        lowest, below = BlockPoint(mark.slot_no, mark.block_no, mark.block_hash), mark.block_no
        while page := await logs.blocks_down(self._db, self._network, below, _PAGE):
            rows = await happenings.hashes.all(chain, [point.slot_no for point in page])
            present = {(row.slot_no, row.block_hash) for row in rows}
            for point in page:
                if (point.slot_no, point.block_hash) in present:
                    return point, point
            lowest = page[-1]
            below = lowest.block_no - 1
        return None, lowest


async def _has(chain: asyncpg.Connection, mark: Mark) -> bool:
    """Whether the chain contains the block of the mark."""
    if not mark.block_hash:
        return True
    return any(row.block_hash == mark.block_hash for row in await happenings.hashes.all(chain, [mark.slot_no]))


def _cut(rows: Sequence[BlockRow]) -> list[BlockRow]:
    """As many blocks as have MAX_TRANSACTIONS, at least one."""
    taken, transactions = list[BlockRow](), 0
    for row in rows:
        transactions += row.tx_count
        if taken and transactions > MAX_TRANSACTIONS:
            break
        taken.append(row)
    return taken
