"""`/blocks`: a block, those around it, its transactions and its addresses."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost.paging import InPath, Page, UnorderedPage
from api.chain import block_bytes, blocks, names
from api.chain.block_bytes import TransactionBytes
from api.chain.blocks import BlockKind, BlockQuestion, BlockRow, BlockTransactionsQuestion
from api.node_bytes.blocks import Header
from api.parameters import Question
from api.repeats import kept
from shared import packed, sql
from shared.encoding import bech32_encode
from shared.ledger import AddressNo, tx_id_of
from shared.network import Network
from shared.sql import Connection

QuestionT = TypeVar("QuestionT", bound=Question)

_NUMBER = re.compile("-?[0-9]+")
_NO_NUMBER, _NO_HASH = "Missing, out of range or malformed block number.", "Missing or malformed block hash."


class _BlockKind(BlockKind):
    """A block, with errors in Blockfrost's words."""

    def of_text(self, text: str) -> bytes | int | None:
        try:
            return super().of_text(text)
        except ValueError as error:
            raise errors.invalid_parameter(_NO_NUMBER if _NUMBER.fullmatch(text) else _NO_HASH) from error


class BlockInfoQuestion(BlockQuestion, frozen=True, kw_only=True):
    """A block."""

    block: Annotated[bytes | int | None, _BlockKind()]


class SlotQuestion(Question, frozen=True, kw_only=True):
    """A slot."""

    slot_number: Annotated[int, InPath("slot_number")]


class EpochSlotQuestion(SlotQuestion, frozen=True, kw_only=True):
    """A slot of an epoch, counted from its start."""

    epoch_number: Annotated[int, InPath("epoch_number")]


class BlockTransactions(Page, frozen=True, kw_only=True):
    """A page of a block's transactions."""

    block: Annotated[bytes | int | None, _BlockKind()]


class BlockPage(UnorderedPage, frozen=True, kw_only=True):
    """A page of the blocks before or after a block, or of its addresses."""

    block: Annotated[bytes | int | None, _BlockKind()]


class Block(msgspec.Struct, frozen=True):
    """A block. `time` is in seconds since 1970. Output and fees of a block without transactions are null.

    `slot_leader` is the pool or, as far as the index tells, the genesis key or its delegate. VRF key and operational
    certificate are read from the node: they are null while it does not answer, and in Byron.
    """

    time: int
    height: int
    hash: str
    slot: int
    epoch: int
    epoch_slot: int
    slot_leader: str
    size: int
    tx_count: int
    output: str | None
    fees: str | None
    block_vrf: str | None
    op_cert: str | None
    op_cert_counter: str | None
    previous_block: str | None
    next_block: str | None
    confirmations: int


class AddressTransaction(msgspec.Struct, frozen=True):
    """A transaction of a block that spends from an address or pays to it."""

    tx_hash: str


class BlockAddress(msgspec.Struct, frozen=True):
    """An address, and the transactions of a block that spend from it or pay to it, in the block's order."""

    address: str
    transactions: list[AddressTransaction]


class _MovedRow(msgspec.Struct, frozen=True):
    numbering: UUID
    hash: bytes
    inputs: bytes
    outputs: bytes


_moved = sql.beside(__file__).query("moved", _MovedRow)


async def info(ask: ChainAsk[BlockInfoQuestion]) -> Block:
    """Get a block by hash or number, or the latest one."""
    async with ask.snapshot() as db:
        row = await blocks.read(db, ask.question.block)
        found = await blocks.show(db, row, ask.network)
    return await _with_header(ask, row, found)


async def in_slot(ask: ChainAsk[SlotQuestion]) -> Block:
    """Get the block in a slot."""
    return await _in_slot(ask, ask.question.slot_number)


async def in_slot_of_epoch(ask: ChainAsk[EpochSlotQuestion]) -> Block:
    """Get the block in a slot of an epoch."""
    epoch_no, network = ask.question.epoch_number, ask.network
    slot_no = network.epoch_start(epoch_no) + ask.question.slot_number
    if network.epoch_of(slot_no) != epoch_no:
        raise errors.block_not_found()
    return await _in_slot(ask, slot_no)


async def following(ask: ChainAsk[BlockPage]) -> list[Block]:
    """List the blocks after a block, nearest first."""
    asked = ask.question
    async with ask.snapshot() as db:
        row = await blocks.read(db, asked.block)
        first = row.block_no + 1 + asked.offset
        run = await _run(db, row, range(first, min(first + asked.count, row.tip_block_no + 1)), ask.network)
    return await _with_headers(ask, run)


async def preceding(ask: ChainAsk[BlockPage]) -> list[Block]:
    """List the blocks before a block, oldest first. Page 1 ends with the block directly before it."""
    asked = ask.question
    async with ask.snapshot() as db:
        row = await blocks.read(db, asked.block)
        beyond = row.block_no - asked.offset
        lowest = max(beyond - asked.count, row.first_block_no)
        run = await _run(db, row, range(lowest, beyond), ask.network)
    return await _with_headers(ask, run)


