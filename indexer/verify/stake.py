"""Compare stake, pools and epochs with their histories: a part of verify.

Certificates are history and need no check here. The last two snapshots, which answers show now or in the next epoch,
are recomputed from current balances and later changes: memory grows with the addresses that moved in two epochs.

NOTE: older snapshots appear in no answer and are not checked. That would take another pass over all transactions in
order, with every balance in memory, and a pass over all delegations per epoch.
"""

from collections import defaultdict

import asyncpg
import msgspec

from indexer.verify import recompute
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, AddressNo, tx_id
from shared.network import Network

_CHUNK_TRANSACTIONS = 20_000


class NodeComparison(msgspec.Struct, frozen=True):
    """The last comparison of live stakes with the node: pools compared, pools that differ, total difference."""

    epoch_no: int
    pools: int
    mismatched: int
    difference: int

    def __str__(self) -> str:
        outcome = (
            f"{self.mismatched} differ, by {self.difference} lovelace in total" if self.mismatched else "all match"
        )
        return f"live stake of {self.pools} pools compared with the node's ledger in epoch {self.epoch_no}: {outcome}"


async def node_comparison(db: asyncpg.Connection) -> NodeComparison | None:
    """The last comparison with the node, which the indexer made; None if the node could not answer."""
    return await _node_comparison.one(db)


async def check(db: asyncpg.Connection, network: Network) -> list[CheckResult]:
    """Compare pools, delegations and snapshots with their certificates, in the open snapshot."""
    ends = await _ends.one(db)
    assert ends is not None, "only an index that is live is verified"
    epoch_no = network.epoch_of(ends.last_slot_no)
    epochs = (network.byron_slots, network.byron_epochs, network.epoch_slots)
    return [
        CheckResult("delegation", await _delegation.all(db, MOST_SHOWN, ACTIVE_AFTER_EPOCHS)),
        CheckResult("reaping", await _reaping.all(db, MOST_SHOWN, epoch_no, ACTIVE_AFTER_EPOCHS)),
        CheckResult("pool_epoch", await _pool_epoch.all(db, MOST_SHOWN, *epochs)),
        CheckResult("active_stake", await _wrong_snapshots(db, network, ends.first_slot_no, epoch_no)),
        CheckResult("delegator", await _delegator.all(db, MOST_SHOWN)),
        CheckResult("delegator_bucket", await _delegator_bucket.all(db, MOST_SHOWN)),
        CheckResult("live_stake", await _live_stake.all(db, MOST_SHOWN)),
    ]


async def _wrong_snapshots(
    db: asyncpg.Connection, network: Network, first_slot_no: int | None, epoch_no: int
) -> list[Difference]:
    """Differences in the snapshots from the beginning of this epoch and of the one before."""
    found: list[Difference] = []
    moved: defaultdict[AddressNo, int] = defaultdict(int)
    beyond: int | None = None
    for opened in (epoch_no, epoch_no - 1):
        boundary_slot = network.epoch_start(max(opened, 0))
        if opened <= 0 or first_slot_no is None or boundary_slot <= first_slot_no:
            break  # no snapshot was taken at the first indexed epoch
        first_tx_id = tx_id(boundary_slot, 0)
        await _add_moved(db, moved, first_tx_id, beyond)
        found += await _active_stake.all(
            db, MOST_SHOWN, opened + 1, first_tx_id, list(moved.keys()), list(moved.values())
        )
        beyond = first_tx_id
    return found[:MOST_SHOWN]


async def _add_moved(
    db: asyncpg.Connection, moved: defaultdict[AddressNo, int], first_tx_id: int, beyond: int | None
) -> None:
    """Add the net lovelace that addresses gained from one tx_id up to another, or up to the last one."""
    while transactions := await _transactions_from.all(db, first_tx_id, _CHUNK_TRANSACTIONS):
        wanted = [tx for tx in transactions if beyond is None or tx.tx_id < beyond]
        for address_no, lovelace in recompute.moved_by(wanted).items():
            moved[address_no] += lovelace
        if len(wanted) < len(transactions):
            return
        first_tx_id = transactions[-1].tx_id + 1


class _Ends(msgspec.Struct, frozen=True):
    first_slot_no: int | None
    last_slot_no: int


_sql = sql.beside(__file__)
_node_comparison = _sql.query("node_comparison", NodeComparison)
_ends = _sql.query("ends", _Ends)
_transactions_from = _sql.query("transactions_from", recompute.PackedTransaction)
_delegation = _sql.query("check_delegation", Difference)
_reaping = _sql.query("check_reaping", Difference)
_pool_epoch = _sql.query("check_pool_epoch", Difference)
_active_stake = _sql.query("check_active_stake", Difference)
_delegator = _sql.query("check_delegator", Difference)
_delegator_bucket = _sql.query("check_delegator_bucket", Difference)
_live_stake = _sql.query("check_live_stake", Difference)
