"""Read data that blocks do not contain from the node's ledger state: rewards, reserves, protocol parameters.

Once per epoch it reads the protocol parameters and the reward of every registered account, in batches. After a restart
it continues with the next batch. Between batches it reads the rewards that have changed. It has its own connections to
the node and the database, and locks the writer only to write: following the tip waits for at most one write, of 1,000
rewards or of an epoch's figures. Queries that the node can't answer are retried later.

Once an epoch's rewards are read, active stake gets them from one of two sources (docs/decisions/0010):

- Since Conway, the node's own stake snapshot: pools vote with that of the beginning of the epoch, plus the deposits of
  proposals, which the node reports separately (`stakePools` with `includeStake`, `governanceProposals`). Exact.
- For pools that the node does not report: the current rewards of the accounts, plus later withdrawals, less the pool
  deposits that were refunded right after the snapshot. This is exact up to Babbage; since Conway it includes payments
  of governance at that boundary.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer.ledger import answers
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios, Refused
from indexer.store import epochs, position, votes
from shared import address, database, packed, schema, sql
from shared.ledger import PAID_AFTER_EPOCHS, Point, PoolNo, StakeNo, TxId, tx_id_of
from shared.network import POOL_DEPOSIT, Network
from shared.phase import Phase

log = structlog.get_logger()

Step = Callable[[Ogmios, asyncpg.Connection], Awaitable[bool]]
"""A piece of work with the node and the database; false if there is nothing to do now."""

BATCH_ACCOUNTS = 1_000
GENESIS_ERAS = ("byron", "shelley", "alonzo", "conway", "dijkstra")
_PAUSE_S = 10.0  # before a failed query is retried
_CHUNK_TRANSACTIONS = 2_000  # a few ms of unpacking, which block other tasks


class LedgerReader:
    """Reads for one network. It must be stopped with its `writer`; `turn` is the lock on `writer`.

    It calls `all_read` whenever nothing is left to read at our tip.
    """

    def __init__(
        self,
        network: Network,
        ogmios_url: str,
        database_url: str,
        writer: asyncpg.Connection,
        turn: asyncio.Lock,
        all_read: Callable[[], None],
    ) -> None:
        self._network, self._ogmios_url, self._database_url = network, ogmios_url, database_url
        self._writer, self._turn, self._all_read = writer, turn, all_read
        self._changed = asyncio.Event()
        self._reported: _NodeStakeSnapshots | None = None

    def notify(self) -> None:
        """Report that the tip has moved: there may be something to read."""
        self._changed.set()

    async def run(self) -> None:
        """Read until cancelled, with retries after errors of the node. Raises the errors of a lost database."""
        await step_by_step(self._network, self._ogmios_url, self._database_url, self._changed, self._step)

    async def _step(self, node: Ogmios, db: asyncpg.Connection) -> bool:
        """Read the next batch at our tip; False if there is nothing to read now."""
        index = await position.read(db)
        if index is None or index.phase != Phase.LIVE:
            return False
        state, due = await _state.one(db), await _due.all(db, BATCH_ACCOUNTS)
        epoch_no = self._network.epoch_of(index.slot_no)
        begins = state is None or state.epoch_no != epoch_no
        if not begins and not due and state is not None and state.next_stake_no is None:
            self._all_read()
            return False
        await acquire(node, index.point)
        if begins:
            await self._begin_epoch(node, index.point, epoch_no)
        elif due:
            await self._read_rewards(node, index.point, due)
        elif state is not None and state.next_stake_no is not None:
            accounts = await _registered.all(db, state.next_stake_no, BATCH_ACCOUNTS, epoch_no)
            if accounts:
                await self._read_rewards(node, index.point, accounts, epoch_no)
            else:
                await self._end_epoch(node, db, index.point, epoch_no, state.complete_epoch_no)
        return True

    async def _begin_epoch(self, node: Ogmios, point: Point, epoch_no: int) -> None:
        treasury = await or_none(node, "queryLedgerState/treasuryAndReserves", answers.TreasuryAndReserves)
        parameters = await or_none(node, "queryLedgerState/protocolParameters", msgspec.Raw)
        nonces = await or_none(node, "queryLedgerState/nonces", answers.Nonces)
        nonce = None if nonces is None else answers.nonce_of(nonces)
        configurations = {era: await configuration_of(node, era) for era in GENESIS_ERAS}
        async with self._turn, schema.commit(self._writer):
            if await position.holds(self._writer, point):
                for era, configuration in configurations.items():
                    if configuration is not None:
                        await _store_configuration.run(self._writer, era, configuration)
                if parameters is not None:
                    in_names_of_7 = answers.in_names_of_7(parameters).decode()
                    await _store_parameters.run(self._writer, epoch_no, in_names_of_7, nonce)
                    await self._compare_version(answers.parameters_of(parameters).version.major, epoch_no)
                await _forget_begun_round.run(self._writer, epoch_no)
                await _insert_epoch.run(
                    self._writer,
                    point.slot_no,
                    epoch_no,
                    None if parameters is None else answers.parameters_of(parameters).desired_number_of_stake_pools,
                    None if treasury is None else frames.lovelace(treasury.reserves),
                    None if treasury is None else frames.lovelace(treasury.treasury),
                )

    async def _compare_version(self, major: int, epoch_no: int) -> None:
        """Report it if the index has not the rules of the node's protocol version (docs/decisions/0054)."""
        forked = await votes.forked(self._writer)
        if forked != (major >= votes.FORK):
            log.warning(
                "protocol.contradicted", network=self._network.name, epoch_no=epoch_no, major=major, forked=forked
            )

    async def _read_rewards(
        self, node: Ogmios, point: Point, accounts: "list[_RewardAccount]", epoch_no: int | None = None
    ) -> None:
        """Read some accounts at a point, and store their rewards if that point is still in our chain.

        Those of an epoch's round are also kept as what the accounts held when the epoch began. In an epoch this is
        always the same: the rewards at any later point, and what was withdrawn until then, less what was paid in.
        """
        summaries = await summaries_of(node, [account.raw for account in accounts])
        told = {raw: frames.lovelace(summary.rewards) for raw, summary in summaries.items()}
        rewards = {account.stake_no: told.get(account.raw, 0) for account in accounts}
        async with self._turn:
            if await position.holds(self._writer, point):
                async with schema.commit(self._writer):
                    await _write_rewards(self._writer, rewards, point.slot_no)
                    next_stake_no = None
                    if epoch_no is not None:
                        epochs_at = [_first_tx_id(self._network, epoch) for epoch in (epoch_no - 1, epoch_no)]
                        beyond = tx_id_of(point.slot_no + 1, 0)
                        known = list(rewards), list(rewards.values())
                        await _store_reward_epoch.run(self._writer, *known, epoch_no, *epochs_at, beyond)
                        next_stake_no = accounts[-1].stake_no + 1
                    await _set_next_stake_no.run(self._writer, next_stake_no)

    async def _end_epoch(
        self, node: Ogmios, db: asyncpg.Connection, point: Point, epoch_no: int, complete_epoch_no: int | None
    ) -> None:
        """Complete the stake snapshots with the rewards, which are all read.

        Rewards change at the beginning of an epoch, just before its snapshot, which counts in the next epoch. After
        indexing from scratch, the previous snapshot, which counts in this epoch, lacks its rewards, too.

        The node has acquired `point`, our last tip. If our tip has since entered a new epoch, or rewards must be read
        again, this is repeated later, with the snapshots that the node has already returned.
        """
        reported = self._reported
        if reported is None or reported.epoch_no != epoch_no or not await position.holds(db, reported.point):
            with_previous = complete_epoch_no is None or complete_epoch_no < epoch_no - 1
            self._reported = reported = await _node_stake_snapshots(
                self._network, node, db, point, epoch_no, with_previous=with_previous
            )
        async with db.transaction(isolation="repeatable_read", readonly=True):
            index = await self._position_with_all_rewards(db, reported.point, epoch_no)
            if index is None:
                return
            rewards = {
                opened + 1: await _rewards_in(self._network, db, reported, opened) for opened in reported.snapshots
            }
            earned = await earnings(db, self._network, epoch_no)
        async with self._turn:
            if not await position.holds(self._writer, index.point):
                return
            async with schema.commit(self._writer):
                for counts_in, of_pools in rewards.items():
                    await _delete_pool_rewards.run(self._writer, counts_in)
                    await _store_pool_rewards.run(
                        self._writer, list(of_pools.keys()), list(of_pools.values()), counts_in
                    )
                await _complete_epoch.run(self._writer)
                columns = sql.columns((msgspec.structs.astuple(row) for row in earned), empty=3)
                await _store_earnings.run(self._writer, epoch_no - PAID_AFTER_EPOCHS, *columns)
                await _complete_round.run(self._writer, epoch_no)

    async def _position_with_all_rewards(
        self, db: asyncpg.Connection, point: Point, epoch_no: int
    ) -> position.IndexPosition | None:
        """Our tip in the open database snapshot, if all rewards are read there and `point` is still in our chain."""
        index, state = await position.read(db), await _state.one(db)
        if index is None or self._network.epoch_of(index.slot_no) != epoch_no:
            return None
        if state is None or state.epoch_no != epoch_no:
            return None
        unread = await _due.all(db, 1) or await _registered.all(db, state.next_stake_no, 1, epoch_no)
        return None if unread or not await position.holds(db, point) else index


