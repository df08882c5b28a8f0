"""The second process reads the same blocks as the first would, and each process ends with the other."""

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

import msgspec
import pytest

from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.blocks.packed_block import PackedBlock
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.ogmios.connection import RollBackward
from indexer.sync import block_source
from shared.ledger import Point
from shared.network import PREVIEW
from tests.patience import PATIENCE_S

BLOCKS = 120


@pytest.fixture
async def node() -> AsyncIterator[NodeServer]:
    async with NodeServer(Generated(Options(seed=5, blocks_per_epoch=30, density=3), BLOCKS)) as server:
        yield server


def apart(node: NodeServer, point: Point | None = None) -> AsyncGenerator[block_source.NodeMessage, None]:
    return block_source.read_in_child(partial(ogmios.connect, node.url), PREVIEW, point)


async def take(steps: AsyncGenerator[block_source.NodeMessage, None], count: int) -> list[block_source.NodeMessage]:
    async with asyncio.timeout(PATIENCE_S):
        return [await anext(steps) for _ in range(count)]


def comparable(step: block_source.NodeMessage) -> object:
    """A step without the order of its look-ups, which is arbitrary. Only Lookups and the bytes depend on it."""
    if isinstance(step, RollBackward):
        return step
    lookups = step.lookups
    told = [lookups.addresses, lookups.assets]
    unordered = (lookups.tx_hashes, lookups.spent, lookups.reward_accounts, lookups.pool_ids)
    return msgspec.structs.replace(step, lookups=None), told, [sorted(each) for each in unordered]


async def test_both_ways_of_reading_give_the_same_steps(node: NodeServer) -> None:
    connection = await ogmios.connect(node.url)
    await connection.intersect([])
    async with aclosing(block_source.read_in_process(connection, PREVIEW)) as steps:
        expected = await take(steps, 1 + BLOCKS)
    await connection.close()
    async with aclosing(apart(node)) as steps:
        found = await take(steps, 1 + BLOCKS)
    assert isinstance(found[0], RollBackward) and sum(isinstance(step, PackedBlock) for step in found) == BLOCKS
    assert [comparable(step) for step in found] == [comparable(step) for step in expected]
    assert any(block.unpack() for block in found if isinstance(block, PackedBlock))


async def test_the_second_process_continues_after_a_block_and_follows_forks(node: NodeServer) -> None:
    async with aclosing(apart(node)) as steps:
        found = await take(steps, 1 + BLOCKS)
    fifth, tip = found[5], found[-1]
    assert isinstance(fifth, PackedBlock) and isinstance(tip, PackedBlock)
    async with aclosing(apart(node, fifth.point)) as steps:
        back, *blocks = await take(steps, 1 + BLOCKS - 5)
        assert isinstance(back, RollBackward) and back.point == fifth.point
        assert [step.point for step in blocks if isinstance(step, PackedBlock)] == [
            step.point for step in found[6:] if isinstance(step, PackedBlock)
        ]
        node.switch(Generated(Options(seed=5, blocks_per_epoch=30, density=3), BLOCKS - 10))
        (back,) = await take(steps, 1)
        assert isinstance(back, RollBackward)
        node.grow(2)
        assert all(isinstance(step, PackedBlock) for step in await take(steps, 2))


async def test_a_start_at_a_block_that_the_node_has_left_ends_the_reading(node: NodeServer) -> None:
    async with aclosing(apart(node, Point(7, bytes(32)))) as steps:
        with pytest.raises(ConnectionError, match=f"slot 7 block {bytes(32).hex()} is no longer on the node's chain"):
            await take(steps, 1)


async def test_an_unreachable_node_ends_the_reading() -> None:
    steps = block_source.read_in_child(partial(ogmios.connect, "ws://127.0.0.1:9"), PREVIEW, None)
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1"):
        await take(steps, 1)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b'{"jsonrpc":"2.0","result":{"direction":"sideways"}}', frames.Unreadable, "sideways"),
        (b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"no more"}}', ogmios.Refused, "no more"),
    ],
)
async def test_an_unreadable_block_is_named_as_in_one_process(
    node: NodeServer, answer: bytes, error: type[Exception], message: str
) -> None:
    async with aclosing(apart(node)) as steps:
        await take(steps, 1 + BLOCKS)
        node.inject(answer)
        node.grow(1)
        with pytest.raises(error, match=message):
            await take(steps, 3)


async def test_a_bug_in_the_second_process_is_not_retried() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await take(block_source.read_in_child(_faulty, PREVIEW, None), 1)


async def _faulty() -> ogmios.Ogmios:
    raise ZeroDivisionError


async def test_a_failed_assertion_reaches_the_parent_as_one_and_names_its_place() -> None:
    """After an AssertionError the follower stops; it retries after any other unknown error."""
    with pytest.raises(AssertionError, match=r"(?s)_asserting.*an amount below zero"):
        await take(block_source.read_in_child(_asserting, PREVIEW, None), 1)


async def _asserting() -> ogmios.Ogmios:
    raise AssertionError("an amount below zero")


async def test_the_end_of_the_reading_process_is_noticed_and_it_ends_with_its_parent(node: NodeServer) -> None:
    async with aclosing(apart(node)) as steps:
        await take(steps, 1 + BLOCKS)
        (process,) = multiprocessing.active_children()
        process.kill()
        with pytest.raises(ConnectionError, match="the process that reads ahead ended"):
            await take(steps, 1)
    async with aclosing(apart(node)) as steps:
        await take(steps, 1 + BLOCKS)
        (process,) = multiprocessing.active_children()
        assert process.is_alive()
    assert not multiprocessing.active_children()
