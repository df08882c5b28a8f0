"""The stake of accounts in past epochs, for `/epochs/{number}/stakes` and `/accounts/{stake_address}/history`.

A stake snapshot has what the outputs of each delegator held, and the reading of its epoch what its reward account held
then, deposits of pools included that were returned just after the snapshot.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec

from api import errors
from api.ask import ChainAsk, Notes
from api.blockfrost import refusals, rewards
from api.blockfrost.paging import Page, UnorderedPage
from api.chain import epochs
from api.chain.epochs import EpochKind, EpochQuestion
from api.chain.pools import PoolIdKind, show_pool_id
from shared import address, sql
from shared.ledger import PoolNo, StakeNo
from shared.network import POOL_DEPOSIT
from shared.sql import Connection

_members = struct.Struct(">iq").iter_unpack


class StakesPage(UnorderedPage, frozen=True, kw_only=True):
    """A page of the stakes in an epoch."""

    epoch: Annotated[int | None, EpochKind()]


class PoolStakesPage(StakesPage, frozen=True, kw_only=True):
    """A page of the stakes of a pool's delegators in an epoch."""

    pool: Annotated[bytes, PoolIdKind()]


PageT = TypeVar("PageT", bound=StakesPage)


class PoolStake(msgspec.Struct, frozen=True):
    """A delegator of a pool and its active stake."""

    stake_address: str
    amount: str


class Stake(PoolStake, frozen=True):
    """A delegator, its active stake and its pool."""

    pool_id: str


class ActiveStake(msgspec.Struct, frozen=True):
    """The stake of an account that counts in an epoch, and its pool."""

    active_epoch: int
    amount: str
    pool_id: str


