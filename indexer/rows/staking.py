"""From blocks to rows of stake and pools, and changed delegations."""

from collections import Counter
from typing import NamedTuple

import msgspec

from indexer.blocks.certificates import (
    PoolRetirement,
    PoolUpdate,
    RepresentativeChange,
    StakeChange,
    VoteDelegation,
    account_of,
    changes_of,
)
from indexer.blocks.genesis import Genesis
from indexer.blocks.packed_block import Transaction
from indexer.rows import tables
from indexer.rows.resolver import Resolver
from indexer.rows.tables import Inserts
from shared import packed
from shared.ledger import ACTIVE_AFTER_EPOCHS, Point, PoolNo, StakeNo, TxId
from shared.network import Network

_GENESIS = TxId(-1)


class ProtocolFork(msgspec.Struct, frozen=True):
    """The first indexed epoch with the rules of protocol 10: its major version, and the tx_id before all of its own."""

    epoch_no: int
    major: int
    first_tx_id: TxId


class Delegation(NamedTuple):
    """The pool of a credential and the first epoch in which it counts; null both if it no longer delegates."""

    pool_no: PoolNo | None
    active_epoch_no: int | None


class Staking(msgspec.Struct):
    """Rows of certificates, which go into `inserts`, and changes, of a batch whose blocks are all of one epoch.

    `begun` are the epochs that begin with its first block, `delegations` those that change, by stake_no. `blocks`
    counts those of pools and genesis delegates, by pool_no and epoch.
    """

    begun: list[int]
    fork: ProtocolFork | None = None
    inserts: Inserts = msgspec.field(default_factory=Inserts)
    delegations: dict[StakeNo, Delegation] = {}
    blocks: Counter[tuple[PoolNo, int]] = msgspec.field(default_factory=Counter)
    withdrawn: Counter[StakeNo] = msgspec.field(default_factory=Counter)
    credited: set[StakeNo] = set()

    def add_update(
        self, tx_id: TxId, place: int, pool_id: bytes, parameters: packed.PoolParameters, resolver: Resolver
    ) -> None:
        """Add a registration of a pool, and its reward account."""
        pool_no, account = resolver.pools[pool_id], parameters.reward_account
        content = packed.pack_pool_parameters(parameters)
        self.inserts[tables.POOL_UPDATE].append(tables.PoolUpdate(tx_id, pool_no, place, content))
        if account is not None:
            row = tables.PoolRewardAccount(tx_id, resolver.stakes[account], pool_no, place)
            self.inserts[tables.POOL_REWARD_ACCOUNT].append(row)

    def add(self, tx_id: TxId, tx: Transaction, epoch_no: int, resolver: Resolver) -> None:
        """Add the certificates, withdrawals, credits and instantaneous rewards of one transaction."""
        for account, taken in tx.withdrawals.items():
            self.withdrawn[resolver.stakes[account]] += taken
        inserts = self.inserts
        inserts[tables.INSTANTANEOUS_REWARD].extend(
            tables.InstantaneousReward(
                tx_id,
                resolver.stakes[account_of(credential, resolver.network)],
                moved.place,
                packed.POTS[moved.pot_no],
                lovelace,
            )
            for moved in tx.instantaneous_rewards
            for credential, lovelace in moved.amounts.items()
        )
        for account, credit in tx.credits.items():
            self.credited.add(resolver.stakes[account])
            inserts[tables.ACCOUNT_CREDIT].append(tables.AccountCredit(tx_id, credit, resolver.stakes[account]))
        for place, change in enumerate(changes_of(tx.certificates, tx.tx_hash, resolver.network)):
            match change:
                case StakeChange(kind, account, pool_id):
                    stake_no, pool_no = resolver.stakes[account], None if pool_id is None else resolver.pools[pool_id]
                    event = tables.StakeEvent(tx_id, stake_no, pool_no, epoch_no, place, kind)
                    inserts[tables.STAKE_EVENT].append(event)
                    active_epoch_no = None if pool_no is None else epoch_no + ACTIVE_AFTER_EPOCHS
                    self.delegations[stake_no] = Delegation(pool_no, active_epoch_no)
                    if kind == "deregistration":
                        ended = tables.VoteDelegation(tx_id, stake_no, place, kind, None)
                        inserts[tables.VOTE_DELEGATION].append(ended)
                case VoteDelegation(account, representative):
                    stake_no = resolver.stakes[account]
                    delegated = tables.VoteDelegation(tx_id, stake_no, place, "delegation", representative)
                    inserts[tables.VOTE_DELEGATION].append(delegated)
                case RepresentativeChange(kind, representative, lovelace, anchor):
                    url, anchor_hash = (None, None) if anchor is None else (anchor.url.encode(), anchor.content_hash)
                    inserts[tables.REPRESENTATIVE_EVENT].append(
                        tables.RepresentativeEvent(tx_id, place, kind, lovelace, representative, url, anchor_hash)
                    )
                case PoolUpdate(pool_id, parameters):
                    self.add_update(tx_id, place, pool_id, parameters, resolver)
                case PoolRetirement(pool_id, retiring_epoch_no):
                    retirement = tables.PoolRetirement(tx_id, resolver.pools[pool_id], retiring_epoch_no, place)
                    inserts[tables.POOL_RETIREMENT].append(retirement)


def of_genesis(genesis: Genesis, resolver: Resolver, inserts: Inserts) -> Staking:
    """The staking state before the first block: rows with the tx_id -1, and delegations from epoch 0 on."""
    staking = Staking([-1, 0], inserts=inserts)
    for place, (pool_id, parameters) in enumerate(genesis.pools.items()):
        staking.add_update(_GENESIS, place, pool_id, parameters, resolver)
    for account, pool_id in genesis.delegations.items():
        stake_no, pool_no = resolver.stakes[account], resolver.pools[pool_id]
        event = tables.StakeEvent(_GENESIS, stake_no, pool_no, -ACTIVE_AFTER_EPOCHS, 0, "delegation")
        staking.inserts[tables.STAKE_EVENT].append(event)
        staking.delegations[stake_no] = Delegation(pool_no, 0)
    return staking


def epochs_begun(before: Point | None, first: Point, network: Network) -> list[int]:
    """The epochs that begin between two blocks; none before the first that is indexed."""
    if before is None:
        return []
    return list(range(network.epoch_of(before.slot_no) + 1, network.epoch_of(first.slot_no) + 1))
