"""Compare what was read from the node's ledger (rewards, reserves, parameters, genesis configurations) with the node.

This is possible only at the tip of the index, while the node still has the ledger state of that block, and after all
rewards of the epoch are read.
"""

import asyncpg
import msgspec

from indexer.ledger import answers
from indexer.ledger.reader import (
    BATCH_ACCOUNTS,
    GENESIS_ERAS,
    NotThere,
    acquire,
    configuration_of,
    or_none,
    pool_rewards,
    rewards_of,
)
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from indexer.store import writer as store
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import sql
from shared.ledger import PoolNo, StakeNo
from shared.network import Network


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


async def check(db: asyncpg.Connection, node: Ogmios, network: Network, sample: float) -> list[CheckResult] | None:
    """Compare the ledger state, and the rewards of about `sample` percent of the accounts, with the node.

    None if that is not possible now.
    """
    async with db.transaction(isolation="repeatable_read", readonly=True):
        position, state = await store.position(db), await _state.one(db)
        assert position is not None, "verify has looked"
        epoch_no = network.epoch_of(position.slot_no)
        if state is None or state.epoch_no != epoch_no or state.next_stake_no is not None:
            return None
        if await _due.all(db):
            return None
        try:
            await acquire(node, position.point)
        except NotThere:
            return None
        found = [
            CheckResult("ledger_state", await _wrong_state(node, state)),
            CheckResult("epoch_parameters", await _wrong_parameters(db, node, epoch_no)),
            CheckResult("genesis_configuration", await _wrong_configurations(db, node)),
            CheckResult("reward", await _wrong_rewards(db, node, sample)),
        ]
        rewards = await pool_rewards(network, node, db, position.point, epoch_no)
        if rewards is not None:
            found.append(CheckResult("pool_reward", await _wrong_pool_rewards(db, rewards, epoch_no + 1)))
        return found


async def _wrong_state(node: Ogmios, state: "_State") -> list[Difference]:
    treasury = await or_none(node, "queryLedgerState/treasuryAndReserves", answers.TreasuryAndReserves)
    parameters = await or_none(node, "queryLedgerState/protocolParameters", answers.Parameters)
    figures: list[tuple[str, int | None, int]] = []
    if treasury is not None:
        figures.append(("reserves", state.reserves, frames.lovelace(treasury.reserves)))
        figures.append(("treasury", state.treasury, frames.lovelace(treasury.treasury)))
    if parameters is not None:
        figures.append(("desired_pools", state.desired_pools, parameters.desired_number_of_stake_pools))
    return [
        Difference(f"{what} of ledger_state", None, str(indexed), str(from_node))
        for what, indexed, from_node in figures
        if indexed != from_node
    ]


async def _wrong_parameters(db: asyncpg.Connection, node: Ogmios, epoch_no: int) -> list[Difference]:
    """Compare the protocol parameters of the present epoch. The node can't give those of earlier ones."""
    answer = await or_none(node, "queryLedgerState/protocolParameters", msgspec.Raw)
    if answer is None:
        return []
    stored = await _parameters.one(db, epoch_no)
    indexed = None if stored is None else stored.parameters
    return _unlike(f"protocol parameters of epoch {epoch_no}", indexed, answers.in_names_of_7(answer).decode())


async def _wrong_configurations(db: asyncpg.Connection, node: Ogmios) -> list[Difference]:
    """Compare the genesis configuration of each era."""
    found: list[Difference] = []
    stored = {row.era: row.configuration for row in await _configurations.all(db)}
    for era in GENESIS_ERAS:
        configuration = await configuration_of(node, era)
        if configuration is not None:
            found += _unlike(f"genesis configuration of {era}", stored.get(era), configuration)
    return found


def _unlike(what: str, indexed: str | None, from_node: str) -> list[Difference]:
    """The difference between two JSON values, if any."""
    if indexed is not None and msgspec.json.decode(indexed) == msgspec.json.decode(from_node):
        return []
    return [Difference(what, None, indexed, from_node)]


async def _wrong_rewards(db: asyncpg.Connection, node: Ogmios, sample: float) -> list[Difference]:
    """Compare the rewards of accounts that are registered, or for which a reward is stored. Mainnet has millions."""
    found: list[Difference] = []
    async for batch in _accounts.parts(db, sample, rows=BATCH_ACCOUNTS):
        from_node = await rewards_of(node, [account.raw for account in batch])
        wrong = [
            Difference(f"reward of stake credential {account.raw.hex()}", None, str(account.lovelace), str(lovelace))
            for account in batch
            if (lovelace := from_node.get(account.raw[1:], 0)) != account.lovelace
        ]
        found += wrong[: MOST_SHOWN - len(found)]
    return found


async def _wrong_pool_rewards(db: asyncpg.Connection, from_node: dict[PoolNo, int], epoch_no: int) -> list[Difference]:
    """Compare the rewards in the snapshot that counts in an epoch."""
    indexed = {row.pool_no: row.lovelace for row in await _pool_rewards.all(db, epoch_no)}
    return [
        Difference(
            f"pool_reward of pool_no {pool_no} in epoch {epoch_no}",
            None,
            str(indexed.get(pool_no)),
            str(from_node.get(pool_no)),
        )
        for pool_no in sorted(indexed.keys() | from_node.keys())
        if indexed.get(pool_no) != from_node.get(pool_no)
    ][:MOST_SHOWN]


class _State(msgspec.Struct, frozen=True):
    epoch_no: int
    next_stake_no: StakeNo | None
    desired_pools: int | None
    reserves: int | None
    treasury: int | None


class _Parameters(msgspec.Struct, frozen=True):
    parameters: str


class _Configuration(msgspec.Struct, frozen=True):
    era: str
    configuration: str


class _Due(msgspec.Struct, frozen=True):
    stake_no: StakeNo


class _Account(msgspec.Struct, frozen=True):
    raw: bytes
    lovelace: int


class _PoolReward(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    lovelace: int


_sql = sql.beside(__file__)
_node_comparison = _sql.query("node_comparison", NodeComparison)
_state = _sql.query("state", _State)
_parameters = _sql.query("parameters", _Parameters)
_configurations = _sql.query("configurations", _Configuration)
_due = _sql.query("due", _Due)
_accounts = _sql.query("accounts", _Account)
_pool_rewards = _sql.query("pool_rewards", _PoolReward)
