"""The blocks that a pool made, for `/pools/{pool_id}/blocks` and `/epochs/{number}/blocks/{pool_id}`."""

from typing import Annotated

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost.epochs import EpochNumberKind
from api.blockfrost.paging import Page
from api.chain import epochs, tip
from api.chain.epochs import EpochQuestion
from api.chain.pools import PoolIdKind
from shared import sql
from shared.ledger import PoolNo
from shared.sql import Connection


class PoolBlocks(Page, frozen=True, kw_only=True):
    """A page of the blocks of a pool."""

    pool: Annotated[bytes, PoolIdKind()]


class PoolBlocksInEpoch(PoolBlocks, frozen=True, kw_only=True):
    """A page of the blocks of a pool in an epoch."""

    epoch: Annotated[int | None, EpochNumberKind()]


class _Made(msgspec.Struct, frozen=True):
    epoch_no: int
    skipped: int


_sql = sql.beside(__file__)
_pool_no = _sql.values("pool_no", PoolNo)
_first_epoch = {order: _sql.query("first_epoch", _Made, order=order) for order in ("asc", "desc")}
_hashes = {order: _sql.values("hashes", bytes, order=order) for order in ("asc", "desc")}
_FIRST_SLOT, _AFTER_ALL_SLOTS = 0, (1 << 63) - 1


async def listed(ask: ChainAsk[PoolBlocks]) -> list[str]:
    """List the hashes of the blocks that a pool made."""
    asked, network = ask.question, ask.network
    async with ask.snapshot() as db:
        pool_no = await _known(db, asked.pool)
        made = await _first_epoch[asked.order].one(db, pool_no, asked.offset)
        if made is None:
            return []
        slots = (network.epoch_start(made.epoch_no), _AFTER_ALL_SLOTS)
        if asked.order == "desc":
            slots = (_FIRST_SLOT, network.epoch_start(made.epoch_no + 1))
        return await _shown(db, asked, pool_no, slots, made.skipped)


async def in_epoch(ask: ChainAsk[PoolBlocksInEpoch]) -> list[str]:
    """List the hashes of the blocks that a pool made in an epoch."""
    asked = ask.question
    async with ask.snapshot() as db:
        epoch = (await epochs.get_epoch(ask.about(EpochQuestion(epoch=asked.epoch), db))).data
        pool_no = await _known(db, asked.pool)
        slots = (epoch.first_slot_no, epoch.last_slot_no + 1)
        return await _shown(db, asked, pool_no, slots, asked.offset)


async def _known(db: Connection, pool: bytes) -> PoolNo:
    """The number of a pool that is or was registered. Raises Refusal for others, and 503."""
    await tip.read(db)
    pool_no = await _pool_no.one(db, pool)
    if pool_no is None:
        raise errors.pool_not_found()
    return pool_no


async def _shown(db: Connection, asked: Page, pool_no: PoolNo, slots: tuple[int, int], skipped: int) -> list[str]:
    hashes = await _hashes[asked.order].all(db, pool_no, *slots, asked.count, skipped)
    return [block_hash.hex() for block_hash in hashes]
