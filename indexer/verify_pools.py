"""Compare stake, pools and epochs with their histories: a part of verify.

Certificates themselves are history. Of the snapshots the last two are recomputed, which answers show now or will show
next, from today's balances and what moved since: memory grows with the accounts that moved in two epochs.

NOTE: older ones are shown nowhere and are left out. They would take another pass over all transactions, in order (here
parts are added up in any order, on all cores), with every balance at hand, and a pass over all delegations per epoch.
"""

from collections import defaultdict

import asyncpg
import msgspec

from indexer import recount
from indexer.findings import MOST_SHOWN, Difference, Finding
from indexer.staking import ACTIVE_AFTER_EPOCHS
from shared import sql
from shared.ledger import tx_id
from shared.network import Network

_CHUNK_TRANSACTIONS = 20_000


class NodeComparison(msgspec.Struct, frozen=True):
    """How many live stakes were compared with the node's own ledger in an epoch, how many were unlike, by how much."""

    epoch_no: int
    pools: int
    unlike: int
    difference: int

    def __str__(self) -> str:
        outcome = f"{self.unlike} unlike, by {self.difference} lovelace in all" if self.unlike else "all alike"
        return f"live stake of {self.pools} pools compared with the node's ledger in epoch {self.epoch_no}: {outcome}"


async def node_comparison(db: asyncpg.Connection) -> NodeComparison | None:
    """The last comparison with the node, which the indexer made; None where the node could not answer."""
    return await _node_comparison.one(db)


async def findings(db: asyncpg.Connection, network: Network) -> list[Finding]:
    """What differs, check by check, in the snapshot that is open."""
    ends = await _ends.one(db)
    assert ends is not None, "only an index that is live is verified"
    epoch_no = network.epoch_of(ends.last_slot_no)
    epochs = (network.byron_slots, network.byron_epochs, network.epoch_slots)
    return [
        Finding("delegation", await _delegation.all(db, MOST_SHOWN, ACTIVE_AFTER_EPOCHS)),
        Finding("reaping", await _reaping.all(db, MOST_SHOWN, epoch_no, ACTIVE_AFTER_EPOCHS)),
        Finding("pool_epoch", await _pool_epoch.all(db, MOST_SHOWN, *epochs)),
        Finding("active_stake", await _wrong_snapshots(db, network, ends.first_slot_no, epoch_no)),
        Finding("delegator", await _delegator.all(db, MOST_SHOWN)),
        Finding("delegator_bucket", await _delegator_bucket.all(db, MOST_SHOWN)),
    ]


async def _wrong_snapshots(
    db: asyncpg.Connection, network: Network, first_slot_no: int | None, epoch_no: int
) -> list[Difference]:
    """Differences in the snapshots that were taken where this epoch and the one before it began."""
    found: list[Difference] = []
    moved: defaultdict[bytes, int] = defaultdict(int)
    beyond: int | None = None
    for opened in (epoch_no, epoch_no - 1):
        boundary_slot = network.epoch_start(max(opened, 0))
        if opened <= 0 or first_slot_no is None or boundary_slot <= first_slot_no:
            break  # where the index begins no snapshot could be taken
        first_tx_id = tx_id(boundary_slot, 0)
        await _add_moved(db, moved, first_tx_id, beyond)
        found += await _active_stake.all(
            db, MOST_SHOWN, opened + 1, first_tx_id, list(moved.keys()), list(moved.values())
        )
        beyond = first_tx_id
    return found[:MOST_SHOWN]


async def _add_moved(
    db: asyncpg.Connection, moved: defaultdict[bytes, int], first_tx_id: int, beyond: int | None
) -> None:
    """Add what accounts' outputs gained in transactions from one tx_id on, up to another or the last one."""
    while transactions := await _transactions_from.all(db, first_tx_id, _CHUNK_TRANSACTIONS):
        wanted = [tx for tx in transactions if beyond is None or tx.tx_id < beyond]
        for account, lovelace in recount.of(wanted).stakes:
            moved[account] += lovelace
        if len(wanted) < len(transactions):
            return
        first_tx_id = transactions[-1].tx_id + 1


class _Ends(msgspec.Struct, frozen=True):
    first_slot_no: int | None
    last_slot_no: int


_node_comparison = sql.query("node_comparison", NodeComparison)
_ends = sql.query("ends", _Ends)
_transactions_from = sql.query("transactions_from", recount.PackedTransaction)
_delegation = sql.query("check_delegation", Difference)
_reaping = sql.query("check_reaping", Difference)
_pool_epoch = sql.query("check_pool_epoch", Difference)
_active_stake = sql.query("check_active_stake", Difference)
_delegator = sql.query("check_delegator", Difference)
_delegator_bucket = sql.query("check_delegator_bucket", Difference)
