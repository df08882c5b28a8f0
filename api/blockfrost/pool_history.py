"""The epochs of a pool, for `/pools/{pool_id}/history`."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost.paging import Page
from api.blockfrost.rewards import active_epochs, show_epochs
from api.chain import network, tip
from api.chain.pools import PoolIdKind
from shared import packed, sql
from shared.ledger import PoolNo


class PoolEpochs(Page, frozen=True, kw_only=True):
    """A page of the epochs of a pool."""

    pool: Annotated[bytes, PoolIdKind()]


class PoolEpoch(msgspec.Struct, frozen=True):
    """A pool in an epoch. `fees` is the part of the rewards that its operator takes before they are shared."""

    epoch: int
    blocks: int
    active_stake: str
    active_size: float
    delegators_count: int
    rewards: str
    fees: str


class _Row(msgspec.Struct, frozen=True):
    epoch_no: int
    blocks: int
    active_stake: int
    delegators: int
    rewards: int


class _Update(msgspec.Struct, frozen=True):
    tx_id: int
    parameters: bytes


_sql = sql.beside(__file__)
_pool_no = _sql.values("pool_no", PoolNo)
_known = _sql.values("known", int)
_epochs = {order: _sql.query("epochs", _Row, order=order) for order in ("asc", "desc")}
_updates = _sql.query("updates", _Update)
_reapings = _sql.values("reapings", int)


async def listed(ask: ChainAsk[PoolEpochs]) -> list[PoolEpoch]:
    """List the past epochs in which a pool had delegators. Names those that are known in a header."""
    asked = ask.question
    async with ask.snapshot() as db:
        await tip.read(db)
        pool_no = await _pool_no.one(db, asked.pool)
        if pool_no is None:
            raise errors.pool_not_found()
        ask.notes.known_epochs = show_epochs(await _known.all(db))
        rows = await _epochs[asked.order].all(db, pool_no, asked.count, asked.offset)
        stakes = await network.active_stakes(db, ask.network, [row.epoch_no for row in rows])
        updates, reapings = await _updates.all(db, pool_no), await _reapings.all(db, pool_no)
    since = active_epochs([update.tx_id for update in updates], reapings, ask.network)
    active_from = list(zip(since, updates, strict=True))
    return [
        PoolEpoch(
            row.epoch_no,
            row.blocks,
            str(row.active_stake),
            row.active_stake / whole if whole else 0.0,
            row.delegators,
            str(row.rewards),
            str(_fees(row, [update.parameters for epoch, update in active_from if epoch <= row.epoch_no])),
        )
        for row, whole in zip(rows, stakes, strict=True)
    ]


def _fees(row: _Row, parameters: Sequence[bytes]) -> int:
    """The operator's part, by the parameters that counted last: the cost, and the margin of what is left."""
    if not parameters:
        return 0
    registered = packed.unpack_pool_parameters(parameters[-1])
    if row.rewards < registered.fixed_cost:
        return row.rewards
    return int(registered.fixed_cost + (row.rewards - registered.fixed_cost) * Fraction(registered.margin))