async def transactions(ask: ChainAsk[BlockTransactions]) -> list[str]:
    """List the transactions of a block."""
    asked = ask.question
    question = BlockTransactionsQuestion(block=asked.block, limit=asked.count, offset=asked.offset, order=asked.order)
    return [transaction.tx_hash for transaction in (await blocks.list_block_transactions(ask.about(question))).data]


async def transactions_cbor(ask: ChainAsk[BlockTransactions]) -> list[TransactionBytes]:
    """List the transactions of a block with their CBOR."""
    asked = ask.question
    question = BlockTransactionsQuestion(block=asked.block, limit=asked.count, offset=asked.offset, order=asked.order)
    return (await block_bytes.list_block_transaction_cbor(ask.about(question))).data


async def addresses(ask: ChainAsk[BlockPage]) -> list[BlockAddress]:
    """List the addresses of a block's transactions, sorted as text. Outputs from before the index are left out."""
    asked, moved = ask.question, defaultdict[AddressNo, list[AddressTransaction]](list)
    async with ask.snapshot() as db:
        block = await blocks.read(db, asked.block)
        rows = await _moved.all(db, tx_id_of(block.slot_no, 0), tx_id_of(block.slot_no + 1, 0))
        for row in rows:
            shown = AddressTransaction(row.hash.hex())
            sources = [spent.source for spent in packed.unpack_spent(row.inputs)]
            spent_from = [source.address_no for source in sources if source is not None]
            for address_no in dict.fromkeys(spent_from + packed.addresses_in(row.outputs)):
                moved[address_no].append(shown)
        shown_as = await names.addresses_of(db, rows[0].numbering, moved) if rows else {}
    page = sorted(shown_as, key=shown_as.__getitem__)[asked.offset : asked.offset + asked.count]
    return [BlockAddress(shown_as[address_no], moved[address_no]) for address_no in page]


async def _run(
    db: Connection, beside: BlockRow, numbers: range, network: Network
) -> list[tuple[BlockRow, blocks.Block]]:
    """At most a page of blocks near `beside`, which the only statement before has found, each looked up separately.

    The first number may be that of an epoch boundary block, which is not kept.
    """
    rows = [await blocks.look_up(db, number) for number in numbers]
    # NOTE: before any is shown, which compares each row only with its own transactions.
    kept.require_same(db, all(row.tip_hash == beside.tip_hash for row in rows))
    return [(row, await blocks.show(db, row, network)) for row in rows if row.block_hash is not None]


async def _in_slot(ask: ChainAsk[QuestionT], slot_no: int) -> Block:
    async with ask.snapshot() as db:
        row = await blocks.in_slot(db, slot_no)
        found = await blocks.show(db, row, ask.network)
    return await _with_header(ask, row, found)


async def _with_header(ask: ChainAsk[QuestionT], row: BlockRow, found: blocks.Block) -> Block:
    (shown,) = await _with_headers(ask, [(row, found)])
    return shown


async def _with_headers(ask: ChainAsk[QuestionT], run: Sequence[tuple[BlockRow, blocks.Block]]) -> list[Block]:
    """Neighbouring blocks as Blockfrost shows them. No connection is held while the node is asked."""
    headers = await block_bytes.read_headers(ask, [row for row, _ in run])
    return [_shown(row, block, headers.get(row.point.block_hash)) for row, block in run]


def _shown(row: BlockRow, block: blocks.Block, header: Header | None) -> Block:
    vrf_key, op_cert, counter = (
        (None,) * 3 if header is None else (header.vrf_key, header.op_cert, header.op_cert_counter)
    )
    return Block(
        time=int(block.block_time.timestamp()),
        height=block.block_no,
        hash=block.block_hash,
        slot=block.slot_no,
        epoch=block.epoch_no,
        epoch_slot=block.epoch_slot,
        slot_leader=_slot_leader(row, block),
        size=block.size,
        tx_count=block.tx_count,
        output=block.output if block.tx_count else None,
        fees=block.fees if block.tx_count else None,
        block_vrf=None if vrf_key is None else bech32_encode("vrf_vk", vrf_key),
        op_cert=None if op_cert is None else op_cert.hex(),
        op_cert_counter=None if counter is None else str(counter),
        previous_block=block.previous_block,
        next_block=block.next_block,
        confirmations=row.tip_block_no - block.block_no,
    )


def _slot_leader(row: BlockRow, block: blocks.Block) -> str:
    """The maker of a block, with the names of cardano-db-sync and blockfrost-backend-ryo for those that are no pools.

    In an index that begins later than the chain, a pool may have been registered before.
    """
    if block.pool_id is None:
        return f"ByronGenesis-{row.pool_id[:8].hex()}"
    if row.registered or row.first_block_no > block_bytes.FIRST_BLOCK_NO:
        return block.pool_id
    return f"ShelleyGenesis-{row.pool_id[:8].hex()}"
