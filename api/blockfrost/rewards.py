"""The rewards of an account by epoch, for `/accounts/{stake_address}/rewards`.

What the beginning of an epoch paid into an account is known by its readings (`reward_epoch`). What it was paid for
follows from history: rewards are those of two epochs before, in which the account's pool, or one whose reward account
it is, made blocks; deposits are those of pools that retired then.

NOTE: the account that a pool names need not agree, so anyone can register pools that name another's account. Such a
pool takes no rewards from the pool to which the account delegates, and costs little to look up until it makes blocks.
"""

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from api.ask import Notes
from api.blockfrost.paging import Page
from api.chain.pools import show_pool_id
from shared import sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, PAID_AFTER_EPOCHS, PoolNo, StakeNo, slot_of
from shared.network import POOL_DEPOSIT, Network
from shared.sql import Connection

_CHANGED_AFTER_EPOCHS = 3  # EPOCH rule: the snapshot is taken before changed parameters are adopted

entries_of = struct.Struct(">Bqq").iter_unpack
"""The entries of a row of `reward_epoch`: the last bits of each stake_no, what it held and what it was paid."""


Kind = Literal["leader", "member", "pool_deposit_refund"]
Found = tuple[int, Kind, PoolNo, int]
"""A reward or deposit: the epoch as Blockfrost counts it, the type, the pool and the lovelace."""


class Reward(msgspec.Struct, frozen=True):
    """A reward by the epoch in which it was earned, or the deposit of a pool by the epoch at whose start it retired."""

    epoch: int
    amount: str
    pool_id: str
    type: Kind


class Event(msgspec.Struct, frozen=True):
    """The last registration, delegation or deregistration of the account in an epoch."""

    kind: str
    pool_no: PoolNo | None
    epoch_no: int


class PoolUpdate(msgspec.Struct, frozen=True):
    """A registration of a pool whose reward account it is or was, and whether this one names it."""

    tx_id: int
    pool_no: PoolNo
    named: bool


class Reaping(msgspec.Struct, frozen=True):
    """The retirement of a pool to which the account delegated or that named it, and if it was to get the deposit."""

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


class Leading(msgspec.Struct, frozen=True):
    """The epochs from which the registrations of a pool count, ascending, and whether each names the account."""

    since: Sequence[int]
    named: Sequence[bool]

    def counts_in(self, epoch: int) -> bool:
        """Whether the account leads the pool in an epoch."""
        at = bisect_right(self.since, epoch)
        return at > 0 and self.named[at - 1]


class Past(msgspec.Struct, frozen=True):
    """What history knows of an account: the last event of each epoch, in order, and its pools' retirements."""

    events: Sequence[Event]
    reapings: Sequence[Reaping]

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

    def earned(self, paid: Mapping[int, int], known: Iterable[int]) -> dict[int, int]:
        """The lovelace that may be a reward, by the epoch in which it was earned: what the beginning of each epoch
        paid, where that is `known`, less returned deposits.
        """
        rest = {epoch: paid.get(epoch, 0) - POOL_DEPOSIT * len([*self.refunds(epoch)]) for epoch in known}
        return {epoch - PAID_AFTER_EPOCHS: lovelace for epoch, lovelace in rest.items() if lovelace > 0}

    def _last(self, epoch: int) -> Event | None:
        """The last event up to the end of an epoch."""
        at = bisect_right(self.events, epoch, key=lambda event: event.epoch_no)
        return self.events[at - 1] if at else None


_sql = sql.beside(__file__)
_stake_no = _sql.values("stake_no", StakeNo)
_rounds = _sql.values("rounds", int)
_paid = _sql.query("paid", _Paid)
_events = _sql.query("events", Event)
_reapings = _sql.query("reapings", Reaping)
_made = _sql.query("made", _Made)
_led_made = _sql.query("led_made", _Made)
_updates = _sql.query("updates", PoolUpdate)
_pools = _sql.query("pools", _Pool)


async def page(db: Connection, account: bytes, asked: Page, network: Network, notes: Notes) -> list[Reward]:
    """A page of the rewards of an account, in a snapshot, by epoch. Notes the epochs for which they are known."""
    rounds = await _rounds.all(db)
    notes.known_epochs = show_epochs([epoch_no - PAID_AFTER_EPOCHS for epoch_no in rounds])
    known = await past(db, account)
    if known is None:
        return []
    stake_no, history = known
    paid = {
        row.epoch_no: paid
        for row in await _paid.all(db, stake_no >> 6)
        for number, _, paid in entries_of(row.entries)
        if number == stake_no & 63
    }
    earned = history.earned(paid, rounds)
    made, leading = await _reasons(db, stake_no, history, list(earned), network)
    found = [*deposits(history), *rewards(history, earned, made, leading)]
    found.sort(key=lambda each: each[1])
    found.sort(key=lambda each: each[0], reverse=asked.order == "desc")
    listed = found[asked.offset : asked.offset + asked.count]
    pools = {row.pool_no: show_pool_id(row.pool_id) for row in await _pools.all(db, [each[2] for each in listed])}
    return [Reward(epoch, str(lovelace), pools[pool_no], kind) for epoch, kind, pool_no, lovelace in listed]


