"""The rewards of an account by epoch, for `/accounts/{stake_address}/rewards`.

What the beginning of an epoch paid into an account is known by its readings (`reward_epoch`). What it was paid for
follows from history: rewards are those of two epochs before, in which the account's pool, or one whose reward account
it is, made blocks; deposits are those of pools that retired then.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from api.ask import Notes
from api.blockfrost.paging import Page
from api.chain.pools import show_pool_id
from shared import packed, sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, PAID_AFTER_EPOCHS, PoolNo, StakeNo, tx_id_of
from shared.network import POOL_DEPOSIT, Network
from shared.sql import Connection

entries_of = struct.Struct(">Bqq").iter_unpack
"""The entries of a row of `reward_epoch`: the last bits of each stake_no, what it held and what it was paid."""


class Reward(msgspec.Struct, frozen=True):
    """A reward by the epoch in which it was earned, or the deposit of a pool by the epoch at whose start it retired."""

    epoch: int
    amount: str
    pool_id: str
    type: Literal["leader", "member", "pool_deposit_refund"]


class Event(msgspec.Struct, frozen=True):
    """A registration, delegation or deregistration of the account."""

    kind: str
    pool_no: PoolNo | None
    epoch_no: int


class PoolUpdate(msgspec.Struct, frozen=True):
    """A registration of a pool whose reward account it is or was; with parameters if this one names it."""

    tx_id: int
    pool_no: PoolNo
    parameters: bytes | None


class Reaping(msgspec.Struct, frozen=True):
    """The retirement of a pool to which the account delegated, or whose deposit it was to get (`refunds`)."""

    pool_no: PoolNo
    epoch_no: int
    refunds: bool


class _Paid(msgspec.Struct, frozen=True):
    epoch_no: int
    entries: bytes


class _Made(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    epoch_no: int


class _Pool(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    pool_id: bytes


class Past(msgspec.Struct, frozen=True):
    """What history knows of an account: its events, in order, and its pools with the epochs of their blocks."""

    raw: bytes
    network: Network
    events: Sequence[Event]
    updates: Sequence[PoolUpdate]
    reapings: Sequence[Reaping]
    made: frozenset[tuple[PoolNo, int]]

    def reasons(self, epoch: int) -> Iterator[tuple[Literal["leader", "member"], PoolNo]]:
        """What the account may have been rewarded for in an epoch; the owners of a pool are no members of it."""
        if epoch < 1:
            return
        leads = dict[PoolNo, bytes | None]()
        for update in self.updates:
            if update.tx_id < tx_id_of(self.network.epoch_start(epoch - 1), 0):
                leads[update.pool_no] = update.parameters
        for pool_no, parameters in sorted(leads.items()):
            if parameters is not None and (pool_no, epoch) in self.made:
                yield "leader", pool_no
        joined = self.delegated(epoch)
        if joined is not None and (joined, epoch) in self.made:
            parameters = leads.get(joined)
            if parameters is None or self.raw not in packed.unpack_pool_parameters(parameters).owners:
                yield "member", joined

    def delegated(self, epoch: int) -> PoolNo | None:
        """The pool for which the account's stake counted in an epoch."""
        event = self._last(epoch - ACTIVE_AFTER_EPOCHS)
        if event is None or event.pool_no is None:
            return None
        ended = any(
            reaping.pool_no == event.pool_no and event.epoch_no < reaping.epoch_no <= epoch - ACTIVE_AFTER_EPOCHS
            for reaping in self.reapings
        )
        return None if ended else event.pool_no

    def refunds(self, epoch: int) -> Iterator[PoolNo]:
        """The pools whose deposits the beginning of an epoch returned to the account, if it was registered then."""
        before = self._last(epoch - 1)
        if before is not None and before.kind != "deregistration":
            yield from (each.pool_no for each in self.reapings if each.refunds and each.epoch_no == epoch)

    def _last(self, epoch: int) -> Event | None:
        """The last event up to the end of an epoch."""
        return next((event for event in reversed(self.events) if event.epoch_no <= epoch), None)


