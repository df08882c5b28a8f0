"""`indexer record`: a file of consecutive blocks, or no file."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.ogmios import connection as ogmios
from indexer.ogmios.record import NotRecorded, record
from shared.ledger import Point
from tests.patience import PATIENCE_S


@pytest.fixture
async def node() -> AsyncIterator[NodeServer]:
    async with NodeServer(Generated(Options(seed=5), 30)) as server:
        yield server


async def recorded(node: NodeServer, out: Path, blocks: int, start: Point | None = None) -> None:
    client = await ogmios.connect(node.url)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await record(client, start, 0 if start is None else start.slot_no + 1, blocks, out, lambda _: None)
    finally:
        await client.close()


async def begun(node: NodeServer, out: Path) -> asyncio.Task[None]:
    """A recording that waits at the node's tip for one more block."""
    task = asyncio.create_task(recorded(node, out, len(node.blocks) + 1))
    async with asyncio.timeout(PATIENCE_S):
        while node.requests["nextBlock"] < len(node.blocks):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert not task.done()
    return task


async def test_blocks_after_an_indexed_one_are_recorded(node: NodeServer, tmp_path: Path) -> None:
    out, before = tmp_path / "blocks.jsonl", node.blocks[9]
    await recorded(node, out, 20, Point(before.slot, bytes.fromhex(before.id)))
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [each.id for each in node.blocks[10:]]
    assert list(tmp_path.iterdir()) == [out]


async def test_a_rollback_ends_a_recording_with_blocks(node: NodeServer, tmp_path: Path) -> None:
    task = await begun(node, tmp_path / "blocks.jsonl.xz")
    chain = node.chain
    assert isinstance(chain, Generated)
    node.switch(chain.fork(25, 1, 8))
    with pytest.raises(NotRecorded, match="rolled back after 30 of 31 blocks"):
        await task
    assert list(tmp_path.iterdir()) == []


async def test_an_error_of_the_node_ends_a_recording(node: NodeServer, tmp_path: Path) -> None:
    node.inject(b'{"jsonrpc":"2.0","method":"nextBlock","error":{"code":-32000,"message":"no more"},"id":null}')
    with pytest.raises(ogmios.Refused, match="no more"):
        await recorded(node, tmp_path / "blocks.jsonl", 5)
    assert list(tmp_path.iterdir()) == []


async def test_a_cancelled_recording_leaves_no_file(node: NodeServer, tmp_path: Path) -> None:
    task = await begun(node, tmp_path / "blocks.jsonl")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(tmp_path.iterdir()) == []


async def test_a_start_on_a_fork_is_not_replaced_by_the_origin(node: NodeServer, tmp_path: Path) -> None:
    with pytest.raises(NotRecorded, match="the node does not have slot 7 "):
        await recorded(node, tmp_path / "blocks.jsonl", 5, Point(7, bytes(32)))
    assert list(tmp_path.iterdir()) == []