async def _write_rewards(db: asyncpg.Connection, rewards: dict[StakeNo, int], slot_no: int) -> None:
    """Store rewards at a slot, by stake_no, in the open commit."""
    some = {stake_no: lovelace for stake_no, lovelace in rewards.items() if lovelace > 0}
    await _delete_rewards.run(db, sorted(rewards.keys() - some.keys()), slot_no)
    await _store_rewards.run(db, list(some), list(some.values()), slot_no)
    await _clear_rewards_due.run(db, list(rewards), slot_no)
    await epochs.refresh(db, rewards)


class Earning(msgspec.Struct, frozen=True):
    """What a pool and its delegators earned in an epoch."""

    pool_no: PoolNo
    delegators: int
    lovelace: int


async def earnings(db: asyncpg.Connection, network: Network, paid_in: int) -> list[Earning]:
    """The earnings that the beginning of epoch `paid_in` paid, whose rewards are all read; none if the stake snapshot
    or what was paid is not known.
    """
    earned_in = paid_in - PAID_AFTER_EPOCHS
    before, opened = _first_tx_id(network, earned_in - 2), _first_tx_id(network, earned_in - 1)
    return await _earnings.all(db, earned_in, paid_in, opened, POOL_DEPOSIT, before)


# Stake snapshots ------------------------------------------------------------------------------------------------------


