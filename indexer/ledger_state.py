"""What blocks don't say, read from the node's ledger: rewards, reserves, the desired number of pools.

Once in each epoch every delegated account's reward is read, in batches that a restart resumes, and between them those
of accounts whose reward changes. It has a connection of its own to the node and one to the database, and takes a turn
with the writer only for the moment of a write: it is never in the way of following the tip. A node that can't answer
is asked again later.

What rewards add to active stake comes from one of two sources (docs/decisions/0010), as soon as an epoch's round is
through:

- The node's own snapshot, since Conway: pools vote with the snapshot taken where the epoch began, and with the deposits
  of proposals, which the node tells apart (`stakePools` with `includeStake`, `governanceProposals`). It is exact.
- Where the node does not tell a pool's: what the accounts hold now, and took out since, less the pool deposits that
  came back right after the snapshot. It is exact up to Babbage; since Conway it also has what governance paid there.
"""

import asyncio
from collections import Counter
from typing import Any

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer import epochs, frames, ledger_answers, ogmios, store
from indexer.ogmios import Ogmios, Refused
from shared import database, packed, sql
from shared.ledger import Point, TxId, tx_id
from shared.network import Network

log = structlog.get_logger()

BATCH_ACCOUNTS = 1_000
_PAUSE_S = 10.0  # before a node that could not be reached, or refused, is asked again
_CHUNK_TRANSACTIONS = 2_000  # a few ms of unpacking, during which nobody else has a turn
_POOL_DEPOSIT = 500_000_000  # of all three networks since Shelley, where the node does not say
_SCRIPT_ACCOUNT = 0xF0  # the header of a script's reward account, less its network (CIP-19)


def moved_by(transactions: list[packed.Extra]) -> Counter[bytes]:
    """What reward accounts held before some transactions more than after them: withdrawals less credits."""
    moved: Counter[bytes] = Counter()
    for extra in transactions:
        moved.update(extra.withdrawals)
        moved.subtract(extra.credits)
    return moved


