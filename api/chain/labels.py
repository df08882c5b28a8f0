"""Transaction metadata by label: the labels, and the transactions with metadata under one."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from api import errors
from api.answers import ChainPage, Digits, Instant, Paging, PlacePaging
from api.ask import ChainAsk
from api.chain import tip
from api.chain.owners import paging
from api.chain.transactions import LabelMetadata, metadata_of
from api.http.bodies import MAX_AT_ONCE_BYTES, Limiting, in_parts
from api.parameters import Integer, JsonSchema, Kind, ListQuestion, Message, Offset, Order, Question
from shared import packed, sql
from shared.ledger import LabelNo, label_no_of, label_numbered
from shared.sql import Connection

MAX_SKIPPED = 100_000
"""The most labels that an offset skips, in some 20 ms: a single transaction may bring a thousand new ones."""

_MAX_LABEL = (1 << 64) - 1
_DIGITS = re.compile("[0-9]{1,20}")


class LabelKind(Kind[int]):
    """A label of metadata: a number without a sign in 64 bits, in digits."""

    def __init__(self, message: Message = None) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^{_DIGITS.pattern}$"}
        super().__init__(f"a number from 0 to {_MAX_LABEL}", schema, message)

    def of_text(self, text: str) -> int:
        if not _DIGITS.fullmatch(text) or int(text) > _MAX_LABEL:
            raise ValueError(text)
        return int(text)


class LabelList(ListQuestion, frozen=True, kw_only=True):
    """A page of the labels."""

    order: Order = "asc"
    cursor: Annotated[int | None, LabelKind()] = None


class LabelledList(Question, frozen=True, kw_only=True):
    """A page of the transactions with metadata under a label."""

    label: Annotated[int, LabelKind()]
    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    order: Order = "desc"


class MetadataLabel(msgspec.Struct, frozen=True):
    """A label, and how many transactions have metadata under it."""

    label: Digits
    transaction_count: int


class LabelledTransaction(msgspec.Struct, frozen=True):
    """A transaction and its metadata under the label."""

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: Instant
    metadata: LabelMetadata


class _LabelRow(tip.ListRow, frozen=True):
    label_no: LabelNo | None  # null, like the count, in the row of an empty page
    transactions: int


class LabelledRow(tip.ListRow, frozen=True):
    """A transaction with metadata, the number of all that have the label, and the tip."""

    total: int
    tx_hash: bytes | None  # null, like everything below, in the row of an empty page
    block_hash: bytes
    block_no: int
    slot_no: int
    extra: bytes


_sql = sql.beside(__file__)
labels_pages = {order: _sql.query("labels", _LabelRow, order=order, most=str(MAX_SKIPPED)) for order in ("asc", "desc")}
_labelled = _sql.query("labelled", LabelledRow)

ShownT = TypeVar("ShownT")


async def list_metadata_labels(ask: ChainAsk[LabelList]) -> ChainPage[MetadataLabel, PlacePaging]:
    """List the labels of transaction metadata.

    At most 100,000 labels are skipped by `offset`. `cursor` continues after any label, at the same cost.
    """
    asked = ask.question
    lowest, highest = 0, _MAX_LABEL
    if asked.cursor is not None:
        lowest, highest = (asked.cursor + 1, highest) if asked.order == "asc" else (lowest, asked.cursor - 1)
    async with ask.connection() as db:
        if lowest > highest:
            rows = []
            last = await tip.read(db)
        else:
            nos = label_no_of(lowest), label_no_of(highest)
            rows = await labels_pages[asked.order].all(db, asked.limit, asked.offset, *nos)
            last = tip.of_rows(rows)
    data = [
        MetadataLabel(str(label_numbered(row.label_no)), row.transactions)
        for row in rows[: asked.limit]
        if row.label_no is not None
    ]
    if data and asked.offset > MAX_SKIPPED:
        raise errors.invalid_parameter(f"More than {MAX_SKIPPED} labels precede this page")
    return ChainPage(
        data=data,
        pagination=paging(asked, rows, lambda: data[-1].label),
        last_updated=last.last_updated(ask.network),
    )


async def list_labelled_transactions(ask: ChainAsk[LabelledList]) -> ChainPage[LabelledTransaction, Paging]:
    """List the transactions with metadata under a label.

    Transactions whose scripts failed are left out. A label without transactions has an empty list.
    """
    asked = ask.question

    def show(row: LabelledRow, its: packed.Extra) -> LabelledTransaction:
        assert row.tx_hash is not None, "the row of an empty page has no transaction"
        time = ask.network.slot_time(row.slot_no)
        metadata = metadata_of(its)[str(asked.label)]
        return LabelledTransaction(row.tx_hash.hex(), row.block_hash.hex(), row.slot_no, row.block_no, time, metadata)

    async with ask.connection() as db:
        rows = await read(db, asked)
        total = rows[0].total
        page = ChainPage(
            data=listed(rows, asked.label, show, "limit"),
            pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
            last_updated=tip.of_rows(rows).last_updated(ask.network),
        )
        return await ask.written(page)


async def read(db: Connection, asked: LabelledList) -> list[LabelledRow]:
    """The rows of a page in its order, at least one. Raises Refusal."""
    newest_first = asked.order == "desc"
    rows = await _labelled.all(db, label_no_of(asked.label), asked.limit, asked.offset, newest_first)
    if not rows:
        raise errors.network_not_available()
    return rows[::-1] if newest_first else rows


def listed(
    rows: Sequence[LabelledRow],
    label: int,
    show: Callable[[LabelledRow, packed.Extra], ShownT],
    limited_by: Limiting,
) -> list[ShownT]:
    """The transactions of a page in the form that `show` gives them, with this label's metadata only; in parts if they
    are long.
    """
    present = [row for row in rows if row.tx_hash is not None]

    def shown(row: LabelledRow) -> ShownT:
        its = packed.unpack_extra(row.extra)
        cbor, json = its.metadata_cbor, its.metadata_json
        return show(
            row,
            packed.Extra(
                metadata_cbor={label: cbor[label]} if label in cbor else {},
                metadata_json={label: json[label]} if label in json else {},
            ),
        )

    async def each() -> AsyncIterator[ShownT]:
        for row in present:
            yield shown(row)

    are_few = sum(len(row.extra) for row in present) <= MAX_AT_ONCE_BYTES
    return [shown(row) for row in present] if are_few else in_parts(each(), limited_by)
