"""Transactions: those of an address, an account or a payment credential, as a list, and a single one by its hash."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import ChainAnswer, ChainPage, Change, CursorPaging, Instant, Json, Quantity, json_of
from api.ask import ChainAsk
from api.chain import certificates, metadatum, names, owners
from api.chain.certificates import Certificate
from api.chain.names import Names
from api.chain.tip import Tip
from api.http.bodies import MAX_AT_ONCE_BYTES, in_parts
from api.parameters import MAX_SAFE_INTEGER, Flag, Hex, Integer, Limit, Offset, Order, Question, Text
from shared import address, packed, sql
from shared.ledger import MAX_SLOT, tx_id_of
from shared.network import Network
from shared.sql import Connection

Address = Annotated[str, Text(address.MAX_TEXT_LENGTH, message=errors.invalid_address)]


class _TransactionList(Question, frozen=True, kw_only=True):
    """A page of transactions. `fromSlot` is the newest slot to list or, in ascending order, the oldest."""

    offset: Offset = 0
    from_slot: Annotated[int | None, Integer(0, MAX_SAFE_INTEGER)] = msgspec.field(name="fromSlot", default=None)
    order: Order = "desc"
    limit: int


class ShortList(_TransactionList, frozen=True, kw_only=True):
    """A page of a short list."""

    limit: Limit = 100


class DetailedList(_TransactionList, frozen=True, kw_only=True):
    """A page of a detailed list."""

    limit: Annotated[int, Integer(1, 100)] = 20
    group_by_policy: Annotated[bool, Flag()] = msgspec.field(name="groupByPolicy", default=False)


class HistoryQuestion(ShortList, frozen=True, kw_only=True):
    """A page of the short list of an address."""

    address: Address


class DetailedQuestion(DetailedList, frozen=True, kw_only=True):
    """A page of the detailed list of an address."""

    address: Address


class HashQuestion(Question, frozen=True, kw_only=True):
    """A transaction by its hash."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash)]
    group_by_policy: Annotated[bool, Flag()] = msgspec.field(name="groupByPolicy", default=False)


class Between(msgspec.Struct, frozen=True):
    """A page of the transactions from a tx_id on and before another one; null for no limit."""

    limit: int
    offset: int
    order: Literal["asc", "desc"]
    from_tx_id: int | None
    before_tx_id: int | None


class HistoryEntry(msgspec.Struct, frozen=True):
    """The position of a transaction on the chain."""

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: Instant


class Value(msgspec.Struct, frozen=True):
    """Lovelace and native assets.

    `assets` maps `<policy_id>.<asset_name>` to quantities. With `groupByPolicy`, it maps policy ids to maps from asset
    names to quantities. It is absent if there are no assets.
    """

    lovelace: Quantity
    assets: dict[str, Quantity | dict[str, Quantity]] | UnsetType = UNSET


class Input(msgspec.Struct, frozen=True):
    """A spent output. Address and value are null if the output precedes the first indexed block."""

    tx_hash: str
    output_index: int
    address: str | None
    value: Value | None


class Output(msgspec.Struct, frozen=True):
    """An output of a transaction."""

    output_index: int
    address: str
    value: Value


class Transaction(HistoryEntry, frozen=True):
    """A transaction with its inputs and outputs.

    If its scripts failed, these are its collateral inputs and its collateral return. `fee` is null if it
    depends on an input that precedes the first indexed block, `size` if the node sends no CBOR.
    """

    fee: Quantity | None
    size: int | None
    inputs: list[Input]
    outputs: list[Output]


class Withdrawal(msgspec.Struct, frozen=True):
    """Rewards withdrawn from a reward account."""

    stake_address: str
    lovelace: Quantity


class LabelMetadata(msgspec.Struct, frozen=True):
    """Metadata under one label, as JSON in Ogmios' detailed schema and as CBOR in hex.

    `json` names the type of each value, such as `{"int": 1}`. `cbor` is absent if the node sends no CBOR, `json` if
    the CBOR is not metadata, or if it is nested more than 100 levels deep.
    """

    cbor: str | UnsetType = UNSET
    json: Json | UnsetType = UNSET