class Reader:
    """Reads for one network, as long as its writer lives. `turn` is held by whoever uses `writer`."""

    def __init__(
        self, network: Network, ogmios_url: str, database_url: str, writer: asyncpg.Connection, turn: asyncio.Lock
    ) -> None:
        self._network, self._ogmios_url, self._database_url = network, ogmios_url, database_url
        self._writer, self._turn = writer, turn
        self._changed = asyncio.Event()
        self._told: _Told | None = None

    def tell(self) -> None:
        """The chain has moved: there may be something to read."""
        self._changed.set()

    async def run(self) -> None:
        """Read for ever. Raises what a lost database raises; a lost node is waited for."""
        db = await database.connect(self._database_url, self._network)
        try:
            while True:
                try:
                    node = await ogmios.connect(self._ogmios_url)
                    try:
                        await self._read_on(node, db)
                    finally:
                        await node.close()
                # NOTE: DataError is a figure that no ledger has.
                except (OSError, aiohttp.ClientError, Refused, frames.Unreadable, asyncpg.DataError) as cause:
                    log.warning(
                        "ledger_state.unavailable",
                        network=self._network.name,
                        cause=f"{type(cause).__name__}: {cause}",
                        again_in_s=_PAUSE_S,
                    )
                await asyncio.sleep(_PAUSE_S)
        finally:
            db.terminate()

    async def _read_on(self, node: Ogmios, db: asyncpg.Connection) -> None:
        while True:
            self._changed.clear()
            try:
                worked = await self._step(node, db)
            except _NotThere:
                worked = False
            if not worked:
                await self._changed.wait()

    async def _step(self, node: Ogmios, db: asyncpg.Connection) -> bool:
        """Read the next thing at our tip; False where nothing is to be read now."""
        position = await store.position(db)
        if position is None or position.phase != "live":
            return False
        state, due = await _state.one(db), await _due.all(db, BATCH_ACCOUNTS)
        epoch_no = self._network.epoch_of(position.slot_no)
        begins = state is None or state.epoch_no != epoch_no
        if not begins and not due and state is not None and state.next_stake_id is None:
            return False
        await _acquire(node, position.point)
        if begins:
            await self._begin_epoch(node, position.point, epoch_no)
        elif due:
            await self._read_rewards(node, position.point, due, None)
        elif state is not None and state.next_stake_id is not None:
            accounts = await _delegated.all(db, state.next_stake_id, BATCH_ACCOUNTS)
            if accounts:
                await self._read_rewards(node, position.point, accounts, accounts[-1].stake_id + 1)
            else:
                await self._end_epoch(node, db, position.point, epoch_no, state.complete_epoch_no)
        return True

    async def _begin_epoch(self, node: Ogmios, point: Point, epoch_no: int) -> None:
        treasury = await _or_none(node, "queryLedgerState/treasuryAndReserves", ledger_answers.Treasury)
        parameters = await _or_none(node, "queryLedgerState/protocolParameters", ledger_answers.Parameters)
        async with self._turn:
            if await store.holds(self._writer, point):
                await _begin_epoch.run(
                    self._writer,
                    point.slot_no,
                    epoch_no,
                    None if parameters is None else parameters.desired_number_of_stake_pools,
                    None if treasury is None else frames.lovelace(treasury.reserves),
                    None if treasury is None else frames.lovelace(treasury.treasury),
                    self._first_tx_id(epoch_no - 1),
                )

    async def _read_rewards(
        self, node: Ogmios, point: Point, accounts: "list[_Account]", next_stake_id: int | None
    ) -> None:
        """Read some accounts as of a point, and keep what was found unless that point has left our chain."""
        asked: dict[str, list[str]] = {"keys": [], "scripts": []}
        for account in accounts:
            kind = "scripts" if account.raw[0] & 0xF0 == _SCRIPT_ACCOUNT else "keys"
            asked[kind].append(account.raw[1:].hex())
        summaries = await node.call("queryLedgerState/rewardAccountSummaries", ledger_answers.Summaries, **asked)
        found = ledger_answers.rewards_of(summaries)
        rewards = {account.stake_id: found.get(account.raw[1:], 0) for account in accounts}
        async with self._turn:
            if await store.holds(self._writer, point):
                async with self._writer.transaction():
                    await _write_rewards(self._writer, rewards, point.slot_no)
                    if next_stake_id is not None:
                        await _go_on.run(self._writer, next_stake_id)

    async def _end_epoch(
        self, node: Ogmios, db: asyncpg.Connection, point: Point, epoch_no: int, complete_epoch_no: int | None
    ) -> None:
        """Every reward is read: complete the snapshots with them, and compare live stakes.

        Rewards change where an epoch begins, just before its snapshot is taken, which counts in the next epoch. After
        indexing from scratch the one before it, which counts in this epoch, has none either.

        Only at a tip where all rewards are read are stakes those of one instant. The node stands at `point`, our tip of
        just now; if that has moved to where an epoch began or rewards are to be read again, all this is done later.
        What the node was asked of snapshots is kept until then.
        """
        told = self._told
        if told is None or told.epoch_no != epoch_no or not await store.holds(db, told.point):
            ended = complete_epoch_no is None or complete_epoch_no < epoch_no - 1
            self._told = told = await self._ask(node, db, point, epoch_no, ended=ended)
        async with db.transaction(isolation="repeatable_read", readonly=True):
            position = await self._settled_position(db, told.point, epoch_no)
            if position is None:
                return
            ours = {row.hash: row.lovelace for row in await _live_stakes.all(db)}
            rewards = {opened + 1: await self._pool_rewards(db, told, opened) for opened in told.snapshots}
        compared = await self._compare(node, position, ours)
        async with self._turn:
            if not await store.holds(self._writer, position.point):
                return
            async with self._writer.transaction():
                for counts_in, of_pools in rewards.items():
                    await _forget_pool_rewards.run(self._writer, counts_in)
                    await _learn_pool_rewards.run(
                        self._writer, list(of_pools.keys()), list(of_pools.values()), counts_in
                    )
                figures = (None, None, None) if compared is None else msgspec.structs.astuple(compared)
                await _end_epoch.run(self._writer, *figures)
        if compared is not None:
            log.info(
                "ledger_state.compared",
                network=self._network.name,
                slot_no=position.slot_no,
                pools=compared.pools,
                unlike=compared.unlike,
                difference_lovelace=compared.difference,
            )

    async def _settled_position(self, db: asyncpg.Connection, point: Point, epoch_no: int) -> store.Position | None:
        """Our tip in the snapshot that is open, if every reward there is read and `point` is still of our chain."""
        position, state = await store.position(db), await _state.one(db)
        if position is None or self._network.epoch_of(position.slot_no) != epoch_no:
            return None
        if state is None or state.epoch_no != epoch_no:
            return None
        unread = await _due.all(db, 1) or await _delegated.all(db, state.next_stake_id, 1)
        return None if unread or not await store.holds(db, point) else position

    async def _ask(self, node: Ogmios, db: asyncpg.Connection, point: Point, epoch_no: int, *, ended: bool) -> "_Told":
        """Ask the node, which stands at a point, for its snapshot, and for that of the epoch before if `ended`."""
        snapshots = {epoch_no: await self._told_snapshot(node, db, epoch_no)}
        parameters = await _or_none(node, "queryLedgerState/protocolParameters", ledger_answers.Parameters)
        if ended:
            snapshots[epoch_no - 1] = await self._ended_snapshot(node, db, epoch_no - 1)
        pool_deposit = _POOL_DEPOSIT if parameters is None else frames.lovelace(parameters.stake_pool_deposit)
        return _Told(point, epoch_no, snapshots, pool_deposit)

    async def _told_snapshot(self, node: Ogmios, db: asyncpg.Connection, epoch_no: int) -> dict[bytes, int]:
        """What the node, which stands in an epoch, tells of the snapshot taken where it began, by pool hash."""
        views = dict[str, ledger_answers.PoolView]
        pools = await _or_none(node, "queryLedgerState/stakePools", views, includeStake=True)
        proposals = await _or_none(node, "queryLedgerState/governanceProposals", list[ledger_answers.Proposal])
        if pools is None or proposals is None:
            return {}
        deposits = ledger_answers.deposits_of(proposals)
        delegations = await _delegations_at.all(db, list(deposits), self._first_tx_id(epoch_no))
        return ledger_answers.snapshot_of(pools, deposits, {row.account: row.pool for row in delegations})

    async def _ended_snapshot(self, node: Ogmios, db: asyncpg.Connection, epoch_no: int) -> dict[bytes, int]:
        """The same of an epoch that has ended, while the node still knows its ledger at our last block in it."""
        last = await store.last_at_or_before(db, self._network.epoch_start(epoch_no + 1) - 1)
        if last is None or self._network.epoch_of(last.slot_no) != epoch_no:
            return {}
        try:
            await _acquire(node, last)
        except _NotThere:
            return {}
        return await self._told_snapshot(node, db, epoch_no)

    async def _pool_rewards(self, db: asyncpg.Connection, told: "_Told", opened: int) -> dict[int, int]:
        """What rewards add to the snapshot taken where the epoch `opened` began, by pool_id.

        That is what is told of it less the outputs in it. For other pools it is what their accounts held just then,
        from what they hold now: exact if that is in the same epoch; if not, rewards that came in between are in it too.
        """
        snapshot = told.snapshots[opened]
        rewards, complete = {}, bool(snapshot)
        for pool in await _outputs_in_snapshot.all(db, opened + 1):
            if pool.hash in snapshot:
                rewards[pool.pool_id] = snapshot[pool.hash] - pool.lovelace
            elif pool.lovelace:
                complete = False
        log.info("ledger_state.snapshot", network=self._network.name, epoch_no=opened + 1, told=len(snapshot))
        if not complete:
            first_tx_id = self._first_tx_id(opened)
            moved = await _moved_from(db, first_tx_id)
            for reaped in range(opened, told.epoch_no + 1):
                for retired in await _reaped.all(db, reaped, self._first_tx_id(reaped)):
                    account = packed.unpack_pool_parameters(retired.parameters).reward_account
                    if account is not None:
                        moved[account] -= told.pool_deposit
            by_account = await _account_rewards.all(db, first_tx_id, list(moved.keys()), list(moved.values()))
            rewards = {row.pool_id: row.lovelace for row in by_account} | rewards
        return {pool_id: lovelace for pool_id, lovelace in rewards.items() if lovelace}

    async def _compare(
        self, node: Ogmios, position: store.Position, ours: dict[bytes, int]
    ) -> ledger_answers.Comparison | None:
        """Our live stakes at a tip next to the node's; None where the node does not tell. Raises _NotThere."""
        await _acquire(node, position.point)
        shares = await _or_none(node, "queryLedgerState/liveStakeDistribution", dict[str, ledger_answers.Share])
        treasury = await _or_none(node, "queryLedgerState/treasuryAndReserves", ledger_answers.Treasury)
        if shares is None or treasury is None:
            return None
        return ledger_answers.compare(ours, ledger_answers.live_stakes_of(shares, frames.lovelace(treasury.reserves)))

    def _first_tx_id(self, epoch_no: int) -> TxId:
        return tx_id(self._network.epoch_start(max(epoch_no, 0)), 0)