async def _node_stake_snapshots(
    network: Network, node: Ogmios, db: asyncpg.Connection, point: Point, epoch_no: int, *, with_previous: bool
) -> "_NodeStakeSnapshots":
    """Query the node for the stake snapshot of the point's epoch and, if `with_previous`, of the previous epoch."""
    snapshots = {epoch_no: await reported_stake_snapshot(network, node, db, epoch_no)}
    parameters = await or_none(node, "queryLedgerState/protocolParameters", answers.Parameters)
    if with_previous:
        snapshots[epoch_no - 1] = await _ended_stake_snapshot(network, node, db, epoch_no - 1)
    pool_deposit = POOL_DEPOSIT if parameters is None else frames.lovelace(parameters.stake_pool_deposit)
    return _NodeStakeSnapshots(point, epoch_no, snapshots, pool_deposit)


async def reported_stake_snapshot(
    network: Network, node: Ogmios, db: asyncpg.Connection, epoch_no: int
) -> dict[bytes, int]:
    """The stakes by pool_id in the stake snapshot from the beginning of the acquired point's epoch."""
    views = dict[str, answers.PoolView]
    pools = await or_none(node, "queryLedgerState/stakePools", views, includeStake=True)
    proposals = await or_none(node, "queryLedgerState/governanceProposals", list[answers.Proposal])
    if pools is None or proposals is None:
        return {}
    deposits = answers.deposits_of(proposals)
    delegations = await _delegations_at.all(db, list(deposits), _first_tx_id(network, epoch_no), epoch_no)
    return answers.stake_snapshot_of(pools, deposits, {row.account: row.pool_id for row in delegations})


async def _ended_stake_snapshot(
    network: Network, node: Ogmios, db: asyncpg.Connection, epoch_no: int
) -> dict[bytes, int]:
    """The same for an epoch that has ended, if the node still has the ledger state of our last block in it."""
    last = await position.last_at_or_before(db, network.epoch_start(epoch_no + 1) - 1)
    if last is None or network.epoch_of(last.slot_no) != epoch_no:
        return {}
    try:
        await acquire(node, last)
    except NotThere:
        return {}
    return await reported_stake_snapshot(network, node, db, epoch_no)


