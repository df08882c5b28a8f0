"""Blocks: one block, and its transactions."""

import re
from typing import Annotated

import msgspec

from api import errors
from api.answers import ChainAnswer, ChainPage, Digits, Instant, Paging, Quantity
from api.ask import ChainAsk
from api.chain.epochs import LATEST
from api.chain.pools import show_pool_id
from api.chain.tip import Tip
from api.parameters import JsonSchema, Kind, Limit, Offset, Order, Question
from api.repeats import kept
from shared import packed, sql
from shared.ledger import Point, tx_id_of
from shared.network import Network
from shared.sql import Connection

_HASH = re.compile(r"[0-9a-fA-F]{64}")
_NUMBER = re.compile(r"[0-9]{1,9}")


class BlockKind(Kind[bytes | int | None]):
    """A block: its hash, its number, or None for `latest`."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^({_HASH.pattern}|{_NUMBER.pattern}|{LATEST})$"}
        super().__init__(f"a block hash of 64 hex digits, a block number or `{LATEST}`", schema)

    def of_text(self, text: str) -> bytes | int | None:
        if text == LATEST:
            return None
        if _HASH.fullmatch(text):
            return bytes.fromhex(text)
        if _NUMBER.fullmatch(text):
            return int(text)
        raise ValueError(text)


class BlockQuestion(Question, frozen=True, kw_only=True):
    """A block."""

    block: Annotated[bytes | int | None, BlockKind()]


class BlockTransactionsQuestion(BlockQuestion, frozen=True, kw_only=True):
    """A page of a block's transactions."""

    limit: Limit = 100
    offset: Offset = 0
    order: Order = "asc"


class Block(msgspec.Struct, frozen=True):
    """A block.

    `pool_id` is the pool that made it, or the genesis delegate in the first epochs of Shelley; null in Byron. `fees`
    and `output` are sums over its transactions; `fees` is null if one of them is unknown. `previous_block` is null for
    the first indexed block, `next_block` for the last one. `size` is in bytes: that of the body, in Byron that of the
    whole block.
    """

    block_hash: str
    block_no: int
    slot_no: int
    epoch_no: int
    epoch_slot: int
    block_time: Instant
    pool_id: str | None
    size: int
    tx_count: int
    fees: Digits | None
    output: Digits
    previous_block: str | None
    next_block: str | None


class BlockTransaction(msgspec.Struct, frozen=True):
    """A transaction of a block; `tx_index` is its position there.

    `fee` is null if it depends on an input that precedes the first indexed block, `size` if the node sends no CBOR.
    """

    tx_hash: str
    tx_index: int
    fee: Quantity | None
    size: int | None


class BlockPlace(msgspec.Struct, frozen=True):
    """A block and the one before it, and the tip of the same snapshot."""

    tip_slot_no: int
    tip_hash: bytes
    tip_block_no: int
    slot_no: int
    block_no: int
    block_hash: bytes | None  # null, like everything but the tip, for an unknown block
    tx_count: int
    previous_slot_no: int | None  # null for the first indexed block
    previous_hash: bytes | None

    @property
    def point(self) -> Point:
        """The block, which is known."""
        assert self.block_hash is not None, "an unknown block has been refused"
        return Point(self.slot_no, self.block_hash)

    @property
    def before(self) -> Point | None:
        """The block before it; None for the first indexed one."""
        if self.previous_slot_no is None or self.previous_hash is None:
            return None
        return Point(self.previous_slot_no, self.previous_hash)


class BlockRow(BlockPlace, frozen=True):
    """A block with both neighbours, and the tip of the same snapshot."""

    first_block_no: int
    size: int
    pool_id: bytes  # in Byron the hash of the issuer's genesis key
    registered: bool  # whether that is a registered pool, as far as indexed
    next_hash: bytes | None


class _PaidRow(msgspec.Struct, frozen=True):
    tip_hash: bytes
    fee: int | None
    outputs: bytes


class _TransactionRow(msgspec.Struct, frozen=True):
    hash: bytes
    fee: int | None
    size: int | None