class _Told(msgspec.Struct, frozen=True):
    """What the node said at a point of snapshots, by the epoch that each opened and by pool hash; empty: nothing."""

    point: Point
    epoch_no: int
    snapshots: dict[int, dict[bytes, int]]
    pool_deposit: int


class _NotThere(Exception):
    """The node can't look at its ledger at our tip: it is of another fork, or too old. Our tip will move."""


async def _acquire(node: Ogmios, point: Point) -> None:
    """Make the following queries ask about a point. Raises _NotThere."""
    try:
        where = {"slot": point.slot_no, "id": point.block_hash.hex()}
        await node.call("acquireLedgerState", msgspec.Raw, point=where)
    except Refused as refused:
        raise _NotThere(str(point)) from refused


async def _or_none(node: Ogmios, method: str, kind: type[Any], **params: object) -> Any:
    """The answer to a query that we can do without; the log says so where it does not come."""
    try:
        return await node.call(method, kind, **params)
    except Refused as refused:
        log.warning("ledger_state.refused", cause=str(refused))
        return None


async def _moved_from(db: asyncpg.Connection, first_tx_id: TxId) -> Counter[bytes]:
    """What reward accounts took out, less what they were credited, in transactions from one on."""
    moved: Counter[bytes] = Counter()
    while found := await _extras_from.all(db, first_tx_id, _CHUNK_TRANSACTIONS):
        moved.update(moved_by([packed.unpack_extra(row.extra) for row in found]))
        first_tx_id = TxId(found[-1].tx_id + 1)
    return moved


