"""`/blocks`: a block, those around it, and its transactions."""

from typing import Annotated

import msgspec

from api.ask import ChainAsk
from api.blockfrost.paging import Page, UnorderedPage
from api.chain import blocks
from api.chain.blocks import BlockKind, BlockQuestion, BlockRow, BlockTransactionsQuestion
from shared.network import Network
from shared.sql import Connection


class BlockTransactions(Page, frozen=True, kw_only=True):
    """A page of a block's transactions."""

    block: Annotated[bytes | int | None, BlockKind()]


class Neighbours(UnorderedPage, frozen=True, kw_only=True):
    """A page of the blocks before or after a block."""

    block: Annotated[bytes | int | None, BlockKind()]


class Block(msgspec.Struct, frozen=True):
    """A block. `time` is in seconds since 1970. Output and fees of a block without transactions are null.

    `slot_leader` is the pool, null in Byron. Size, VRF key and operational certificate are null: they are not kept.
    """

    time: int
    height: int
    hash: str
    slot: int
    epoch: int
    epoch_slot: int
    slot_leader: str | None
    size: None
    tx_count: int
    output: str | None
    fees: str | None
    block_vrf: None
    op_cert: None
    op_cert_counter: None
    previous_block: str | None
    next_block: str | None
    confirmations: int


async def info(ask: ChainAsk[BlockQuestion]) -> Block:
    """Get a block by hash or number, or the latest one."""
    async with ask.snapshot() as db:
        return await _shown(db, await blocks.read(db, ask.question.block), ask.network)


async def following(ask: ChainAsk[Neighbours]) -> list[Block]:
    """List the blocks after a block, nearest first."""
    asked = ask.question
    async with ask.snapshot() as db:
        row = await blocks.read(db, asked.block)
        first = row.block_no + 1 + asked.offset
        return await _run(db, range(first, min(first + asked.count, row.tip_block_no + 1)), ask.network)


async def preceding(ask: ChainAsk[Neighbours]) -> list[Block]:
    """List the blocks before a block, oldest first. Page 1 ends with the block directly before it."""
    asked = ask.question
    async with ask.snapshot() as db:
        row = await blocks.read(db, asked.block)
        beyond = row.block_no - asked.offset
        lowest = max(beyond - asked.count, row.first_block_no)
        return await _run(db, range(lowest, beyond), ask.network)


async def transactions(ask: ChainAsk[BlockTransactions]) -> list[str]:
    """List the transactions of a block."""
    asked = ask.question
    question = BlockTransactionsQuestion(block=asked.block, limit=asked.count, offset=asked.offset, order=asked.order)
    return [transaction.tx_hash for transaction in (await blocks.list_block_transactions(ask.about(question))).data]


async def _run(db: Connection, numbers: range, network: Network) -> list[Block]:
    """At most a page of neighbouring blocks, each looked up separately.

    The first number may be that of an epoch boundary block, which is not kept.
    """
    rows = [await blocks.look_up(db, number) for number in numbers]
    return [await _shown(db, row, network) for row in rows if row.block_hash is not None]


async def _shown(db: Connection, row: BlockRow, network: Network) -> Block:
    block = await blocks.show(db, row, network)
    return Block(
        time=int(block.block_time.timestamp()),
        height=block.block_no,
        hash=block.block_hash,
        slot=block.slot_no,
        epoch=block.epoch_no,
        epoch_slot=block.epoch_slot,
        slot_leader=block.pool_id,
        size=None,
        tx_count=block.tx_count,
        output=block.output if block.tx_count else None,
        fees=block.fees if block.tx_count else None,
        block_vrf=None,
        op_cert=None,
        op_cert_counter=None,
        previous_block=block.previous_block,
        next_block=block.next_block,
        confirmations=row.tip_block_no - block.block_no,
    )
