"""Compare delegations, lists of delegators, blocks of pools and snapshots with their sources: a part of verify.

certificates.py and consistency.py check the events from which delegations derive. The processes that read transactions
pass on what moved (`moves`), epoch by epoch; `Snapshots` adds that up to the snapshot of each epoch. It has the balance
and the pool of every stake credential, some 80 MB for mainnet, and the stake of every pool in every epoch.
"""

from collections.abc import Iterator, Sequence

import asyncpg
import msgspec
import numpy as np

from indexer.verify.history import flows
from indexer.verify.history.flows import Flows, OutputColumns
from indexer.verify.history.numbers import Numbers
from indexer.verify.history.rows import GenesisOutput
from indexer.verify.keys import Ints, ints
from indexer.verify.moments import Moments
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, PoolNo, StakeNo, tx_id_of
from shared.network import Network

_NO_POOL = 0


class Moves(msgspec.Struct, frozen=True):
    """What moved in an epoch: lovelace that stake credentials received (above 0) or spent, and their new pools, in
    order; 0 for none.
    """

    epoch_no: int
    stake_no: Ints
    lovelace: Ints
    delegator_no: Ints
    pool_no: Ints


async def check(moments: Moments, network: Network) -> list[CheckResult]:
    """Run all checks of this module except that of epochs' snapshots, each in its own snapshot."""
    epochs = (network.byron_slots, network.byron_epochs, network.epoch_slots)
    return [
        CheckResult("delegation", await moments.all(_delegation, MAX_SHOWN, ACTIVE_AFTER_EPOCHS)),
        CheckResult("pool_epoch", await moments.all(_pool_epoch, MAX_SHOWN, *epochs)),
        CheckResult("delegator", await moments.all(_delegator, MAX_SHOWN)),
        CheckResult("delegator_bucket", await moments.all(_delegator_bucket, MAX_SHOWN)),
        CheckResult("live_stake", await moments.all(_live_stake, MAX_SHOWN)),
    ]


async def moves(
    db: asyncpg.Connection, flowing: Flows, numbers: Numbers, network: Network, first_tx_id: int, next_tx_id: int
) -> list[Moves]:
    """What moved in a range of transactions, by epoch."""
    events = await _events.all(db, first_tx_id, next_tx_id)
    event_tx_id = ints([event.tx_id for event in events])
    delegator_no, pool_no = ints([event.stake_no for event in events]), ints([event.pool_no for event in events])
    account_no, lovelace, row = _of_accounts(numbers, flowing.made, flowing.spent)
    tx_id = flowing.tx_id[row]
    return [
        Moves(epoch_no, account_no[moved], lovelace[moved], delegator_no[changed], pool_no[changed])
        for epoch_no, first, end in _epochs(network, flowing.tx_id)
        for moved, changed in [((tx_id >= first) & (tx_id < end), (event_tx_id >= first) & (event_tx_id < end))]
    ]


def _epochs(network: Network, tx_id: Ints) -> Iterator[tuple[int, int, int]]:
    """The epochs of transactions, each with its first tx_id and that of the next one."""
    place = 0
    while place < len(tx_id):
        epoch_no = network.epoch_of(int(tx_id[place]) >> 16)
        first, end = (tx_id_of(network.epoch_start(each), 0) for each in (epoch_no, epoch_no + 1))
        yield epoch_no, first, end
        place = int(np.searchsorted(tx_id, end))


def _of_accounts(numbers: Numbers, made: OutputColumns, spent: OutputColumns) -> tuple[Ints, Ints, Ints]:
    """The outputs of accounts: account, lovelace (below 0 if it is spent) and the place of the transaction."""
    account_no = numbers.account_nos(np.concatenate((made.address_no, spent.address_no)))
    lovelace, row = np.concatenate((made.lovelace, -spent.lovelace)), np.concatenate((made.row, spent.row))
    known = account_no >= 0
    return account_no[known], lovelace[known], row[known]


class Start(msgspec.Struct, frozen=True):
    """The number of accounts and of pools, and the slots of the first block and of the noted one."""

    accounts: int
    pools: int
    first_slot_no: int | None
    last_slot_no: int


class Beginning(msgspec.Struct, frozen=True):
    """What the snapshots begin with: the pools that were reaped by epoch, and the moves of the genesis."""

    start: Start
    reaped: dict[int, list[PoolNo]]
    genesis: Moves