async def _rewards_in(
    network: Network, db: asyncpg.Connection, reported: "_NodeStakeSnapshots", opened: int
) -> dict[PoolNo, int]:
    """Rewards in the stake snapshot from the beginning of the epoch `opened`, by pool_no.

    For pools that the node reports: their stake less the outputs in it. For others: the rewards that their accounts
    held then, computed from the current ones. That is exact in the same epoch; later it includes newer rewards.
    """
    snapshot = reported.snapshots[opened]
    rewards, complete = {}, bool(snapshot)
    for pool in await _outputs_in_stake_snapshot.all(db, opened + 1):
        if pool.pool_id in snapshot:
            rewards[pool.pool_no] = snapshot[pool.pool_id] - pool.lovelace
        elif pool.lovelace:
            complete = False
    log.info("ledger_state.snapshot", network=network.name, epoch_no=opened + 1, reported_pools=len(snapshot))
    if not complete:
        first_tx_id = _first_tx_id(network, opened)
        taken = await _taken_from(db, first_tx_id)
        for reaped in range(opened, reported.epoch_no + 1):
            for parameters in await _reaped.all(db, reaped, _first_tx_id(network, reaped)):
                account = packed.unpack_pool_parameters(parameters).reward_account
                if account is not None:
                    taken[account] -= reported.pool_deposit
        by_account = await _account_rewards.all(db, first_tx_id, list(taken.keys()), list(taken.values()), opened)
        rewards = {row.pool_no: row.lovelace for row in by_account} | rewards
    return {pool_no: lovelace for pool_no, lovelace in rewards.items() if lovelace}


async def _taken_from(db: asyncpg.Connection, first_tx_id: TxId) -> Counter[bytes]:
    """Withdrawals less credits by reward account, in all transactions from `first_tx_id` on."""
    taken: Counter[bytes] = Counter()
    while rows := await _extras_from.all(db, first_tx_id, _CHUNK_TRANSACTIONS):
        taken.update(taken_from_accounts([packed.unpack_extra(row.extra) for row in rows]))
        first_tx_id = TxId(rows[-1].tx_id + 1)
    return taken


def taken_from_accounts(transactions: list[packed.Extra]) -> Counter[bytes]:
    """The lovelace that some transactions took out of reward accounts: withdrawals less credits."""
    taken: Counter[bytes] = Counter()
    for extra in transactions:
        taken.update(extra.withdrawals)
        taken.subtract(extra.credits)
    return taken


def _first_tx_id(network: Network, epoch_no: int) -> TxId:
    return tx_id_of(network.epoch_start(max(epoch_no, 0)), 0)


class _NodeStakeSnapshots(msgspec.Struct, frozen=True):
    """The node's stake snapshots at a point: stakes by the epoch that each opened and by pool_id; empty if unknown."""

    point: Point
    epoch_no: int
    snapshots: dict[int, dict[bytes, int]]
    pool_deposit: int


# Queries of the node, for verify, too ---------------------------------------------------------------------------------


async def step_by_step(
    network: Network, ogmios_url: str, database_url: str, changed: asyncio.Event, step: Step
) -> None:
    """Repeat `step`, with own connections, until cancelled. A step that has nothing to do, or that finds the node
    without our tip, is repeated when `changed` is set; one that fails, after a pause. Raises the errors of a lost
    database.
    """
    db = await database.connect(database_url, network)
    try:
        while True:
            try:
                node = await ogmios.connect(ogmios_url)
                try:
                    await _steps(node, db, changed, step)
                finally:
                    await node.close()
            # NOTE: DataError comes from a number that no ledger can contain.
            except (OSError, aiohttp.ClientError, Refused, frames.Unreadable, asyncpg.DataError) as cause:
                log.warning(
                    "ledger_state.unavailable",
                    network=network.name,
                    cause=f"{type(cause).__name__}: {cause}",
                    again_in_s=_PAUSE_S,
                )
            await asyncio.sleep(_PAUSE_S)
    finally:
        db.terminate()


