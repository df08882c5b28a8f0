"""What blocks don't say, read from the node's ledger: rewards, reserves, the desired number of pools.

Once in each epoch every delegated account's reward is read, in batches that a restart resumes, and between them those
of accounts whose reward changes. It has a connection of its own to the node and one to the database, and takes a turn
with the writer only for the moment of a write: it is never in the way of following the tip. A node that can't answer
is asked again later.
"""

import asyncio
from typing import Any

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer import epochs, frames, ogmios, store
from indexer.ogmios import Ogmios, Refused
from shared import database, sql
from shared.encoding import bech32_payload
from shared.ledger import Point, tx_id
from shared.network import Network

log = structlog.get_logger()

BATCH_ACCOUNTS = 1_000
_PAUSE_S = 10.0  # before a node that could not be reached, or refused, is asked again
_SCRIPT_ACCOUNT = 0xF0  # the header of a script's reward account, less its network (CIP-19)


class Summary(msgspec.Struct, frozen=True):
    """What the node says of a reward account. From Ogmios 6.13 on it says whose, before that a key of the answer."""

    rewards: frames.Lovelace
    credential: str | None = None


class PoolView(msgspec.Struct, frozen=True):
    """What we look at of a registered pool; `stake` only where the node was asked for it and knows how."""

    stake: frames.Lovelace | None = None


class Treasury(msgspec.Struct, frozen=True):
    treasury: frames.Lovelace
    reserves: frames.Lovelace


class Parameters(msgspec.Struct, frozen=True, rename="camel"):
    desired_number_of_stake_pools: int


class Comparison(msgspec.Struct, frozen=True):
    """Live stakes of ours and the node's: how many pools, how many differ, by how many lovelace in all."""

    pools: int
    unlike: int
    difference: int


Summaries: Any = list[Summary] | dict[str, Summary]


def rewards_of(summaries: list[Summary] | dict[str, Summary]) -> dict[bytes, int]:
    """Lovelace by credential (28 bytes), in the forms of Ogmios 6.11 to 7. Raises frames.Unreadable."""
    if isinstance(summaries, list):
        summaries = {summary.credential: summary for summary in summaries if summary.credential is not None}
    try:
        return {bytes.fromhex(credential): frames.lovelace(said.rewards) for credential, said in summaries.items()}
    except ValueError as error:
        raise frames.Unreadable(f"reward account summaries: {error}") from error


def compare(ours: dict[bytes, int], theirs: dict[str, PoolView]) -> Comparison | None:
    """How our live stakes, by hash, differ from the node's; None where it says none. Raises frames.Unreadable."""
    try:
        known = {bech32_payload(pool): frames.lovelace(view.stake) for pool, view in theirs.items() if view.stake}
    except ValueError as error:
        raise frames.Unreadable(f"stake pools: {error}") from error
    if not known:
        return None
    differences = [abs(ours.get(pool, 0) - stake) for pool, stake in known.items()]
    return Comparison(len(known), sum(difference > 0 for difference in differences), sum(differences))