_sql = sql.beside(__file__)
_stake_no = _sql.values("stake_no", StakeNo)
_rounds = _sql.values("rounds", int)
_paid = _sql.query("paid", _Paid)
_events = _sql.query("events", Event)
_updates = _sql.query("updates", PoolUpdate)
_reapings = _sql.query("reapings", Reaping)
_made = _sql.query("made", _Made)
_pools = _sql.query("pools", _Pool)


async def page(db: Connection, account: bytes, asked: Page, network: Network, notes: Notes) -> list[Reward]:
    """A page of the rewards of an account, in a snapshot, by epoch. Notes the epochs for which they are known."""
    rounds = await _rounds.all(db)
    notes.known_epochs = show_epochs([epoch_no - PAID_AFTER_EPOCHS for epoch_no in rounds])
    known = await past(db, account, network)
    if known is None:
        return []
    stake_no, history = known
    paid = {
        row.epoch_no: paid
        for row in await _paid.all(db, stake_no >> 6)
        for number, _, paid in entries_of(row.entries)
        if number == stake_no & 63
    }
    found = list(rewards(history, paid, rounds))
    found.sort(key=lambda each: each[1])
    found.sort(key=lambda each: each[0], reverse=asked.order == "desc")
    listed = found[asked.offset : asked.offset + asked.count]
    pools = {row.pool_no: show_pool_id(row.pool_id) for row in await _pools.all(db, [each[2] for each in listed])}
    return [Reward(epoch, str(lovelace), pools[pool_no], kind) for epoch, kind, pool_no, lovelace in listed]


def rewards(
    history: Past, paid: dict[int, int], known: Iterable[int]
) -> Iterator[tuple[int, Literal["leader", "member", "pool_deposit_refund"], PoolNo, int]]:
    """The rewards and returned deposits, given what the beginning of each epoch paid where that is `known`: the epoch
    as Blockfrost counts it, the type, the pool and the lovelace. Pure.

    Deposits are known in all epochs. A payment without a reason of these kinds is left out: it comes from the treasury,
    the reserves or a proposal. If an account is rewarded for several reasons at once, the first has all of it.
    """
    returned = {epoch: list(history.refunds(epoch)) for epoch in {each.epoch_no for each in history.reapings}}
    for epoch, pools in returned.items():
        for pool_no in pools:
            yield epoch, "pool_deposit_refund", pool_no, POOL_DEPOSIT
    for epoch in known:
        lovelace = paid.get(epoch, 0) - POOL_DEPOSIT * len(returned.get(epoch, ()))
        reason = next(history.reasons(epoch - PAID_AFTER_EPOCHS), None) if lovelace > 0 else None
        if reason is not None:
            yield epoch - PAID_AFTER_EPOCHS, *reason, lovelace


def show_epochs(epochs: Sequence[int]) -> str:
    """Ascending epochs as ranges, such as `210-215,218-220`; `none` without any."""
    ranges: list[list[int]] = []
    for epoch in epochs:
        if ranges and ranges[-1][1] == epoch - 1:
            ranges[-1][1] = epoch
        else:
            ranges.append([epoch, epoch])
    return ",".join(f"{first}-{last}" for first, last in ranges) or "none"


async def past(db: Connection, account: bytes, network: Network) -> tuple[StakeNo, Past] | None:
    """The number of an account and what history knows of it, in a snapshot; None if no block names it."""
    stake_no = await _stake_no.one(db, account)
    if stake_no is None:
        return None
    events, updates = await _events.all(db, stake_no), await _updates.all(db, stake_no)
    pools = {event.pool_no for event in events if event.pool_no is not None} | {each.pool_no for each in updates}
    reapings = await _reapings.all(db, stake_no, list(pools))
    made = frozenset((row.pool_no, row.epoch_no) for row in await _made.all(db, list(pools)))
    return stake_no, Past(account, network, events, updates, reapings, made)
