"""Blocks of another fork that arrive in time are written in the commit that undoes those that they replace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import asyncpg
import pytest

from devnet.blocks import Block, Chain
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.blocks.packed_block import PackedBlock
from indexer.rows import rows
from indexer.store import beginning, outputs
from indexer.sync import batches
from shared import database
from shared.ledger import Point
from shared.network import PREVIEW
from tests.chain import reordered
from tests.chain.dump import Dump, differences, dump
from tests.chain.followers import following, reaches
from tests.chain.scripted import Scripted, delegate, join
from tests.chain.test_follow import rewards_are_read
from tests.patience import PATIENCE_S

# The tip of each commit and the pools of all delegators, as readers see them: a deferred trigger fires when everything
# is written.
TIPS = """
CREATE TABLE public.tips (place serial, slot_no bigint, hash bytea, pools integer[]);
CREATE FUNCTION public.note_tip() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.tips (slot_no, hash, pools)
    SELECT slot_no, block_hash, (SELECT array_agg(pool_no ORDER BY stake_no) FROM delegator) FROM tip;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER noted AFTER UPDATE ON tip DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION public.note_tip();
"""


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


class Arrivals:
    """Decides how many blocks of a fork have arrived when the rollback is ready for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks = 0
        arrived = batches.Incoming.arrived

        async def in_time(self_: batches.Incoming, wanted: Callable[[PackedBlock], bool]) -> list[PackedBlock]:
            async with asyncio.timeout(PATIENCE_S):
                while self_._queue.qsize() < self.blocks:
                    await asyncio.sleep(0.001)
            left = self.blocks

            def first(block: PackedBlock) -> bool:
                nonlocal left
                left -= 1
                return left >= 0 and wanted(block)

            return await arrived(self_, first)

        monkeypatch.setattr(batches.Incoming, "arrived", in_time)


@pytest.mark.parametrize(("seed", "most"), [*((seed, 2_500) for seed in (0, 2, 3, 4, 5, 7)), (10, 3)])
async def test_no_reader_sees_a_fork_without_the_blocks_that_have_arrived(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, seed: int, most: int
) -> None:
    """Forks with the same transactions in other blocks and with other transactions, within an epoch and over several:
    the index is that of the last chain, and each commit ends where it should: at the last block that has arrived, at
    the end of the epoch, or once it has `most` transactions.
    """
    monkeypatch.setattr(batches, "MAX_TRANSACTIONS", most)
    random, arrivals = Random(seed), Arrivals(monkeypatch)
    generated = Generated(Options(seed=seed, blocks_per_epoch=25, density=3), 80)
    blocks, in_one_commit = generated.blocks, 0
    async with NodeServer(generated) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await db.execute(TIPS)
        for _ in range(10):
            after = len(blocks) - 1 - random.randint(1, 12)
            if random.random() < 0.7:
                blocks = reordered.fork(blocks, after, random.getrandbits(30))
            else:
                after = min(after, len(generated.blocks) - 2)
                blocks = generated.fork(after, random.getrandbits(30), random.randint(1, 15)).blocks
            both = zip(node.blocks, blocks, strict=False)
            shared = next((place for place, (ours, theirs) in enumerate(both) if ours != theirs), None)
            if shared is None:
                continue  # the blocks have too few transactions to be in another order
            await db.execute("TRUNCATE public.tips")
            arrivals.blocks = random.randint(0, len(blocks) - shared)
            node.switch(given(generated, blocks))
            await reaches(db, node, task)
            tips = [Point(*row) for row in await db.fetch("SELECT slot_no, hash FROM public.tips ORDER BY place")]
            fork, *others = blocks[shared - 1 :]
            in_time, transactions = list[Block](), 0
            for block in others[: arrivals.blocks]:
                if PREVIEW.epoch_of(block.slot) == PREVIEW.epoch_of(fork.slot) and transactions < most:
                    in_time.append(block)
                    transactions += len(block.decoded().get("transactions", ()))
            last = in_time[-1] if in_time else fork
            assert tips[0] == Point(last.slot, bytes.fromhex(last.id))
            in_one_commit += len(in_time)
        await rewards_are_read(db)
        forked = await dump(db, PREVIEW.schema)
    assert in_one_commit > 10
    arrivals.blocks = 0
    straight = await straight_dump(db, database_url, given(generated, blocks))
    assert differences(straight, forked) == []


async def test_a_fork_whose_commit_fails_leaves_the_chain_as_it_was(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error after everything is undone, and one after everything is written; then the fork is written whole."""
    arrivals, seen = Arrivals(monkeypatch), list[bytes]()
    other = await database.connect(database_url, PREVIEW)
    chain = Generated(Options(seed=5, blocks_per_epoch=25, density=3), 40)
    fork = chain.fork(35, seed=6, blocks=5)

    def failing_once(of: Callable[..., Any]) -> Callable[..., Any]:
        async def fail_or_call(*arguments: Any) -> Any:
            if of in failed or not arrivals.blocks:
                return await of(*arguments)
            failed.add(of)
            seen.append(await other.fetchval("SELECT block_hash FROM tip"))
            raise RuntimeError("a fault")

        return fail_or_call

    failed = set[Callable[..., Any]]()
    monkeypatch.setattr(rows, "build", failing_once(rows.build))
    monkeypatch.setattr(outputs, "change_spenders", failing_once(outputs.change_spenders))
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        before = bytes.fromhex(chain.blocks[-1].id)
        arrivals.blocks = len(fork.blocks) - 36
        node.switch(fork)
        await reaches(db, node, task)
        await rewards_are_read(db)
        forked = await dump(db, PREVIEW.schema)
        assert await db.fetchval("SELECT sum(rollbacks) FROM rollback_depth") == 1
    await other.close()
    assert seen == [before, before]
    arrivals.blocks = 0
    assert differences(await straight_dump(db, database_url, fork), forked) == []


async def test_delegations_on_either_side_of_a_fork_are_in_the_lists_of_delegators(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One account delegates in the block that is undone, another in the block that replaces it; neither is paid.

    Looks into the commit itself, because the lists are updated again when the rewards of these accounts are read.
    """
    chain, arrivals = Scripted(), Arrivals(monkeypatch)
    (ann, bob), (old, new) = chain.cast.stakers[:2], chain.cast.pools[:2]
    chain.block(10, [chain.registration(old)], [chain.registration(new)])
    chain.block(20, [join(ann), delegate(ann, old)], [join(bob), delegate(bob, old)])
    fork = chain.fork(1)
    chain.block(30, [delegate(ann, new)])
    fork.block(31, [delegate(bob, new)])
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await db.execute(TIPS)
        arrivals.blocks = 1
        node.switch(fork)
        await reaches(db, node, task)
    delegated = await db.fetchval("SELECT array_agg(pool_no ORDER BY stake_no) FROM delegation")
    assert len(set(delegated)) == 2, "ann is back in the old pool, and bob is in the new one"
    assert await db.fetchval("SELECT pools FROM public.tips") == delegated


def given(generated: Generated, blocks: list[Block]) -> reordered.Given:
    """A chain of these blocks, with the forks of the generated one."""
    return reordered.Given(generated.network, generated.genesis, blocks, forks=generated.forks)


async def straight_dump(db: asyncpg.Connection, database_url: str, chain: Chain) -> Dump:
    """A dump of a new index of a chain, instead of the one in the database."""
    await beginning.erase(db)
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await rewards_are_read(db)
        return await dump(db, PREVIEW.schema)