async def _steps(node: Ogmios, db: asyncpg.Connection, changed: asyncio.Event, step: Step) -> None:
    while True:
        changed.clear()
        try:
            worked = await step(node, db)
        except NotThere:
            worked = False
        if not worked:
            await changed.wait()


class NotThere(Exception):
    """The node has no ledger state for our tip, which is on another fork or too old. A later tip may have one."""


async def acquire(node: Ogmios, point: Point) -> None:
    """Acquire the ledger state of a point for the following queries. Raises NotThere."""
    try:
        where = {"slot": point.slot_no, "id": point.block_hash.hex()}
        await node.call("acquireLedgerState", msgspec.Raw, point=where)
    except Refused as refused:
        raise NotThere(str(point)) from refused


async def or_none(node: Ogmios, method: str, kind: type[Any], **params: object) -> Any:
    """The answer to an optional query; None, with a log line, if the node refuses it."""
    try:
        return await node.call(method, kind, **params)
    except Refused as refused:
        log.warning("ledger_state.refused", cause=str(refused))
        return None


async def configuration_of(node: Ogmios, era: str) -> str | None:
    """The genesis configuration of an era without its funds, as JSON; None if the node refuses the query."""
    answer = await or_none(node, "queryNetwork/genesisConfiguration", msgspec.Raw, era=era)
    return None if answer is None else answers.without_funds(answer).decode()


async def summaries_of(node: Ogmios, accounts: list[bytes]) -> dict[bytes, answers.RewardAccountSummary]:
    """Those of some reward accounts that are registered at the acquired point, by the 29 bytes of CIP-19.

    NOTE: a key and a script may have the same 28 bytes, by which Ogmios before 6.13 names both. So it is asked for the
    accounts of each origin alone.
    """
    summaries: dict[bytes, answers.RewardAccountSummary] = {}
    for origin, asked in (("verificationKey", "keys"), ("script", "scripts")):
        of_origin = {raw[1:]: raw for raw in accounts if address.credential_of(raw).origin == origin}
        if of_origin:
            hashes = {asked: [credential.hex() for credential in of_origin]}
            told = await node.call("queryLedgerState/rewardAccountSummaries", answers.Summaries, **hashes)
            summaries |= {
                of_origin[credential]: summary for credential, summary in answers.summaries_by_hash(told).items()
            }
    return summaries


# Rows -----------------------------------------------------------------------------------------------------------------


class _State(msgspec.Struct, frozen=True):
    epoch_no: int
    next_stake_no: StakeNo | None
    complete_epoch_no: int | None


class _RewardAccount(msgspec.Struct, frozen=True):
    stake_no: StakeNo
    raw: bytes


class _PoolReward(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    lovelace: int


class _PoolOutputs(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    pool_id: bytes
    lovelace: int


class _Delegation(msgspec.Struct, frozen=True):
    account: bytes
    pool_id: bytes


class _Extra(msgspec.Struct, frozen=True):
    tx_id: int
    extra: bytes


_sql = sql.beside(__file__)
_state = _sql.query("state", _State)
_store_configuration = _sql.command("store_configuration")
_store_parameters = _sql.command("store_parameters")
_insert_epoch = _sql.command("insert_epoch")
_due = _sql.query("due", _RewardAccount)
_registered = _sql.query("registered", _RewardAccount)
_delete_rewards = _sql.command("delete_rewards")
_store_rewards = _sql.command("store_rewards")
_clear_rewards_due = _sql.command("clear_rewards_due")
_set_next_stake_no = _sql.command("set_next_stake_no")
_forget_begun_round = _sql.command("forget_begun_round")
_store_reward_epoch = _sql.command("store_reward_epoch")
_earnings = _sql.query("earnings", Earning)
_store_earnings = _sql.command("store_earnings")
_complete_round = _sql.command("complete_round")
_outputs_in_stake_snapshot = _sql.query("outputs_in_stake_snapshot", _PoolOutputs)
_delegations_at = _sql.query("delegations_at", _Delegation)
_reaped = _sql.values("reaped", bytes)
_extras_from = _sql.query("extras_from", _Extra)
_account_rewards = _sql.query("account_rewards", _PoolReward)
_delete_pool_rewards = _sql.command("delete_pool_rewards")
_store_pool_rewards = _sql.command("store_pool_rewards")
_complete_epoch = _sql.command("complete_epoch")
