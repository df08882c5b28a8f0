"""Bytes of transactions, read through from the node: the index knows the block, the node has its bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec

from api import errors
from api.answers import ChainAnswer, ChainPage, Paging
from api.ask import ChainAsk
from api.chain import blocks
from api.chain.blocks import BlockPlace, BlockTransactionsQuestion
from api.chain.tip import Tip
from api.node_bytes.blocks import Header, NoCbor, NotThere, Transactions, WrongBytes
from api.node_bytes.lanes import not_read
from api.parameters import Hex, Question
from api.sources.nodes import NodeAway
from shared import sql
from shared.sql import Connection

_READINGS, _BETWEEN_S = 4, 0.25
"""How often the index and the node are asked while they differ. The index follows a fork within milliseconds."""

_CHECKED_AT_ONCE = 5
FIRST_BLOCK_NO = 1
"""The highest number of the first block of a network. In mainnet an epoch boundary block, number 0, precedes it."""

# The refusals of what is read from the node, and of its bytes, for `errors` in both tables of routes.
NODE_REFUSALS = (partial(errors.no_node_to_read, "preview"), partial(errors.node_not_read, "it does not answer"))
REFUSALS = (*NODE_REFUSALS, errors.cbor_not_sent)


class BytesQuestion(Question, frozen=True, kw_only=True):
    """A transaction by its hash."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash)]


class TransactionBytes(msgspec.Struct, frozen=True):
    """A transaction as its block has it: `cbor` in hex. Its hash is that of the first element, the body."""

    tx_hash: str
    cbor: str


PlaceT = TypeVar("PlaceT", bound=BlockPlace)
AskT = TypeVar("AskT", bound=Question)

_sql = sql.beside(__file__)
_place = _sql.query("place", BlockPlace)


async def get_transaction_cbor(ask: ChainAsk[BytesQuestion]) -> ChainAnswer[TransactionBytes]:
    """Get the CBOR of a transaction.

    The bytes are read from the node and are those of its block, witnesses included.
    """
    place, found = await read_transaction(ask, ask.question.hash)
    ask.notes.settle(place.point.block_hash, place.block_no, place.tip_block_no)
    return ChainAnswer(
        data=TransactionBytes(ask.question.hash.hex(), found.hex()),
        last_updated=Tip(place.tip_slot_no, place.tip_hash).last_updated(ask.network),
    )


async def list_block_transaction_cbor(
    ask: ChainAsk[BlockTransactionsQuestion],
) -> ChainPage[TransactionBytes, Paging]:
    """List the transactions of a block with their CBOR.

    The bytes are read from the node and are those of the block, witnesses included.
    """
    asked = ask.question

    async def look_up(db: Connection) -> blocks.BlockRow:
        return await blocks.read(db, asked.block)

    row, found = await _read(ask, look_up)
    ask.notes.settle(row.point.block_hash, row.block_no, row.tip_block_no)
    wanted = found.hashes[:: 1 if asked.order == "asc" else -1][asked.offset : asked.offset + asked.limit]
    return ChainPage(
        data=[TransactionBytes(tx_hash.hex(), cbor.hex()) for tx_hash, cbor in await _checked(found, wanted)],
        pagination=Paging(asked.limit, asked.offset, row.tx_count, asked.offset + len(wanted) < row.tx_count),
        last_updated=Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network),
    )


async def read_transaction(ask: ChainAsk[AskT], tx_hash: bytes) -> tuple[BlockPlace, bytes]:
    """The CBOR of a transaction in a block, and that block. Raises Refusal."""

    async def look_up(db: Connection) -> BlockPlace:
        place = await _place.one(db, tx_hash)
        if place is None:
            raise errors.network_not_available()
        if place.block_hash is None:
            raise errors.transaction_not_found()
        return place

    place, found = await _read(ask, look_up)
    ((_, cbor),) = await _checked(found, [tx_hash])
    return place, cbor


async def read_headers(ask: ChainAsk[Any], run: Sequence[BlockPlace]) -> Mapping[bytes, Header]:
    """The headers of blocks that follow each other, by hash. Those that the node does not give now are omitted."""
    reader = ask.services.node_readers.blocks_if_any(ask.network)
    if run and run[0].before is None and run[0].block_no > FIRST_BLOCK_NO:
        run = run[1:]  # nothing is known after which the first could be read
    if reader is None or not run:
        return {}
    found = await reader.headers(ask.key.credential_id, [place.point for place in run], run[0].before)
    ask.notes.may_change = len(found) < len(run)
    return found


async def _read(ask: ChainAsk[AskT], look_up: Callable[[Connection], Awaitable[PlaceT]]) -> tuple[PlaceT, Transactions]:
    """The block that `look_up` finds in a snapshot, and the node's bytes of its transactions. Raises Refusal.

    No connection to the index is held while the node is asked.
    """
    for reading in range(_READINGS):
        if reading:
            await asyncio.sleep(_BETWEEN_S)
        async with ask.connection() as db:
            place = await look_up(db)
        if not place.tx_count:
            return place, Transactions(())
        if place.before is None and place.block_no > FIRST_BLOCK_NO:
            raise errors.node_not_read("the index lacks the block before it, after which the node is asked for it")
        reader = ask.services.node_readers.blocks(ask.network)
        try:
            return place, await reader.transactions(ask.key.credential_id, place.point, place.before)
        except NotThere:
            continue
        except NoCbor as cause:
            raise errors.cbor_not_sent() from cause
        except NodeAway as cause:
            raise not_read(cause) from cause
    raise errors.node_not_read("its chain does not have the block")


async def _checked(found: Transactions, wanted: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Transactions with their bytes, whose hashes are checked a few at a time. Raises Refusal."""
    checked = []
    for at, tx_hash in enumerate(wanted):
        if at and at % _CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)  # other requests go on
        try:
            checked.append((tx_hash, found.cbor(tx_hash)))
        except (NotThere, WrongBytes) as cause:
            raise errors.node_not_read("its bytes of the transaction are not those of the index") from cause
    return checked