class _Part(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    first_seq: int
    entries: bytes


class _Bounds(msgspec.Struct, frozen=True):
    first: int
    beyond: int


class _Held(msgspec.Struct, frozen=True):
    epoch_no: int
    chunk: int
    entries: bytes


class _Returned(msgspec.Struct, frozen=True):
    stake_no: StakeNo
    pools: int


class _Named(msgspec.Struct, frozen=True):
    number: int
    raw: bytes


class _Of(msgspec.Struct, frozen=True):
    epoch_no: int
    pool_no: PoolNo
    entries: bytes


_sql = sql.beside(__file__)
_known = _sql.values("known", int)
_pool_no = _sql.values("pool_no", PoolNo)
_parts = _sql.query("parts", _Part)
_bounds = _sql.query("bounds", _Bounds)
_held = _sql.query("held", _Held)
_returned = _sql.query("returned", _Returned)
_accounts = _sql.query("accounts", _Named)
_pools = _sql.query("pools", _Named)
_own = _sql.query("own", _Of)


async def in_epoch(ask: ChainAsk[StakesPage]) -> list[Stake]:
    """List the stakes that count in an epoch, pool by pool."""
    asked = ask.question
    async with ask.snapshot() as db:
        epoch_no = await _epoch(db, ask, asked.epoch)
        found = await _page(db, asked, epoch_no, None)
        shown = await _shown(db, epoch_no, found)
        pools = {row.number: show_pool_id(row.raw) for row in await _pools.all(db, [each[0] for each in found])}
    return [
        Stake(each.stake_address, each.amount, pools[pool_no]) for each, (pool_no, *_) in zip(shown, found, strict=True)
    ]


async def of_pool(ask: ChainAsk[PoolStakesPage]) -> list[PoolStake]:
    """List the stakes of a pool's delegators that count in an epoch."""
    asked = ask.question
    async with ask.snapshot() as db:
        epoch_no = await _epoch(db, ask, asked.epoch)
        pool_no = await _pool_no.one(db, asked.pool)
        if pool_no is None:
            raise errors.pool_not_found()
        return await _shown(db, epoch_no, await _page(db, asked, epoch_no, pool_no))


async def history(db: Connection, account: bytes, asked: Page, notes: Notes) -> list[ActiveStake]:
    """A page of the stakes of an account by epoch, in a snapshot. Notes the epochs for which they are known."""
    known = await _known.all(db)
    notes.known_epochs = rewards.show_epochs(known)
    found = await rewards.past(db, account)
    if found is None:
        return []
    stake_no, past = found
    delegated = [(epoch, pool_no) for epoch in known if (pool_no := past.delegated(epoch)) is not None]
    if asked.order == "desc":
        delegated.reverse()
    listed = delegated[asked.offset : asked.offset + asked.count]
    outputs = {
        row.epoch_no: lovelace
        for row in await _own.all(db, stake_no, *sql.columns(listed, empty=2))
        for number, lovelace in _members(row.entries)
        if number == stake_no
    }
    opened = [epoch - 1 for epoch, _ in listed]
    held = await _rewards_at(db, [stake_no], opened)
    pools = {row.number: show_pool_id(row.raw) for row in await _pools.all(db, [pool_no for _, pool_no in listed])}
    return [
        ActiveStake(
            epoch,
            str(
                outputs[epoch] + held.get((epoch - 1, stake_no), 0) - POOL_DEPOSIT * len(list(past.refunds(epoch - 1)))
            ),
            pools[pool_no],
        )
        for epoch, pool_no in listed
        if epoch in outputs
    ]


async def _epoch(db: Connection, ask: ChainAsk[PageT], epoch: int | None) -> int:
    """An epoch whose stakes are known. Raises Refusal for others."""
    epoch_no = (await epochs.get_epoch(ask.about(EpochQuestion(epoch=epoch), db))).data.epoch_no
    known = await _known.all(db)
    if epoch_no not in known:
        raise refusals.stakes_not_known(rewards.show_epochs(known))
    return epoch_no


async def _page(
    db: Connection, asked: StakesPage, epoch_no: int, pool_no: PoolNo | None
) -> list[tuple[PoolNo, StakeNo, int]]:
    """Pool, account and the lovelace in its outputs of each entry of a page."""
    first, beyond = asked.offset, asked.offset + asked.count
    if pool_no is not None:
        bounds = await _bounds.one(db, epoch_no, pool_no)
        if bounds is None:
            return []
        first, beyond = bounds.first + first, min(bounds.first + beyond, bounds.beyond)
    return [
        (row.pool_no, StakeNo(stake_no), lovelace)
        for row in await _parts.all(db, epoch_no, first, beyond)
        for seq, (stake_no, lovelace) in enumerate(_members(row.entries), row.first_seq)
        if first <= seq < beyond
    ]


async def _shown(db: Connection, epoch_no: int, found: Sequence[tuple[PoolNo, StakeNo, int]]) -> list[PoolStake]:
    accounts = [stake_no for _, stake_no, _ in found]
    texts = {row.number: address.show_stake(row.raw) for row in await _accounts.all(db, accounts)}
    held = await _rewards_at(db, accounts, [epoch_no - 1])
    returned = {row.stake_no: row.pools * POOL_DEPOSIT for row in await _returned.all(db, accounts, epoch_no - 1)}
    return [
        PoolStake(
            texts[stake_no],
            str(lovelace + held.get((epoch_no - 1, stake_no), 0) - returned.get(stake_no, 0)),
        )
        for _, stake_no, lovelace in found
    ]


async def _rewards_at(
    db: Connection, accounts: Sequence[StakeNo], epochs_begun: Sequence[int]
) -> Mapping[tuple[int, StakeNo], int]:
    """What accounts held at the beginning of epochs; nothing for those that held nothing."""
    chunks = sorted({stake_no >> 6 for stake_no in accounts})
    return {
        (row.epoch_no, StakeNo(row.chunk << 6 | number)): lovelace
        for row in await _held.all(db, chunks, epochs_begun)
        for number, lovelace, _ in rewards.entries_of(row.entries)
    }
