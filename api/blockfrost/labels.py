"""`/metadata/txs/labels`: the labels of transaction metadata, and the metadata under one."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from api.ask import ChainAsk
from api.blockfrost import cip10, refusals, transactions
from api.blockfrost.paging import Page
from api.chain import labels
from api.chain.labels import LabelKind, LabelledList, LabelledRow, LabelList
from api.chain.transactions import LabelMetadata, metadata_of
from shared import packed


class LabelPage(Page, frozen=True, kw_only=True):
    """A page of the metadata under a label."""

    label: Annotated[int, LabelKind("Missing, out of range or malformed label.")]


class Label(msgspec.Struct, frozen=True):
    """A label, its meaning if CIP-10 registers one that Blockfrost shows, and how many transactions have it."""

    label: str
    cip10: str | None
    count: str


class MetadataJson(msgspec.Struct, frozen=True):
    """The metadata of a transaction under the label as plain JSON; null if it is not metadata, or nested too deeply."""

    tx_hash: str
    json_metadata: Any


class MetadataCbor(msgspec.Struct, frozen=True):
    """The metadata of a transaction under the label as CBOR in hex: a map whose only key is the label.

    `cbor_metadata`, the older field, has the prefix `\\x`. Both are null if the node sends no CBOR.
    """

    tx_hash: str
    cbor_metadata: str | None
    metadata: str | None


async def listed(ask: ChainAsk[Page]) -> list[Label]:
    """List the labels of transaction metadata, by number."""
    asked = ask.question
    question = LabelList(limit=asked.count, offset=asked.offset, order=asked.order)
    page = await labels.list_metadata_labels(ask.about(question))
    return [Label(each.label, cip10.MEANINGS.get(int(each.label)), str(each.transaction_count)) for each in page.data]


async def metadata(ask: ChainAsk[LabelPage]) -> list[MetadataJson]:
    """List the metadata under a label as plain JSON."""

    def show(tx_hash: str, its: packed.Extra) -> MetadataJson:
        return MetadataJson(tx_hash, transactions.plain_of(metadata_of(its)[str(ask.question.label)]))

    return await _under_label(ask, show)


async def metadata_cbor(ask: ChainAsk[LabelPage]) -> list[MetadataCbor]:
    """List the metadata under a label as CBOR."""

    label = ask.question.label

    def show(tx_hash: str, its: packed.Extra) -> MetadataCbor:
        value = LabelMetadata(cbor=its.metadata_cbor[label].hex()) if its.metadata_cbor else LabelMetadata()
        shown = transactions.labelled_cbor(str(label), value)
        return MetadataCbor(tx_hash, shown.cbor_metadata, shown.metadata)

    return await _under_label(ask, show)


ShownT = TypeVar("ShownT")


async def _under_label(ask: ChainAsk[LabelPage], show: Callable[[str, packed.Extra], ShownT]) -> list[ShownT]:
    """A page of the metadata under a label. Raises Refusal: Blockfrost answers 404, not an empty page."""
    asked = ask.question
    question = LabelledList(label=asked.label, limit=asked.count, offset=asked.offset, order=asked.order)

    def shown(row: LabelledRow, its: packed.Extra) -> ShownT:
        assert row.tx_hash is not None, "the row of an empty page has no transaction"
        return show(row.tx_hash.hex(), its)

    async with ask.connection() as db:
        rows = await labels.read(db, question)
        if rows[0].tx_hash is None:
            raise refusals.metadata_not_found()
        return await ask.written(labels.listed(rows, asked.label, shown, "count"))