class FullTransaction(Transaction, frozen=True):
    """A transaction in full.

    `mint` has negative quantities for burned assets; `metadata` is keyed by label; `certificates` are in order.
    `redeemer_count` is the number of redeemers, and `treasury_donation` what it gives to the treasury in lovelace: both
    are 0 if scripts failed.
    """

    valid: bool
    metadata: dict[str, LabelMetadata]
    mint: dict[str, Change | dict[str, Change]]
    withdrawals: list[Withdrawal]
    certificates: list[Certificate]
    invalid_before: Quantity | None
    invalid_hereafter: Quantity | None
    redeemer_count: int
    treasury_donation: Quantity


class _HistoryRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    total: int
    slot_no: int
    block_no: int
    block_hash: bytes
    tx_hash: bytes | None  # null, like everything from slot_no on, in the row of an empty page
    tx_id: int


class _DetailedRow(_HistoryRow, frozen=True):
    numbering: UUID
    fee: int | None
    size: int | None
    inputs: bytes | None  # null if the inputs and outputs of the page have more than MAX_AT_ONCE_BYTES bytes
    outputs: bytes


class FoundTransaction(msgspec.Struct, frozen=True):
    """The row of a transaction, and the tip."""

    tip_slot_no: int
    tip_hash: bytes
    tip_block_no: int
    slot_no: int
    block_no: int
    block_hash: bytes
    tx_hash: bytes | None  # null, like everything but the tip, if no transaction has the hash
    numbering: UUID
    fee: int | None
    size: int | None
    inputs: bytes
    outputs: bytes
    mint: bytes | None
    extra: bytes | None
    referred: bytes | None
    attached: bytes | None
    tx_id: int


_sql = sql.beside(__file__)
ListT = TypeVar("ListT", bound=_TransactionList)
DetailedT = TypeVar("DetailedT", bound=DetailedList)
_EFFECTS = (
    ", tip.numbering, tx.fee, tx.size,"
    f" CASE WHEN sum(octet_length(tx.inputs) + octet_length(tx.outputs)) OVER () <= {MAX_AT_ONCE_BYTES}"
    " THEN tx.inputs END AS inputs, tx.outputs"
)
_ROWS_AT_ONCE, _ASSETS_AT_ONCE = 20, 4_000
INPUTS_AT_ONCE = 50
"""Each may have a long datum, which some answers show."""


def _entries(owner: owners.OwnerKind) -> str:
    """The number of transactions of an owner, as SQL."""
    parts = owners.HISTORIES[owner]
    of_owner = {"owner": parts["owner"], "owner_no": parts["owner_no"]}
    if owner != "credential":
        return _sql.text("entries", **of_owner, history=parts["history"], number=parts["owner_no"])
    histories = (("address_tx", "address_no"), ("credential_tx", "credential_no"))
    return " + ".join(_sql.text("entries", **of_owner, history=history, number=number) for history, number in histories)


# Pages by owner: the transactions of an address, an account or a payment credential.
history_pages = {
    owner: _sql.query("page", _HistoryRow, effects="", entries=_entries(owner), **parts)
    for owner, parts in owners.HISTORIES.items()
}
detailed_pages = {
    owner: _sql.query("page", _DetailedRow, effects=_EFFECTS, entries=_entries(owner), **parts)
    for owner, parts in owners.HISTORIES.items()
}
_by_hash = _sql.query("by_hash", FoundTransaction)
_inputs = _sql.values("inputs", bytes)


async def list_transaction_history(ask: ChainAsk[HistoryQuestion]) -> ChainPage[HistoryEntry, CursorPaging]:
    """List the transactions of an address.

    A transaction is listed if it spends from the address or pays to it.
    """
    return await history_of(ask, "address", owners.parse_address(ask.question.address, ask.network))


async def list_transactions(ask: ChainAsk[DetailedQuestion]) -> ChainPage[Transaction, CursorPaging]:
    """List the transactions of an address with their inputs and outputs."""
    return await detailed_of(ask, "address", owners.parse_address(ask.question.address, ask.network))