_sql = sql.beside(__file__)
_by_hash = _sql.query("block", BlockRow, condition="block.hash = $1")
_by_slot = _sql.query("block", BlockRow, condition="block.slot_no = $1")
_by_number = _sql.query("block", BlockRow, condition="block.block_no = coalesce($1, tip.block_no)")
_paid = _sql.query("paid", _PaidRow)
_transactions = _sql.query("transactions", _TransactionRow)


async def get_block(ask: ChainAsk[BlockQuestion]) -> ChainAnswer[Block]:
    """Get a block by hash or number, or the latest one."""
    async with ask.snapshot() as db:
        row = await read(db, ask.question.block)
        _settle(ask, row)
        block = await show(db, row, ask.network)
    return ChainAnswer(data=block, last_updated=Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network))


async def list_block_transactions(ask: ChainAsk[BlockTransactionsQuestion]) -> ChainPage[BlockTransaction, Paging]:
    """List the transactions of a block."""
    asked = ask.question
    async with ask.snapshot() as db:
        row = await read(db, ask.question.block)
        _settle(ask, row)
        places = range(row.tx_count)[:: 1 if asked.order == "asc" else -1][asked.offset : asked.offset + asked.limit]
        lowest, highest = (min(places), max(places)) if places else (1, 0)
        page = await _transactions.all(db, tx_id_of(row.slot_no, lowest), tx_id_of(row.slot_no, highest))
    by_index = {lowest + at: tx for at, tx in enumerate(page)}
    return ChainPage(
        data=[BlockTransaction(by_index[at].hash.hex(), at, by_index[at].fee, by_index[at].size) for at in places],
        pagination=Paging(asked.limit, asked.offset, row.tx_count, asked.offset + len(places) < row.tx_count),
        last_updated=Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network),
    )


async def read(db: Connection, block: bytes | int | None) -> BlockRow:
    """A block by its hash or number, or the latest one, in a snapshot. Raises Refusal 404 and 503."""
    return _known(await look_up(db, block))


async def in_slot(db: Connection, slot_no: int) -> BlockRow:
    """The block in a slot, in a snapshot. Raises Refusal 404 and 503."""
    return _known(await _read(db, _by_slot, slot_no))


async def look_up(db: Connection, block: bytes | int | None) -> BlockRow:
    """Like `read`, but for an unknown block the row has only the tip. Raises Refusal 503."""
    return await _read(db, _by_hash if isinstance(block, bytes) else _by_number, block)


def _known(row: BlockRow) -> BlockRow:
    if row.block_hash is None:
        raise errors.block_not_found()
    return row


async def _read(db: Connection, query: sql.Query[BlockRow], name: bytes | int | None) -> BlockRow:
    row = await query.one(db, name)
    if row is None:
        raise errors.network_not_available()
    return row


async def show(db: Connection, row: BlockRow, network: Network) -> Block:
    """A block as answers show it, in the snapshot of its row."""
    assert row.block_hash is not None, "an unknown block has been refused"
    paid = []
    if row.tx_count:
        paid = await _paid.all(db, tx_id_of(row.slot_no, 0), tx_id_of(row.slot_no + 1, 0))
        kept.require_same(db, bool(paid) and paid[0].tip_hash == row.tip_hash)
    fees = [tx.fee for tx in paid if tx.fee is not None]
    epoch_no = network.epoch_of(row.slot_no)
    return Block(
        block_hash=row.block_hash.hex(),
        block_no=row.block_no,
        slot_no=row.slot_no,
        epoch_no=epoch_no,
        epoch_slot=row.slot_no - network.epoch_start(epoch_no),
        block_time=network.slot_time(row.slot_no),
        pool_id=None if row.slot_no < network.byron_slots else show_pool_id(row.pool_id),
        size=row.size,
        tx_count=row.tx_count,
        fees=str(sum(fees)) if len(fees) == len(paid) else None,
        output=str(sum(packed.lovelace_in(tx.outputs) for tx in paid)),
        previous_block=None if row.previous_hash is None else row.previous_hash.hex(),
        next_block=None if row.next_hash is None else row.next_hash.hex(),
    )


def _settle(ask: ChainAsk[BlockQuestion] | ChainAsk[BlockTransactionsQuestion], row: BlockRow) -> None:
    """Let callers keep the answer if no rollback can reach the block."""
    if row.block_hash is not None:
        ask.notes.settle(row.block_hash, row.block_no, row.tip_block_no)