class Snapshots:
    """The snapshots of all epochs up to that of the noted block: the stake of each pool in outputs, when it began.

    Moves must be added in the order of epochs. A snapshot is taken before pools are reaped.
    """

    def __init__(self, network: Network, start: Start, reaped: dict[int, list[PoolNo]], genesis: Moves) -> None:
        self._balance, self._pool = np.zeros(start.accounts + 1, np.int64), np.zeros(start.accounts + 1, np.int64)
        self._pools, self._reaped = start.pools + 1, reaped
        self._taken = dict[int, Ints]()
        self._apply(genesis)
        for epoch_no in (-1, 0):
            self._begin(epoch_no)
        # No snapshot was taken between the genesis and the epoch after that of the first block.
        self._next_epoch_no = network.epoch_of(start.first_slot_no or 0) + 1
        self._last_epoch_no = network.epoch_of(start.last_slot_no)

    def add(self, moves: Moves) -> None:
        """Add what moved in an epoch, or in a part of it."""
        self._reach(moves.epoch_no)
        self._apply(moves)

    def _reach(self, epoch_no: int) -> None:
        """Take the snapshots up to that of an epoch, or of the last one."""
        while self._next_epoch_no <= min(epoch_no, self._last_epoch_no):
            self._begin(self._next_epoch_no)
            self._next_epoch_no += 1

    def taken(self) -> dict[int, Ints]:
        """The snapshots up to that of the last epoch: stakes by pool_no, by the epoch in which they count."""
        self._reach(self._last_epoch_no)
        return self._taken

    async def check(self, db: asyncpg.Connection) -> CheckResult:
        """Compare `pool_epoch` with the snapshots, newest first."""
        # NOTE: a row for a later epoch is one of a later block, or reported by check_pool_epoch.
        rows, taken = await _stored.all(db, self._last_epoch_no + 1), self.taken()
        stored = {row.epoch_no: row for row in rows}
        found = list[Difference]()
        for epoch_no in sorted(stored.keys() | taken.keys(), reverse=True):
            expected = taken.get(epoch_no, np.zeros(self._pools, np.int64))
            found += await _differing(db, epoch_no, stored.get(epoch_no), expected)
            if len(found) >= MAX_SHOWN:
                break
        return CheckResult("active_stake", found[:MAX_SHOWN])

    def _apply(self, moves: Moves) -> None:
        # NOTE: numbers without a row, which other checks report, are left out.
        known = moves.stake_no < len(self._balance)
        np.add.at(self._balance, moves.stake_no[known], moves.lovelace[known])
        known = (moves.delegator_no < len(self._pool)) & (moves.pool_no < self._pools)
        self._pool[moves.delegator_no[known]] = moves.pool_no[known]

    def _begin(self, epoch_no: int) -> None:
        stake = np.zeros(self._pools, np.int64)
        delegating = self._pool != _NO_POOL
        np.add.at(stake, self._pool[delegating], self._balance[delegating])
        self._taken[epoch_no + 1] = stake
        if epoch_no in self._reaped:
            self._pool[np.isin(self._pool, self._reaped[epoch_no])] = _NO_POOL


async def beginning(
    db: asyncpg.Connection, noted_slot_no: int, numbers: Numbers, genesis: Sequence[GenesisOutput]
) -> Beginning:
    """What the snapshots begin with."""
    start = await _start.one(db, noted_slot_no)
    assert start is not None, "a row even without blocks"
    reaped = {row.epoch_no: row.pool_nos for row in await _reaped.all(db)}
    made = flows.of_genesis(genesis)
    account_no = numbers.account_nos(made.address_no)
    known = account_no >= 0
    events = await _events.all(db, -1, 0)
    delegator_no, pool_no = ints([event.stake_no for event in events]), ints([event.pool_no for event in events])
    return Beginning(start, reaped, Moves(-1, account_no[known], made.lovelace[known], delegator_no, pool_no))


def begun(network: Network, beginning: Beginning) -> Snapshots:
    """The snapshots up to that of the first block's epoch."""
    return Snapshots(network, beginning.start, beginning.reaped, beginning.genesis)


async def _differing(
    db: asyncpg.Connection, epoch_no: int, stored: "_Epoch | None", expected: Ints
) -> list[Difference]:
    """The first pools whose stake in an epoch is not that of its snapshot."""
    stakes = {} if stored is None else dict(zip(stored.pool_nos, stored.stakes, strict=True))
    recomputed = {PoolNo(pool_no): int(expected[pool_no]) for pool_no in np.flatnonzero(expected).tolist()}
    wrong = sorted(each for each in stakes.keys() | recomputed.keys() if stakes.get(each, 0) != recomputed.get(each, 0))
    names = {row.pool_no: row.pool_id.hex() for row in await _names.all(db, wrong[:MAX_SHOWN])} if wrong else {}
    return [
        Difference(
            f"active_stake of pool {names.get(pool_no, pool_no)} in epoch {epoch_no}",
            None,
            str(stakes.get(pool_no, 0)),
            str(recomputed.get(pool_no, 0)),
        )
        for pool_no in wrong[:MAX_SHOWN]
    ]


class _Event(msgspec.Struct, frozen=True):
    tx_id: int
    stake_no: StakeNo
    pool_no: int


class _Reaped(msgspec.Struct, frozen=True):
    epoch_no: int
    pool_nos: list[PoolNo]


class _Epoch(msgspec.Struct, frozen=True):
    epoch_no: int
    pool_nos: list[PoolNo]
    stakes: list[int]


class _Name(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    pool_id: bytes


_sql = sql.beside(__file__)
_delegation = _sql.query("check_delegation", Difference)
_pool_epoch = _sql.query("check_pool_epoch", Difference)
_delegator = _sql.query("check_delegator", Difference)
_delegator_bucket = _sql.query("check_delegator_bucket", Difference)
_live_stake = _sql.query("check_live_stake", Difference)
_start = _sql.query("start", Start)
_events = _sql.query("events", _Event)
_reaped = _sql.query("reaped", _Reaped)
_stored = _sql.query("stored", _Epoch)
_names = _sql.query("names", _Name)