async def history_of(
    ask: ChainAsk[ListT], owner: owners.OwnerKind, raw: bytes
) -> ChainPage[HistoryEntry, CursorPaging]:
    """A page of the short list of an owner."""

    async def entries(_: Connection, rows: Sequence[_HistoryRow]) -> list[HistoryEntry]:
        return [HistoryEntry(*_place(row, ask.network)) for row in rows]

    return await _page(ask, raw, history_pages[owner], entries)


async def detailed_of(
    ask: ChainAsk[DetailedT], owner: owners.OwnerKind, raw: bytes
) -> ChainPage[Transaction, CursorPaging]:
    """A page of the detailed list of an owner."""

    grouped = ask.question.group_by_policy

    async def entries(db: Connection, rows: Sequence[_DetailedRow]) -> list[Transaction]:
        if any(row.inputs is None for row in rows):
            return in_parts(long_ones(db, rows), "limit")
        effects: list[_Effects] = []
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            if at:
                await asyncio.sleep(0)  # other requests go on
            effects += [_Effects.of(row.inputs, row.outputs) for row in rows[at : at + _ROWS_AT_ONCE]]
        shown = await names.resolve(db, rows[0].numbering, _outputs_in(effects)) if rows else Names({}, {})
        made: list[Transaction] = []
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            if at:
                await asyncio.sleep(0)
            made += [
                Transaction(*_place(row, ask.network), row.fee, row.size, *tx_effects.show(shown, grouped))
                for row, tx_effects in zip(rows[at : at + _ROWS_AT_ONCE], effects[at : at + _ROWS_AT_ONCE], strict=True)
            ]
        return made

    async def long_ones(db: Connection, rows: Sequence[_DetailedRow]) -> AsyncIterator[Transaction]:
        for row in rows:
            spent = await _inputs.one(db, row.tx_hash)
            if spent is None:
                raise names.Renumbered  # a rollback has removed it since the page was read
            effects = _Effects.of(None, row.outputs)
            _, made = effects.show(await names.resolve(db, row.numbering, _outputs_in([effects])), grouped)
            inputs = in_parts(each_input(db, row.numbering, spent, grouped))
            yield Transaction(*_place(row, ask.network), row.fee, row.size, inputs, made)

    return await _page(ask, raw, detailed_pages[owner], entries)


async def get_transaction(ask: ChainAsk[HashQuestion]) -> ChainAnswer[FullTransaction]:
    """Get a transaction by hash."""
    async with ask.connection() as db:

        async def read() -> ChainAnswer[FullTransaction]:
            row = await _by_hash.one(db, ask.question.hash)
            if row is None:
                raise errors.network_not_available()
            if row.tx_hash is None:
                raise errors.transaction_not_found()
            ask.notes.settle(row.block_hash, row.block_no, row.tip_block_no)
            data = await full(db, row, ask.network, ask.question.group_by_policy)
            last_updated = Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network)
            return await ask.written(ChainAnswer(data=data, last_updated=last_updated))

        return await names.until_consistent(read)


async def find(db: Connection, tx_hash: bytes) -> FoundTransaction | None:
    """The row of a transaction by its hash; None if it is not indexed. Raises Refusal 503."""
    row = await _by_hash.one(db, tx_hash)
    if row is None:
        raise errors.network_not_available()
    return None if row.tx_hash is None else row


async def read(db: Connection, tx_hash: bytes, network: Network) -> FullTransaction | None:
    """A transaction by its hash, in a snapshot, for an answer in parts; None if it is not indexed."""
    row = await find(db, tx_hash)
    return None if row is None else await full(db, row, network, grouped=False)