async def _write_rewards(db: asyncpg.Connection, rewards: dict[int, int], slot_no: int) -> None:
    """Keep rewards, by stake_id, as they were at a slot, in the commit that is open."""
    some = {stake_id: lovelace for stake_id, lovelace in rewards.items() if lovelace > 0}
    await _forget_rewards.run(db, sorted(rewards.keys() - some.keys()), slot_no)
    await _learn_rewards.run(db, list(some), list(some.values()), slot_no)
    await _settle_rewards.run(db, list(rewards), slot_no)
    await epochs.refresh(db, rewards)


class _State(msgspec.Struct, frozen=True):
    epoch_no: int
    next_stake_id: int | None
    complete_epoch_no: int | None


class _Account(msgspec.Struct, frozen=True):
    stake_id: int
    raw: bytes


class _PoolReward(msgspec.Struct, frozen=True):
    pool_id: int
    lovelace: int


class _PoolOutputs(msgspec.Struct, frozen=True):
    pool_id: int
    hash: bytes
    lovelace: int


class _Delegation(msgspec.Struct, frozen=True):
    account: bytes
    pool: bytes


class _Reaped(msgspec.Struct, frozen=True):
    parameters: bytes


class _Extra(msgspec.Struct, frozen=True):
    tx_id: int
    extra: bytes


class _LiveStake(msgspec.Struct, frozen=True):
    hash: bytes
    lovelace: int


_state = sql.query("state", _State)
_begin_epoch = sql.command("begin_epoch")
_due = sql.query("due", _Account)
_delegated = sql.query("delegated", _Account)
_forget_rewards = sql.command("forget_rewards")
_learn_rewards = sql.command("learn_rewards")
_settle_rewards = sql.command("settle_rewards")
_go_on = sql.command("go_on")
_outputs_in_snapshot = sql.query("outputs_in_snapshot", _PoolOutputs)
_delegations_at = sql.query("delegations_at", _Delegation)
_reaped = sql.query("reaped", _Reaped)
_extras_from = sql.query("extras_from", _Extra)
_account_rewards = sql.query("account_rewards", _PoolReward)
_forget_pool_rewards = sql.command("forget_pool_rewards")
_learn_pool_rewards = sql.command("learn_pool_rewards")
_live_stakes = sql.query("live_stakes", _LiveStake)
_end_epoch = sql.command("end_epoch")