class Reader:
    """Reads for one network, as long as its writer lives. `turn` is held by whoever uses `writer`."""

    def __init__(
        self, network: Network, ogmios_url: str, database_url: str, writer: asyncpg.Connection, turn: asyncio.Lock
    ) -> None:
        self._network, self._ogmios_url, self._database_url = network, ogmios_url, database_url
        self._writer, self._turn = writer, turn
        self._changed = asyncio.Event()

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
                except (OSError, aiohttp.ClientError, Refused, frames.Unreadable) as cause:
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
                await self._end_epoch(node, db, epoch_no, state.complete_epoch_no)
        return True

    async def _begin_epoch(self, node: Ogmios, point: Point, epoch_no: int) -> None:
        treasury = await _or_none(node, "queryLedgerState/treasuryAndReserves", Treasury)
        parameters = await _or_none(node, "queryLedgerState/protocolParameters", Parameters)
        async with self._turn:
            await _begin_epoch.run(
                self._writer,
                point.slot_no,
                epoch_no,
                None if parameters is None else parameters.desired_number_of_stake_pools,
                None if treasury is None else frames.lovelace(treasury.reserves),
                None if treasury is None else frames.lovelace(treasury.treasury),
            )

    async def _read_rewards(
        self, node: Ogmios, point: Point, accounts: "list[_Account]", next_stake_id: int | None
    ) -> None:
        """Read some accounts as of a point, and keep what was found unless that point has left our chain."""
        asked: dict[str, list[str]] = {"keys": [], "scripts": []}
        for account in accounts:
            kind = "scripts" if account.raw[0] & 0xF0 == _SCRIPT_ACCOUNT else "keys"
            asked[kind].append(account.raw[1:].hex())
        found = rewards_of(await node.call("queryLedgerState/rewardAccountSummaries", Summaries, **asked))
        rewards = {account.stake_id: found.get(account.raw[1:], 0) for account in accounts}
        async with self._turn:
            if await store.holds(self._writer, point):
                async with self._writer.transaction():
                    await _write_rewards(self._writer, rewards, point.slot_no)
                    if next_stake_id is not None:
                        await _go_on.run(self._writer, next_stake_id)

    async def _end_epoch(
        self, node: Ogmios, db: asyncpg.Connection, epoch_no: int, complete_epoch_no: int | None
    ) -> None:
        """Every reward is read: complete the snapshots with them, and compare live stakes.

        Rewards change where an epoch begins, just before its snapshot is taken, which counts in the next epoch. After
        indexing from scratch the one that counts in this epoch has none: those of now are next to them.
        """
        snapshots = [(epoch_no + 1, await self._pool_rewards(db, epoch_no))]
        if complete_epoch_no is None or complete_epoch_no < epoch_no - 1:
            snapshots.append((epoch_no, await self._pool_rewards(db, epoch_no - 1)))
        compared = await self._compare(node, db)
        async with self._turn, self._writer.transaction():
            await _forget_pool_rewards.run(self._writer, epoch_no + 1)
            for counts_in, rewards in snapshots:
                columns = [list(column) for column in zip(*rewards, strict=True)] or [[], []]
                await _learn_pool_rewards.run(self._writer, *columns, counts_in)
            figures = (None, None, None) if compared is None else msgspec.structs.astuple(compared)
            await _end_epoch.run(self._writer, *figures)

    async def _pool_rewards(self, db: asyncpg.Connection, epoch_no: int) -> list[tuple[int, int]]:
        first_tx_id = tx_id(self._network.epoch_start(max(epoch_no, 0)), 0)
        return [(row.pool_id, row.lovelace) for row in await _pool_rewards.all(db, first_tx_id)]

    async def _compare(self, node: Ogmios, db: asyncpg.Connection) -> Comparison | None:
        async with db.transaction(isolation="repeatable_read", readonly=True):
            position = await store.position(db)
            ours = {row.hash: row.lovelace for row in await _live_stakes.all(db)}
        assert position is not None, "the caller looked"
        await _acquire(node, position.point)
        theirs = await _or_none(node, "queryLedgerState/stakePools", dict[str, PoolView], includeStake=True)
        compared = None if theirs is None else compare(ours, theirs)
        if compared is not None:
            log.info(
                "ledger_state.compared",
                network=self._network.name,
                slot_no=position.slot_no,
                pools=compared.pools,
                unlike=compared.unlike,
                difference_lovelace=compared.difference,
            )
        return compared


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
_pool_rewards = sql.query("pool_rewards", _PoolReward)
_forget_pool_rewards = sql.command("forget_pool_rewards")
_learn_pool_rewards = sql.command("learn_pool_rewards")
_live_stakes = sql.query("live_stakes", _LiveStake)
_end_epoch = sql.command("end_epoch")
