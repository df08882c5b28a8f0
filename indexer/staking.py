"""What a batch of blocks means for stake and pools, as rows and as what moves. Pure."""

from collections import Counter

import msgspec

from indexer.genesis import Genesis
from indexer.known import Known
from indexer.parcels import Parcel, Transaction
from indexer.pools import PoolRetirement, PoolUpdate, StakeChange, changes_of
from shared import packed
from shared.ledger import Point, TxId, tx_id
from shared.network import Network

ACTIVE_AFTER_EPOCHS = 2
"""A delegation counts first in the second epoch after its own (Shelley ledger specification: mark, set, go)."""

_GENESIS = -1


class Boundary(msgspec.Struct, frozen=True):
    """Where an epoch begins: before `first_tx_id`, the first that a transaction of it may have."""

    epoch_no: int
    first_tx_id: TxId


class Staking(msgspec.Struct):
    """Rows, each a tuple of its table's columns, and what moves, of a batch whose blocks are all of one epoch.

    `crossed` are the boundaries that lie before its first block. `delegations` holds pool_id and active_epoch_no of
    the credentials whose delegation changes.
    """

    crossed: list[Boundary]
    stake_events: list[tuple[int, int, int | None, int, int, str]] = []
    pool_updates: list[tuple[int, int, int, bytes]] = []
    pool_retirements: list[tuple[int, int, int, int]] = []
    delegations: dict[int, tuple[int | None, int | None]] = {}
    blocks: Counter[tuple[int, int]] = msgspec.field(default_factory=Counter)
    withdrawn: set[int] = set()
    credited: set[int] = set()

    def add_block(self, block: Parcel, epoch_no: int, known: Known) -> None:
        """A pool, or a genesis delegate, made a block; Byron's blocks are nobody's."""
        if block.pool is not None:
            self.blocks[known.pools[block.pool], epoch_no] += 1

    def add(self, key: TxId, tx: Transaction, epoch_no: int, known: Known) -> None:
        """A transaction happened."""
        self.withdrawn.update(known.stakes[account] for account in tx.withdrawals)
        self.credited.update(known.stakes[account] for account in tx.credits)
        for place, change in enumerate(changes_of(tx.certificates, tx.tx_hash, known.network)):
            match change:
                case StakeChange(kind, account, pool):
                    stake_id, pool_id = known.stakes[account], None if pool is None else known.pools[pool]
                    self.stake_events.append((key, stake_id, pool_id, epoch_no, place, kind))
                    active_epoch_no = None if pool_id is None else epoch_no + ACTIVE_AFTER_EPOCHS
                    self.delegations[stake_id] = (pool_id, active_epoch_no)
                case PoolUpdate(pool, parameters):
                    row = (key, known.pools[pool], place, packed.pack_pool_parameters(parameters))
                    self.pool_updates.append(row)
                case PoolRetirement(pool, retiring_epoch_no):
                    self.pool_retirements.append((key, known.pools[pool], retiring_epoch_no, place))


def of_genesis(genesis: Genesis, known: Known) -> Staking:
    """What exists before the first block: its rows have the tx_id -1, and delegations count from epoch 0 on."""
    staking = Staking([Boundary(epoch_no, tx_id(0, 0)) for epoch_no in (-1, 0)])
    for place, (pool, parameters) in enumerate(genesis.pools.items()):
        staking.pool_updates.append((_GENESIS, known.pools[pool], place, packed.pack_pool_parameters(parameters)))
    for account, pool in genesis.delegations.items():
        stake_id, pool_id = known.stakes[account], known.pools[pool]
        staking.stake_events.append((_GENESIS, stake_id, pool_id, -ACTIVE_AFTER_EPOCHS, 0, "delegation"))
        staking.delegations[stake_id] = (pool_id, 0)
    return staking


def boundaries(before: Point | None, first: Point, network: Network) -> list[Boundary]:
    """The epoch boundaries between two blocks; none before the first that is indexed."""
    if before is None:
        return []
    entered = range(network.epoch_of(before.slot_no) + 1, network.epoch_of(first.slot_no) + 1)
    return [Boundary(epoch_no, tx_id(network.epoch_start(epoch_no), 0)) for epoch_no in entered]
