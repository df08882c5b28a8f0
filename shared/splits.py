"""The nodes of a network compared with each other, and the splits of its chain: docs/decisions/0080.

The leading indexer compares them, and reports the nodes in its heartbeats. A split is a row for as long as it lasts.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from shared import notices, schema, sql
from shared.network import Network

NodeWord = Literal["followed", "in_step", "behind", "ahead", "diverged", "unreachable", "wrong_network"]


class ChainBlock(msgspec.Struct, frozen=True):
    """A block of a chain."""

    slot_no: int
    block_no: int
    block_hash: str


class WatchedNode(msgspec.Struct, frozen=True):
    """A node by its place in OGMIOS_URL_…, from 1, and how its chain stands to the index.

    `followed` by the indexer; `in_step`, with both tips close to their last common block; `behind` or `ahead`;
    `diverged`, with both tips further from that block than SPLIT_BLOCKS; `unreachable`; `wrong_network`. `tip` is its
    last block, and `common` the last one that the index has, too; null if unknown or if there is none.
    """

    number: int
    state: NodeWord
    tip: ChainBlock | None = None
    common: ChainBlock | None = None


class ChainSplit(msgspec.Struct, frozen=True):
    """The chain of a node has differed from the index after the block `common` (null: from the start) since
    `noticed_at`. `our_tip` and `node_tip` are the last blocks on both sides when both were last compared.
    """

    node: int
    noticed_at: Annotated[datetime, msgspec.Meta(tz=True)]
    common: ChainBlock | None
    our_tip: ChainBlock
    node_tip: ChainBlock


class SplitNotice(ChainSplit, frozen=True):
    """A split has `begun` or `ended`, as events tell of it: docs/decisions/0079."""

    state: Literal["begun", "ended"]


def judge(ours: ChainBlock, theirs: ChainBlock | None, common: ChainBlock | None, split_blocks: int) -> NodeWord:
    """How a node's chain with the tip `theirs` (None: the origin) stands to ours. `common` is their last common block.

    A chain is long if it has more than `split_blocks` blocks after that one. With two long ones there is a split.
    """
    last = -1 if common is None else common.block_no
    we_are_long = ours.block_no - last > split_blocks
    they_are_long = theirs is not None and theirs.block_no - last > split_blocks
    if we_are_long and they_are_long:
        return "diverged"
    return "behind" if we_are_long else "ahead" if they_are_long else "in_step"


async def note(
    db: sql.Connection,
    network: Network,
    node: int,
    common: ChainBlock | None,
    our_tip: ChainBlock,
    node_tip: ChainBlock,
) -> None:
    """Note that the chain of a node differs, with a notice if it is new. Raises WrongSchema."""
    blocks = *_columns(common), *_columns(our_tip), *_columns(node_tip)
    async with schema.commit(db):
        if await _go_on.run(db, network.network_id, node, *blocks) == "UPDATE 0":
            await _tell(db, network, await _begin.only(db, network.network_id, node, *blocks), "begun")


async def end(db: sql.Connection, network: Network, node: int) -> None:
    """Note that the chain of a node does not differ any more, with a notice. Raises WrongSchema."""
    async with schema.commit(db):
        ended = await _end.one(db, network.network_id, node)
        if ended is not None:
            await _tell(db, network, ended, "ended")


async def end_all(db: sql.Connection, network: Network) -> None:
    """End all splits of a network. Raises WrongSchema."""
    for node in await open_nodes(db, network):
        await end(db, network, node)


async def open_nodes(db: sql.Connection, network: Network) -> list[int]:
    """The nodes whose chains differ."""
    return await _open_nodes.all(db, network.network_id)


class _Row(msgspec.Struct, frozen=True):
    node: int
    noticed_at: datetime
    slot_no: int | None
    block_no: int | None
    block_hash: bytes | None
    our_slot_no: int
    our_block_no: int
    our_block_hash: bytes
    node_slot_no: int
    node_block_no: int
    node_block_hash: bytes


async def _tell(db: sql.Connection, network: Network, row: _Row, state: Literal["begun", "ended"]) -> None:
    """Add the notice of a split, in the commit that notes its beginning or its end."""
    common = None
    if row.slot_no is not None and row.block_no is not None and row.block_hash is not None:
        common = ChainBlock(row.slot_no, row.block_no, row.block_hash.hex())
    notice = SplitNotice(
        node=row.node,
        noticed_at=row.noticed_at,
        common=common,
        our_tip=ChainBlock(row.our_slot_no, row.our_block_no, row.our_block_hash.hex()),
        node_tip=ChainBlock(row.node_slot_no, row.node_block_no, row.node_block_hash.hex()),
        state=state,
    )
    await notices.add(db, network, "chain_split", msgspec.json.encode(notice).decode())


def _columns(block: ChainBlock | None) -> tuple[int | None, int | None, bytes | None]:
    if block is None:
        return None, None, None
    return block.slot_no, block.block_no, bytes.fromhex(block.block_hash)


encode_nodes = msgspec.json.Encoder().encode
decode_nodes = msgspec.json.Decoder(list[WatchedNode]).decode
decode_splits = msgspec.json.Decoder(list[ChainSplit]).decode

_sql = sql.beside(__file__)
_go_on = _sql.command("go_on")
_begin = _sql.query("begin", _Row)
_end = _sql.query("end", _Row)
_open_nodes = _sql.values("open_nodes", int)