async def full(
    db: Connection, row: FoundTransaction, network: Network, grouped: bool, inputs: list[Input] | None = None
) -> FullTransaction:
    """A transaction as answers show it, with these inputs or else its own, which are in parts if they are many."""
    mint, extra = packed.unpack_mint(row.mint), packed.unpack_extra(row.extra)
    in_row = row.inputs if inputs is None and len(row.inputs) <= MAX_AT_ONCE_BYTES else None
    effects = _Effects.of(in_row, row.outputs)
    shown = await names.resolve(db, row.numbering, _outputs_in([effects]), mint)
    spent, made = effects.show(shown, grouped)
    if inputs is None:
        inputs = spent if in_row else in_parts(each_input(db, row.numbering, row.inputs, grouped))
    return FullTransaction(
        *_place(row, network),
        row.fee,
        row.size,
        inputs,
        made,
        valid=extra.valid,
        metadata=metadata_of(extra),
        mint=_assets(mint, shown, grouped),
        withdrawals=[Withdrawal(address.show_stake(raw), lovelace) for raw, lovelace in extra.withdrawals.items()],
        certificates=[certificates.show(certificate, network) for certificate in extra.certificates],
        invalid_before=extra.invalid_before,
        invalid_hereafter=extra.invalid_hereafter,
        redeemer_count=extra.redeemer_count,
        treasury_donation=extra.donation,
    )


async def each_input(db: Connection, numbering: UUID, data: bytes, grouped: bool) -> AsyncIterator[Input]:
    """The packed inputs of a transaction as answers show them, for a list in parts. Raises Renumbered."""
    async for some in input_batches(db, numbering, data, grouped):
        for spent in some:
            yield spent


async def input_batches(db: Connection, numbering: UUID, data: bytes, grouped: bool) -> AsyncIterator[list[Input]]:
    """The same, in the parts of `input_parts`."""
    for some in input_parts(data):
        yield await shown_inputs(db, numbering, some, grouped)


def input_parts(data: bytes) -> Iterator[list[packed.Input]]:
    """Packed inputs, as many at a time as have _ASSETS_AT_ONCE assets, and at most INPUTS_AT_ONCE."""
    some: list[packed.Input] = []
    assets = 0
    for spent in packed.each_input(data):
        some.append(spent)
        assets += 0 if spent.source is None else len(spent.source.quantities)
        if assets >= _ASSETS_AT_ONCE or len(some) == INPUTS_AT_ONCE:
            yield some
            some, assets = [], 0
    if some:
        yield some


async def shown_inputs(db: Connection, numbering: UUID, spent: Sequence[packed.Input], grouped: bool) -> list[Input]:
    """Inputs as answers show them. Raises Renumbered."""
    effects = _Effects(spent, 0, [])
    inputs, _ = effects.show(await names.resolve(db, numbering, _outputs_in([effects])), grouped)
    return inputs


async def between(
    db: Connection, owner: owners.OwnerKind, raw: bytes, page: Between, network: Network
) -> list[tuple[int, HistoryEntry]]:
    """A page of the transactions of an owner within a range, each with its tx_id, in a snapshot. Raises Refusal."""
    newest_first = page.order == "desc"
    limits = page.from_tx_id, page.before_tx_id
    rows = await history_pages[owner].all(db, raw, page.limit, page.offset, *limits, newest_first)
    if not rows:
        raise errors.network_not_available()
    present = [] if rows[0].tx_hash is None else rows
    if newest_first:
        present.reverse()
    return [(row.tx_id, HistoryEntry(*_place(row, network))) for row in present[: page.limit]]


RowT = TypeVar("RowT", bound=_HistoryRow)
EntryT = TypeVar("EntryT")


async def _page(
    ask: ChainAsk[ListT],
    raw: bytes,
    query: sql.Query[RowT],
    entries: Callable[[Connection, Sequence[RowT]], Awaitable[list[EntryT]]],
) -> ChainPage[EntryT, CursorPaging]:
    """A page of an owner's transactions; `entries` turns rows into entries of the answer."""
    asked = ask.question
    newest_first = asked.order == "desc"
    from_tx_id = before_tx_id = None
    if asked.from_slot is not None:
        slot_no = min(asked.from_slot, MAX_SLOT - 1)
        if newest_first:
            before_tx_id = tx_id_of(slot_no + 1, 0)
        else:
            from_tx_id = tx_id_of(slot_no, 0)
    async with ask.connection() as db:

        async def read_page() -> ChainPage[EntryT, CursorPaging]:
            rows = await query.all(db, raw, asked.limit, asked.offset, from_tx_id, before_tx_id, newest_first)
            if not rows:
                raise errors.network_not_available()
            present = [] if rows[0].tx_hash is None else rows
            if newest_first:
                present.reverse()
            page = ChainPage(
                data=await entries(db, present[: asked.limit]),
                pagination=CursorPaging(
                    limit=asked.limit,
                    offset=asked.offset,
                    total=rows[0].total,
                    has_more=len(present) > asked.limit,
                    next_cursor=_next_cursor(present, asked.limit, newest_first),
                ),
                last_updated=Tip(rows[0].tip_slot_no, rows[0].tip_hash).last_updated(ask.network),
            )
            return await ask.written(page)

        return await names.until_consistent(read_page)