async def _reasons(
    db: Connection, stake_no: StakeNo, history: Past, epochs: list[int], network: Network
) -> tuple[dict[int, set[PoolNo]], dict[PoolNo, Leading]]:
    """The pools that made blocks by epoch, and when the account led them: of those to which it delegated and, in other
    epochs, of those that named it.
    """
    joined = [(pool_no, epoch) for epoch in epochs if (pool_no := history.delegated(epoch)) is not None]
    found = await _made.all(db, *sql.columns(joined, empty=2))
    others = set(epochs) - {row.epoch_no for row in found}
    found += await _led_made.all(db, stake_no, list(others))
    made = defaultdict[int, set[PoolNo]](set)
    for row in found:
        made[row.epoch_no].add(row.pool_no)
    updates = await _updates.all(db, stake_no, list({row.pool_no for row in found}))
    return made, leading_by(updates, history.reapings, network)


def deposits(history: Past) -> Iterator[Found]:
    """The returned deposits, which are known in all epochs. Pure."""
    for epoch in {each.epoch_no for each in history.reapings}:
        for pool_no in history.refunds(epoch):
            yield epoch, "pool_deposit_refund", pool_no, POOL_DEPOSIT


def rewards(
    history: Past, earned: Mapping[int, int], made: Mapping[int, set[PoolNo]], leading: Mapping[PoolNo, Leading]
) -> Iterator[Found]:
    """The rewards, given what may be one by epoch, and the pools that made blocks. Pure.

    A payment without a reason of these kinds is left out: it comes from the treasury, the reserves or a proposal. If an
    account is rewarded for several reasons at once, its own delegation has all of it, else the first pool.
    """
    for epoch, lovelace in earned.items():
        pools, joined = made.get(epoch, set()), history.delegated(epoch)
        led = [pool_no for pool_no in sorted(pools) if pool_no in leading and leading[pool_no].counts_in(epoch)]
        if joined is not None and joined in pools:
            yield epoch, "leader" if joined in led else "member", joined, lovelace
        elif led:
            yield epoch, "leader", led[0], lovelace


def leading_by(updates: Iterable[PoolUpdate], reapings: Iterable[Reaping], network: Network) -> dict[PoolNo, Leading]:
    """When the account led pools, given their registrations, in order, and retirements. Pure."""
    of_pools, reaped = defaultdict[PoolNo, list[PoolUpdate]](list), defaultdict[PoolNo, list[int]](list)
    for update in updates:
        of_pools[update.pool_no].append(update)
    for reaping in reapings:
        reaped[reaping.pool_no].append(reaping.epoch_no)
    return {
        pool_no: Leading(
            active_epochs([each.tx_id for each in found], reaped[pool_no], network), [each.named for each in found]
        )
        for pool_no, found in of_pools.items()
    }


def active_epochs(updates: Sequence[int], reapings: Sequence[int], network: Network) -> list[int]:
    """The epoch from which the parameters of each registration of a pool count, given the tx_ids of all, in order, and
    the epochs at whose beginning it retired. `earnings` in indexer/ledger/reader.sql follows the same rule. Pure.
    """
    found = []
    before: int | None = None
    for tx_id in updates:
        slot_no = slot_of(tx_id)
        epoch = -ACTIVE_AFTER_EPOCHS if slot_no < 0 else network.epoch_of(slot_no)  # those of the genesis count at once
        known = before is not None and not any(before < reaped <= epoch for reaped in reapings)
        found.append(epoch + (_CHANGED_AFTER_EPOCHS if known else ACTIVE_AFTER_EPOCHS))
        before = epoch
    return found


def show_epochs(epochs: Sequence[int]) -> str:
    """Ascending epochs as ranges, such as `210-215,218-220`; `none` without any."""
    ranges: list[list[int]] = []
    for epoch in epochs:
        if ranges and ranges[-1][1] == epoch - 1:
            ranges[-1][1] = epoch
        else:
            ranges.append([epoch, epoch])
    return ",".join(f"{first}-{last}" for first, last in ranges) or "none"


async def past(db: Connection, account: bytes) -> tuple[StakeNo, Past] | None:
    """The number of an account and what history knows of it, in a snapshot; None if no block names it."""
    stake_no = await _stake_no.one(db, account)
    if stake_no is None:
        return None
    events = await _events.all(db, stake_no)
    joined = {event.pool_no for event in events if event.pool_no is not None}
    return stake_no, Past(events, await _reapings.all(db, stake_no, list(joined)))
