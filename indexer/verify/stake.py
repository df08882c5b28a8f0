"""Compare delegations, lists of delegators, blocks of pools and snapshots with their sources: a part of verify.

certificates.py and consistency.py check the events from which delegations derive. The last two snapshots, which answers
show now or in the next epoch, are recomputed from current balances and later changes: memory grows with the addresses
that moved in two epochs.

NOTE: older snapshots are not checked; only the active stake of an epoch below /blockfrost shows their sums. Checking
them would take another pass over all transactions in order, with every balance in memory, and a pass over all
delegations per epoch.
"""

from collections.abc import Sequence

import asyncpg
import msgspec
import numpy as np

from indexer.verify.keys import Ints, distinct, sums_at
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, tx_id_of
from shared.network import Network


class Snapshot(msgspec.Struct, frozen=True):
    """The snapshot of stakes that was taken at the beginning of an epoch, before `first_tx_id`."""

    epoch_no: int
    first_tx_id: int


class NetLovelace(msgspec.Struct, frozen=True):
    """The lovelace that addresses received, less the lovelace that they spent, in columns with an entry for each."""

    address_no: Ints
    lovelace: Ints


async def check(db: asyncpg.Connection, network: Network) -> list[CheckResult]:
    """Run all checks of this module except that of snapshots, in the open snapshot."""
    epochs = (network.byron_slots, network.byron_epochs, network.epoch_slots)
    return [
        CheckResult("delegation", await _delegation.all(db, MOST_SHOWN, ACTIVE_AFTER_EPOCHS)),
        CheckResult("pool_epoch", await _pool_epoch.all(db, MOST_SHOWN, *epochs)),
        CheckResult("delegator", await _delegator.all(db, MOST_SHOWN)),
        CheckResult("delegator_bucket", await _delegator_bucket.all(db, MOST_SHOWN)),
        CheckResult("live_stake", await _live_stake.all(db, MOST_SHOWN)),
    ]


async def snapshots(db: asyncpg.Connection, network: Network) -> list[Snapshot]:
    """The last two, in order: those from the beginning of the previous epoch and of this one.

    None was taken at the first indexed epoch.
    """
    ends = await _ends.one(db)
    assert ends is not None, "only an index that is live is verified"
    epoch_no = network.epoch_of(ends.last_slot_no)
    return [
        Snapshot(opened, tx_id_of(network.epoch_start(opened), 0))
        for opened in (epoch_no - 1, epoch_no)
        if opened > 0 and ends.first_slot_no is not None and network.epoch_start(opened) > ends.first_slot_no
    ]


def net_lovelace(address_no: Ints, lovelace: Ints) -> NetLovelace:
    """The sum of some changes by address."""
    order = np.argsort(address_no)
    ascending = address_no[order]
    addresses = distinct(ascending)
    place = np.searchsorted(addresses, ascending)
    return NetLovelace(addresses, sums_at(lovelace[order], place, len(addresses)))


def together(parts: Sequence[NetLovelace]) -> NetLovelace:
    """The sum of some sums by address."""
    none = NetLovelace(np.empty(0, np.int64), np.empty(0, np.int64))
    address_nos, lovelace = zip(*[(part.address_no, part.lovelace) for part in (none, *parts)], strict=True)
    return net_lovelace(np.concatenate(address_nos), np.concatenate(lovelace))


async def check_snapshots(
    db: asyncpg.Connection, taken: Sequence[Snapshot], moved: Sequence[NetLovelace]
) -> CheckResult:
    """Compare snapshots with current balances less later changes: `moved` has those of each up to the next one."""
    found: list[Difference] = []
    for place, snapshot in reversed(list(enumerate(taken))):
        since = together(moved[place:])
        columns = since.address_no.tolist(), since.lovelace.tolist()
        found += await _active_stake.all(db, MOST_SHOWN, snapshot.epoch_no + 1, snapshot.first_tx_id, *columns)
    return CheckResult("active_stake", found[:MOST_SHOWN])


class _Ends(msgspec.Struct, frozen=True):
    first_slot_no: int | None
    last_slot_no: int


_sql = sql.beside(__file__)
_ends = _sql.query("ends", _Ends)
_delegation = _sql.query("check_delegation", Difference)
_pool_epoch = _sql.query("check_pool_epoch", Difference)
_active_stake = _sql.query("check_active_stake", Difference)
_delegator = _sql.query("check_delegator", Difference)
_delegator_bucket = _sql.query("check_delegator_bucket", Difference)
_live_stake = _sql.query("check_live_stake", Difference)