def _next_cursor(rows: Sequence[_HistoryRow], limit: int, newest_first: bool) -> int | UnsetType:
    """The slot after the last one on the page, in list order; unset if the list ends or continues in the same slot.

    It is not the slot of the next transaction: a rollback may replace that one with a transaction in an earlier slot,
    which the next page must still include.
    """
    if len(rows) <= limit or rows[limit].slot_no == rows[limit - 1].slot_no:
        return UNSET
    return rows[limit - 1].slot_no + (-1 if newest_first else 1)


def _place(row: _HistoryRow | FoundTransaction, network: Network) -> tuple[str, str, int, int, datetime]:
    """The fields of a HistoryEntry. In their order, since to name them costs 0.1 us for each of up to 500 entries."""
    assert row.tx_hash is not None, "the row of an empty page has no transaction"
    return row.tx_hash.hex(), row.block_hash.hex(), row.slot_no, row.block_no, network.slot_time(row.slot_no)


class _Effects(msgspec.Struct, frozen=True):
    """Inputs and outputs of a transaction, with row numbers instead of addresses and assets."""

    inputs: Sequence[packed.Input]
    first_index: int
    outputs: list[packed.Output]

    @classmethod
    def of(cls, inputs: bytes | None, outputs: bytes) -> "_Effects":
        return cls([] if inputs is None else packed.unpack_inputs(inputs), *packed.unpack_outputs(outputs))

    def show(self, shown: Names, grouped: bool) -> tuple[list[Input], list[Output]]:
        inputs = [
            Input(spent.tx_hash.hex(), spent.output_index, None, None)
            if spent.source is None
            else Input(
                spent.tx_hash.hex(),
                spent.output_index,
                shown.addresses[spent.source.address_no],
                value_of(spent.source, shown, grouped),
            )
            for spent in self.inputs
        ]
        outputs = [
            Output(index, shown.addresses[output.address_no], value_of(output, shown, grouped))
            for index, output in enumerate(self.outputs, self.first_index)
        ]
        return inputs, outputs


def _outputs_in(effects: Sequence[_Effects]) -> Iterator[packed.Output]:
    """All outputs that transactions make, and the known ones that they spend."""
    for tx_effects in effects:
        yield from tx_effects.outputs
        for spent in tx_effects.inputs:
            if spent.source is not None:
                yield spent.source


def value_of(output: packed.Output, shown: Names, grouped: bool) -> Value:
    """The value of an output, as answers show it."""
    return Value(output.lovelace, _assets(output.quantities, shown, grouped) if output.quantities else UNSET)


def _assets(quantities: packed.Quantities, shown: Names, grouped: bool) -> dict[str, int | dict[str, int]]:
    """Quantities by `<policy_id>.<asset_name>`, or by policy id and asset name if `grouped`."""
    assets = shown.assets
    if not grouped:
        return {assets[asset_no].full: quantity for asset_no, quantity in quantities.items()}
    by_policy: dict[str, dict[str, int]] = {}
    for asset_no, quantity in quantities.items():
        asset = assets[asset_no]
        by_policy.setdefault(asset.policy_id, {})[asset.name] = quantity
    return dict(by_policy)


def metadata_of(extra: packed.Extra) -> dict[str, LabelMetadata]:
    """The metadata of a transaction by label."""
    return {
        str(label): LabelMetadata(cbor=data.hex(), json=json_of(metadatum.of_cbor(data)))
        for label, data in extra.metadata_cbor.items()
    } | {
        str(label): LabelMetadata(json=json_of(metadatum.of_json(data))) for label, data in extra.metadata_json.items()
    }
