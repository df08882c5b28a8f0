"""The loop between socket and store, in this process, with small limits for short chains."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from prometheus_client import REGISTRY

from devnet.blocks import Block, Offer, nothing
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from devnet.session import Session
from indexer.blocks.node_warnings import NodeWarnings
from indexer.ledger import reader
from indexer.ogmios import connection as ogmios
from indexer.rows import caches, rows
from indexer.rows.resolver import Resolver
from indexer.rows.value_check import Deposits, Unbalanced
from indexer.store import beginning, forward
from indexer.sync import batches, choice, follow, leading, node_watch, phase, session
from indexer.sync.choice import NodeChoice
from indexer.sync.follow import Follower
from indexer.sync.progress import Progress
from indexer.sync.session import RollbackTooDeep
from shared import database, leader, ledger, lifecycle, network_state, tasks
from shared.network import PREVIEW, Network
from shared.network_state import NetworkState
from tests.chain.dump import Dump, differences, dump
from tests.chain.followers import following, reaches
from tests.patience import PATIENCE_S

SPLIT_BLOCKS = 10
TERMINATE_OTHERS = """SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""


async def indexed(db: asyncpg.Connection, database_url: str, node: NodeServer) -> Dump:
    """A dump of a new index of the node's chain; the index is then erased."""
    async with following(database_url, node) as task:
        await reaches(db, node, task)
    content = await dump(db, PREVIEW.schema)
    await beginning.erase(db)
    return content


async def rewards_are_read(db: asyncpg.Connection) -> None:
    """Wait until the index has all rewards of the tip's epoch from the node."""
    tip_epoch_no = PREVIEW.epoch_of(await db.fetchval("SELECT slot_no FROM tip"))
    complete = (
        "SELECT epoch_no = $1 AND next_stake_no IS NULL AND NOT EXISTS (SELECT FROM reward_due) FROM ledger_state"
    )
    async with asyncio.timeout(PATIENCE_S):
        while not await db.fetchval(complete, tip_epoch_no):
            await asyncio.sleep(0.02)


