"""What another process reads ahead is what this one would have read, and no end of either leaves the other behind."""

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

import msgspec
import pytest

from devnet.generator import Generated, Options
from devnet.server import Server
from indexer import frames, ogmios, reading
from indexer.ogmios import Backward
from indexer.parcels import Parcel
from shared.ledger import Point
from shared.network import PREVIEW

BLOCKS = 120


@pytest.fixture
async def node() -> AsyncIterator[Server]:
    async with Server(Generated(Options(seed=5, blocks_per_epoch=30, density=3), BLOCKS)) as server:
        yield server


def apart(node: Server, point: Point | None = None) -> AsyncGenerator[reading.Step, None]:
    return reading.apart(partial(ogmios.connect, node.url), PREVIEW, point)


async def take(steps: AsyncGenerator[reading.Step, None], count: int) -> list[reading.Step]:
    async with asyncio.timeout(30):
        return [await anext(steps) for _ in range(count)]


def comparable(step: reading.Step) -> object:
    """A step without the order of names, which means nothing. Only Names and the bytes depend on it."""
    if isinstance(step, Backward):
        return step
    names = step.names
    told = [names.addresses, names.assets]
    rest = [sorted(each) for each in (names.made, names.spent, names.accounts, names.pools)]
    return msgspec.structs.replace(step, names=None), told, rest


async def test_both_ways_of_reading_give_the_same(node: Server) -> None:
    connection = await ogmios.connect(node.url)
    await connection.intersect([])
    async with aclosing(reading.here(connection, PREVIEW)) as steps:
        expected = await take(steps, 1 + BLOCKS)
    await connection.close()
    async with aclosing(apart(node)) as steps:
        found = await take(steps, 1 + BLOCKS)
    assert isinstance(found[0], Backward) and sum(isinstance(step, Parcel) for step in found) == BLOCKS
    assert [comparable(step) for step in found] == [comparable(step) for step in expected]
    assert any(parcel.unpack() for parcel in found if isinstance(parcel, Parcel))


async def test_it_goes_on_behind_a_block_and_follows_forks_and_growth(node: Server) -> None:
    async with aclosing(apart(node)) as steps:
        found = await take(steps, 1 + BLOCKS)
    fifth, tip = found[5], found[-1]
    assert isinstance(fifth, Parcel) and isinstance(tip, Parcel)
    async with aclosing(apart(node, fifth.point)) as steps:
        back, *parcels = await take(steps, 1 + BLOCKS - 5)
        assert isinstance(back, Backward) and back.point == fifth.point
        assert [step.point for step in parcels if isinstance(step, Parcel)] == [
            step.point for step in found[6:] if isinstance(step, Parcel)
        ]
        node.switch(Generated(Options(seed=5, blocks_per_epoch=30, density=3), BLOCKS - 10))
        (back,) = await take(steps, 1)
        assert isinstance(back, Backward)
        node.grow(2)
        assert all(isinstance(step, Parcel) for step in await take(steps, 2))


async def test_a_block_that_the_node_has_left_ends_it(node: Server) -> None:
    async with aclosing(apart(node, Point(7, bytes(32)))) as steps:
        with pytest.raises(ConnectionError, match=f"the node has left slot 7 block {bytes(32).hex()}"):
            await take(steps, 1)


async def test_a_node_that_is_not_there_ends_it() -> None:
    steps = reading.apart(partial(ogmios.connect, "ws://127.0.0.1:9"), PREVIEW, None)
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1"):
        await take(steps, 1)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b'{"jsonrpc":"2.0","result":{"direction":"sideways"}}', frames.Unreadable, "sideways"),
        (b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"no more"}}', ogmios.Refused, "no more"),
    ],
)
async def test_what_can_not_be_read_is_named_as_in_one_process(
    node: Server, answer: bytes, error: type[Exception], message: str
) -> None:
    async with aclosing(apart(node)) as steps:
        await take(steps, 1 + BLOCKS)
        node.inject(answer)
        node.grow(1)
        with pytest.raises(error, match=message):
            await take(steps, 3)


async def test_a_fault_of_ours_is_no_passing_trouble() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await take(reading.apart(_faulty, PREVIEW, None), 1)


async def _faulty() -> ogmios.Ogmios:
    raise ZeroDivisionError


async def test_its_end_is_noticed_and_it_is_gone_after_ours(node: Server) -> None:
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