def interruptions() -> float:
    """The number of times that an indexer of preview in this process has lost Postgres or the node."""
    return REGISTRY.get_sample_value("ledgerline_indexer_interruptions_total", {"network": "preview"}) or 0.0


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def test_full_caches_still_contain_uncommitted_rows(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with NodeServer(Generated(Options(seed=3, blocks_per_epoch=20, density=3), 60)) as node:
        straight = await indexed(db, database_url, node)
        for most in ("MAX_OUTPUTS", "MAX_NUMBERS", "MAX_ADDRESSES"):
            monkeypatch.setattr(caches, most, 2)
        monkeypatch.setattr(batches, "MAX_BLOCKS", 1)
        assert differences(straight, await indexed(db, database_url, node)) == []


@pytest.mark.parametrize(("most", "blocks"), [(2, 5), (40, 5), (10_000, 20)])
async def test_bulk_looks_up_a_batch_while_the_previous_one_is_built(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, most: int, blocks: int
) -> None:
    """With caches that are always, sometimes or never trimmed, and with a last batch that a rollback cuts short."""
    chain = Generated(Options(seed=3, blocks_per_epoch=20, density=3), 60)
    fork = chain.fork(54, seed=4, blocks=40)
    async with NodeServer(fork) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await rewards_are_read(db)
        straight = await dump(db, PREVIEW.schema)
    await beginning.erase(db)
    monkeypatch.setattr(batches, "MAX_BLOCKS", blocks)
    monkeypatch.setattr(phase, "BULK_FROM_BLOCKS", 10)
    monkeypatch.setattr(phase, "SECURITY_PARAMETER", 0)  # bulk never ends
    for each in ("MAX_OUTPUTS", "MAX_NUMBERS", "MAX_ADDRESSES"):
        monkeypatch.setattr(caches, each, most)
    cached: dict[Resolver, list[int]] = {}
    building = 0

    async def built_late(
        blocks: Any, first_seen: Any, crossed: Any, era: str, resolver: Resolver, *rest: Any
    ) -> rows.Built:
        nonlocal building
        sizes = cached.setdefault(resolver, [])
        sizes.append(len(resolver.assets))  # a rollback takes addresses out of their cache, too
        building += 1
        assert building == 1, "rows are built in order"
        # Longer than the look-ups of the next batch, and then longer than the next building.
        await asyncio.sleep(0.1 if len(sizes) % 2 else 0.02)
        building -= 1
        return await build(blocks, first_seen, crossed, era, resolver, *rest)

    build = rows.build
    monkeypatch.setattr(rows, "build", built_late)
    async with NodeServer(chain.fork(59, seed=3)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        node.switch(fork.fork(90, seed=4))
        await reaches(db, node, task)
        assert await db.fetchval("SELECT phase FROM tip") == "bulk"
        monkeypatch.setattr(phase, "SECURITY_PARAMETER", 5)
        node.switch(fork)
        await reaches(db, node, task)
        assert await db.fetchval("SELECT phase FROM tip") == "live"
        await rewards_are_read(db)
    assert differences(straight, await dump(db, PREVIEW.schema)) == []
    trimmed = any(later < earlier for sizes in cached.values() for earlier, later in pairwise(sizes))
    assert trimmed == (most < 10_000)


async def test_a_wait_for_a_node_behind_the_index_is_not_an_interruption(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "SECURITY_PARAMETER", 10)
    async with NodeServer(Generated(Options(seed=3), 30)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
    before = interruptions()
    async with NodeServer(Generated(Options(seed=3), 5)) as replaying, following(database_url, replaying):
        logged = ""
        async with asyncio.timeout(PATIENCE_S):
            while "waiting for the node" not in logged:
                await asyncio.sleep(0.02)
                logged += capsys.readouterr().out
    assert "follow.interrupted" in logged
    assert interruptions() == before


@pytest.mark.parametrize("common, slot_no", [(-1, 0), (5, None)])
async def test_a_longer_chain_that_parts_too_deep_stops_the_indexer_and_removes_nothing(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, common: int, slot_no: int | None
) -> None:
    """In a session, and when one opens. A parting that is as deep as a node can roll back is followed."""
    chain = Generated(Options(seed=3), 30)
    depth = len(chain.blocks) - 1 - max(common, 0)
    refusal = f"--network preview --from-slot {chain.blocks[common].slot if slot_no is None else slot_no} --yes"
    monkeypatch.setattr(ledger, "SECURITY_PARAMETER", depth)
    monkeypatch.setattr(session, "SECURITY_PARAMETER", depth - 1)
    async with NodeServer(chain) as node:
        with pytest.raises(RollbackTooDeep, match=refusal):
            async with following(database_url, node) as task:
                await reaches(db, node, task)
                before = await dump(db, PREVIEW.schema)
                node.switch(chain.fork(common, seed=4, blocks=40))
                await task
    async with NodeServer(chain.fork(common, seed=4, blocks=40)) as other:
        with pytest.raises(RollbackTooDeep, match=refusal):
            async with following(database_url, other) as task:
                await task
        assert differences(before, await dump(db, PREVIEW.schema)) == []
        assert await db.fetchval("SELECT refused FROM partner.leader WHERE network_id = 1") == (
            "the node's chain differs from ours more deeply than a node can roll back"
        )
        if common >= 0:
            monkeypatch.setattr(session, "SECURITY_PARAMETER", depth)
            async with following(database_url, other) as task:
                await reaches(db, other, task)


async def test_a_commit_that_waits_for_a_lock_is_told(db: asyncpg.Connection, database_url: str) -> None:
    async def waits() -> float | None:
        return (await leader.last_heartbeats(db))[PREVIEW.network_id].lock_wait_s

    async with NodeServer(Generated(Options(seed=3), 5)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        assert await waits() is None
        holder = await database.connect(database_url, PREVIEW)
        async with asyncio.timeout(PATIENCE_S):
            async with holder.transaction():
                await holder.execute("LOCK TABLE tx")
                node.grow()
                while not await waits():
                    await asyncio.sleep(0.02)
            while await waits():
                await asyncio.sleep(0.02)
        await holder.close()


async def test_each_session_has_another_numbering(db: asyncpg.Connection, database_url: str) -> None:
    """Postgres may have lost earlier commits, and with them numbers that an API has seen."""
    async with NodeServer(Generated(Options(seed=3), 5)) as node:
        async with following(database_url, node) as task:
            await reaches(db, node, task)
        before = await db.fetchval("SELECT numbering FROM tip")
        async with following(database_url, node) as task, asyncio.timeout(PATIENCE_S):
            while before == await db.fetchval("SELECT numbering FROM tip"):
                assert not task.done()
                await asyncio.sleep(0.02)


async def test_a_standby_that_loses_its_connections_still_takes_over_immediately(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leading, "POLL_S", 0.02)
    monkeypatch.setattr(lifecycle, "MAX_PAUSE_S", 0.2)
    assert await database.try_to_lead(db, PREVIEW)
    before, lost = interruptions(), set[int]()
    async with NodeServer(Generated(Options(seed=3), 5)) as node, following(database_url, node) as task:
        async with asyncio.timeout(PATIENCE_S):
            while len(lost) < 8:
                lost.update(row["pid"] for row in await db.fetch(TERMINATE_OTHERS))
                await asyncio.sleep(0.02)
        await db.execute("SELECT pg_advisory_unlock_all()")
        await reaches(db, node, task)
    assert interruptions() == before


BEYOND: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pools": ("protocolParameters", lambda told: told | {"desiredNumberOfStakePools": 1 << 40}),
    "reserves": ("treasuryAndReserves", lambda told: told | {"reserves": {"ada": {"lovelace": 1 << 64}}}),
    "rewards": (
        "rewardAccountSummaries",
        lambda told: [each | {"rewards": {"ada": {"lovelace": 1 << 63}}} for each in told],
    ),
}


@pytest.mark.parametrize("case", BEYOND)
async def test_impossible_figures_do_not_stop_following(db: asyncpg.Connection, database_url: str, case: str) -> None:
    name, beyond = BEYOND[case]

    class Nonsense(NodeServer):
        def query(self, session: Session, method: str, params: Any) -> Any:
            told = super().query(session, method, params)
            return beyond(told) if method == f"queryLedgerState/{name}" else told

    chain = Generated(Options(seed=3, blocks_per_epoch=20, density=3, eras=(("conway", 0),)), 60)
    async with Nonsense(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        async with asyncio.timeout(PATIENCE_S):
            while not node.requests[f"queryLedgerState/{name}"]:
                await asyncio.sleep(0.02)
        node.grow(5)
        await reaches(db, node, task)
        assert not task.done()


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        ({}, False),
        ({"stakeCredentialDeposit": {"ada": {"lovelace": 3_000_000}}}, True),
        ({"stakeCredentialDeposit": "nonsense"}, False),
        ({"stakeCredentialDeposit": None}, False),
    ],
)
async def test_a_session_knows_whether_governance_has_changed_deposits(
    db: asyncpg.Connection, told: dict[str, Any], changed: bool
) -> None:
    class Governed(NodeServer):
        def query(self, session: Session, method: str, params: Any) -> Any:
            found = super().query(session, method, params)
            return found | told if method == "queryLedgerState/protocolParameters" else found

    async with Governed(Generated(Options(seed=3), 5)) as node:
        connection = await ogmios.connect(node.url)
        opened = await session.open_session(connection, PREVIEW, db)
        await connection.close()
    assert isinstance(opened, session.NodeSession)
    assert opened.deposits == Deposits(2_000_000, 500_000_000, changed=changed)


@pytest.mark.parametrize("reported", [True, False])
async def test_a_deposit_changed_during_a_session_stops_only_an_index_whose_node_does_not_report_it(
    db: asyncpg.Connection, database_url: str, reported: bool
) -> None:
    halved = {"stakePoolDeposit": {"ada": {"lovelace": 250_000_000}}}

    class Governed(NodeServer):
        def query(self, session: Session, method: str, params: Any) -> Any:
            found = super().query(session, method, params)
            return found | halved if method == "queryLedgerState/protocolParameters" and has_changed(self) else found

    class HalfTheDeposit(Generated):
        """From epoch 1 on, registrations of pools take half the deposit; the fee is higher by the other half."""

        registered = 0

        def grow(self, count: int = 1, offer: Offer = nothing) -> list[Block]:
            fresh = super().grow(count, offer)
            for block in fresh:
                for tx in block.decoded()["transactions"] if PREVIEW.epoch_of(block.slot) else ():
                    kinds = [certificate["type"] for certificate in tx.get("certificates", ())]
                    if "stakePoolRegistration" in kinds:
                        tx["fee"]["ada"]["lovelace"] += 250_000_000
                        self.registered += 1
            return fresh

    def has_changed(node: NodeServer) -> bool:
        return reported and node.tip is not None and PREVIEW.epoch_of(node.tip.slot) > 0

    chain = HalfTheDeposit(Options(seed=3, blocks_per_epoch=20, density=3, eras=(("conway", 0),)), 10)
    stops = nullcontext() if reported else pytest.raises(Unbalanced)
    async with Governed(chain) as node:
        with stops:
            async with following(database_url, node) as task:
                await reaches(db, node, task)
                while not chain.registered:
                    node.grow(5)
                await reaches(db, node, task)


async def test_a_fault_of_a_background_task_does_not_stop_following(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> bool:
        raise KeyError("a bug")

    monkeypatch.setattr(reader.LedgerReader, "_step", fails)
    async with NodeServer(Generated(Options(seed=3), 10)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        async with asyncio.timeout(PATIENCE_S):
            while not [failure for failure in tasks.failing() if failure.task == "ledger state"]:
                await asyncio.sleep(0.02)
        node.grow(5)
        await reaches(db, node, task)
        failing: list[list[str]] = []
        async with asyncio.timeout(PATIENCE_S):
            while ["ledger state"] not in failing:
                failing = [each.failing for each in (await leader.last_heartbeats(db)).values()]
                await asyncio.sleep(0.1)


async def test_an_unexpected_error_is_retried(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with NodeServer(Generated(Options(seed=3), 10)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        for error in (asyncpg.UndefinedTableError("gone"), RuntimeError("odd"), ExceptionGroup("odd", [OSError("x")])):
            left = [error]
            append = forward.append

            async def once(*arguments: Any, left: list[Exception] = left, append: Any = append, **named: Any) -> None:
                if left:
                    raise left.pop()
                await append(*arguments, **named)

            with monkeypatch.context() as patched:
                patched.setattr(forward, "append", once)
                node.grow(1)
                await reaches(db, node, task)
            assert not left


async def test_pauses_after_errors_grow_until_blocks_arrive(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s, failing, open_session, sleep = list[float](), 8, session.open_session, lifecycle.sleep

    async def fails(*arguments: Any, **named: Any) -> Any:
        nonlocal failing
        if failing:
            failing -= 1
            raise ConnectionResetError
        return await open_session(*arguments, **named)

    async def noted(seconds: float, stop: asyncio.Event) -> None:
        if seconds == leader.BEAT_EVERY_S:
            await sleep(seconds, stop)
        else:
            pauses_s.append(seconds)

    monkeypatch.setattr(session, "open_session", fails)
    monkeypatch.setattr(lifecycle, "sleep", noted)
    async with NodeServer(Generated(Options(seed=3), 10)) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        assert pauses_s == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
        failing = 1
        node.drop_connections()
        node.grow(1)
        await reaches(db, node, task)
    assert pauses_s[8:] == [0.5, 1.0]


async def test_a_prepared_batch_is_written_before_the_indexer_stops(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, writing, free = asyncio.Event(), asyncio.Event(), asyncio.Event()
    append = forward.append

    async def slow(*arguments: Any, **named: Any) -> None:
        writing.set()
        await free.wait()
        await append(*arguments, **named)

    async with NodeServer(Generated(Options(seed=3), 10)) as node:
        follower = Follower(PREVIEW, database_url, NodeChoice([node.url]), 10, Progress(PREVIEW), NodeWarnings())
        task = asyncio.create_task(follower.run(stop))
        await reaches(db, node, task)
        monkeypatch.setattr(forward, "append", slow)
        node.grow(1)
        async with asyncio.timeout(PATIENCE_S):
            await writing.wait()
        stop.set()
        await asyncio.wait((task,), timeout=0.5)  # time for any cancellation to take effect
        free.set()
        async with asyncio.timeout(PATIENCE_S):
            await task
        assert node.tip is not None
        assert await db.fetchval("SELECT block_hash FROM tip") == bytes.fromhex(node.tip.id)


async def test_an_error_in_building_rows_does_not_wait_for_the_writer(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = asyncio.Event()

    async def endless(*_: object, **__: object) -> None:
        writing.set()
        await asyncio.Event().wait()

    async def wrong(*_: object) -> None:
        raise AssertionError("an amount below zero")

    async with NodeServer(Generated(Options(seed=3), 10)) as node:
        follower = Follower(PREVIEW, database_url, NodeChoice([node.url]), 10, Progress(PREVIEW), NodeWarnings())
        task = asyncio.create_task(follower.run(asyncio.Event()))
        await reaches(db, node, task)
        monkeypatch.setattr(forward, "append", endless)
        node.grow(1)
        async with asyncio.timeout(PATIENCE_S):
            await writing.wait()
            monkeypatch.setattr(rows, "build", wrong)
            node.grow(1)
            with pytest.raises(AssertionError, match="an amount below zero"):
                await task


async def test_a_failed_assertion_stops_the_indexer(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(*_: object, **__: object) -> None:
        raise AssertionError("an amount below zero")

    async with NodeServer(Generated(Options(seed=3), 10)) as node:
        with pytest.raises(AssertionError, match="an amount below zero"):
            async with following(database_url, node) as task:
                await reaches(db, node, task)
                monkeypatch.setattr(forward, "append", wrong)
                node.grow(1)
                async with asyncio.timeout(PATIENCE_S):
                    await asyncio.shield(task)


@asynccontextmanager
async def following_two(
    database_url: str, first: NodeServer, second: NodeServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[asyncio.Task[None]]:
    """An indexer with two nodes, which tries the second one almost at once."""
    monkeypatch.setattr(choice, "FAILOVER_AFTER_S", 0.2)
    monkeypatch.setattr(follow, "_MAX_PAUSE_S", 0.1)
    stop, nodes = asyncio.Event(), NodeChoice([first.url, second.url])
    task = asyncio.create_task(
        Follower(PREVIEW, database_url, nodes, SPLIT_BLOCKS, Progress(PREVIEW), NodeWarnings()).run(stop)
    )
    try:
        yield task
    finally:
        stop.set()
        await task


async def test_the_next_node_is_followed_once_it_is_not_behind(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        first = NodeServer(Generated(Options(seed=3), 20))
        second = await stack.enter_async_context(NodeServer(Generated(Options(seed=3), 18)))
        async with first:
            task = await stack.enter_async_context(following_two(database_url, first, second, monkeypatch))
            await reaches(db, first, task)
        await asked_again(second, task)
        second.grow(1)
        await asked_again(second, task)
        second.grow(2)
        await reaches(db, second, task)
        assert second.index_of({"slot": first.blocks[-1].slot, "id": first.blocks[-1].id}) == 19
        assert not await db.fetchval("SELECT sum(rollbacks) FROM rollback_depth"), "no valid block was undone"


async def test_a_node_whose_chain_lacks_many_of_our_blocks_is_not_followed(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Generated(Options(seed=3), 40)
    async with AsyncExitStack() as stack:
        first = NodeServer(chain)
        other = chain.fork(39 - SPLIT_BLOCKS - 1, seed=4, blocks=30)
        second = await stack.enter_async_context(NodeServer(other))
        async with first:
            task = await stack.enter_async_context(following_two(database_url, first, second, monkeypatch))
            await reaches(db, first, task)
            port = urlsplit(first.url).port
        await asked_again(second, task)
        assert await db.fetchval("SELECT block_hash FROM tip") == bytes.fromhex(first.blocks[-1].id)
        assert port is not None
        first = await stack.enter_async_context(NodeServer(Generated(Options(seed=3), 41), port=port))
        await reaches(db, first, task)
        assert not await db.fetchval("SELECT sum(rollbacks) FROM rollback_depth")


async def test_a_node_whose_chain_lacks_as_many_of_our_blocks_as_allowed_is_followed(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Generated(Options(seed=3), 40)
    async with AsyncExitStack() as stack:
        first = NodeServer(chain)
        other = chain.fork(39 - SPLIT_BLOCKS, seed=4, blocks=SPLIT_BLOCKS)
        second = await stack.enter_async_context(NodeServer(other))
        async with first:
            task = await stack.enter_async_context(following_two(database_url, first, second, monkeypatch))
            await reaches(db, first, task)
        await reaches(db, second, task)


async def test_a_standby_that_takes_over_waits_for_its_first_node_as_after_a_start(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, take_the_lead = 100.0, leading.take_the_lead
    nodes = NodeChoice(["ws://a", "ws://b"], lambda: now_s)
    follower = Follower(PREVIEW, database_url, nodes, SPLIT_BLOCKS, Progress(PREVIEW), NodeWarnings())

    async def take_it_later(db: asyncpg.Connection, network: Network) -> None:
        nonlocal now_s
        now_s += 3_600
        await take_the_lead(db, network)

    monkeypatch.setattr(leading, "take_the_lead", take_it_later)
    async with follower._writer(asyncio.Event()):
        first = nodes.next()
        assert first.number == 1
        assert not nodes.refused(first), "no other one is tried yet"
        now_s += choice.FAILOVER_AFTER_S
        assert nodes.next().number == 2


async def asked_again(node: NodeServer, task: asyncio.Task[None]) -> None:
    """Wait until the indexer has looked at a node's chain twice more."""
    before = node.requests["findIntersection"]
    async with asyncio.timeout(PATIENCE_S):
        while node.requests["findIntersection"] < before + 2:
            assert not task.done()
            await asyncio.sleep(0.02)


async def test_a_split_is_noted_for_as_long_as_it_lasts(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both nodes follow one chain, then two, and then the longer one of them."""
    monkeypatch.setattr(node_watch, "LOOK_EVERY_S", 0.05)
    chain = Generated(Options(seed=3), 30)
    other = chain.fork(19, seed=4, blocks=SPLIT_BLOCKS)

    async def state_is(expected: str) -> NetworkState:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                assert not task.done()
                heartbeat = (await leader.last_heartbeats(db))[PREVIEW.network_id]
                found = network_state.derive(PREVIEW, await network_state.index_state(db), heartbeat, 300.0)
                if [node.state for node in found.nodes] == ["followed", expected]:
                    return found
                await asyncio.sleep(0.02)

    async with (
        NodeServer(chain) as first,
        NodeServer(Generated(Options(seed=3), 20)) as second,
        following_two(database_url, first, second, monkeypatch) as task,
    ):
        assert not (await state_is("in_step")).splits
        second.switch(other)
        assert not (await state_is("in_step")).splits, "ten blocks on each side are no split yet"
        first.grow(1)
        await reaches(db, first, task)
        second.grow(1)
        found = await state_is("diverged")
        (split,) = found.splits
        assert split.common is not None and split.common.block_hash == chain.blocks[19].id
        assert (split.node, split.our_tip.block_hash, split.node_tip.block_hash) == (
            2,
            first.blocks[-1].id,
            second.blocks[-1].id,
        )
        assert await told_of_splits(db) == ["begun"]
        assert any("the chain of preview has split" in reason for reason in network_state.reasons(found))
        second.drop_connections()
        await second._runner.cleanup()  # type: ignore[union-attr]  # it listens
        assert (await state_is("unreachable")).splits == [split], "nobody knows whether it has ended"
        port = urlsplit(second.url).port
        assert port is not None
        async with NodeServer(Generated(Options(seed=3), 32), port=port):
            found = await state_is("in_step")
            async with asyncio.timeout(PATIENCE_S):
                while await db.fetchval("SELECT count(*) FROM partner.chain_split"):
                    await asyncio.sleep(0.02)
        assert await told_of_splits(db) == ["begun", "ended"]


async def told_of_splits(db: asyncpg.Connection) -> list[str]:
    """What notices say of splits, in their order."""
    rows = await db.fetch("SELECT body::json ->> 'state' FROM partner.event_notice ORDER BY notice_no")
    return [row[0] for row in rows]
