"""Transactions: those of an address, in full or briefly, and one by its hash."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import ChainAnswer, ChainPage, CursorPaging, Instant
from api.ask import ChainAsk
from api.chain.tip import Tip
from api.parameters import HIGHEST_EXACT, Flag, Hex, Integer, Offset, Order, Question, Text
from shared import address, packed, sql
from shared.network import Network

_HIGHEST_SLOT = 2**47 - 2  # the slot after it, as a tx_id, is the last within 63 bits
_CACHED_ADDRESSES = 16_384


class _Part(Question, frozen=True, kw_only=True):
    """Which part of an address' transactions. `fromSlot` is the newest slot listed or, ascending, the oldest."""

    address: Annotated[str, Text(address.LONGEST_TEXT, message=errors.invalid_address().message)]
    offset: Offset = 0
    from_slot: Annotated[int | None, Integer(0, HIGHEST_EXACT)] = msgspec.field(name="fromSlot", default=None)
    order: Order = "desc"
    limit: int


class HistoryPart(_Part, frozen=True, kw_only=True):
    """Which part of an address' transactions, briefly."""

    limit: Annotated[int, Integer(1, 500)] = 100


class DetailedPart(_Part, frozen=True, kw_only=True):
    """Which part of an address' transactions, in full."""

    limit: Annotated[int, Integer(1, 100)] = 20
    group_by_policy: Annotated[bool, Flag()] = msgspec.field(name="groupByPolicy", default=False)


class ByHash(Question, frozen=True, kw_only=True):
    """Which transaction."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash().message)]
    group_by_policy: Annotated[bool, Flag()] = msgspec.field(name="groupByPolicy", default=False)


class HistoryEntry(msgspec.Struct, frozen=True):
    """Where a transaction stands on the chain."""

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: Instant


class Value(msgspec.Struct, frozen=True):
    """Lovelace and native assets.

    `assets` maps `<policy_id>.<asset_name>` to quantities or, with `groupByPolicy`, policy ids to maps from asset names
    to quantities. It is absent where there are none.
    """

    lovelace: int
    assets: dict[str, int | dict[str, int]] | UnsetType = UNSET


class Input(msgspec.Struct, frozen=True):
    """An output that was spent. Address and value are null where it lies before the first indexed block."""

    tx_hash: str
    output_index: int
    address: str | None
    value: Value | None


class Output(msgspec.Struct, frozen=True):
    """What a transaction paid."""

    output_index: int
    address: str
    value: Value


class Transaction(HistoryEntry, frozen=True):
    """What a transaction did.

    Of one that failed its scripts these are its collateral and its collateral return. `fee` is null where an input of a
    Byron transaction lies before the first indexed block, `size` where the node sends no CBOR.
    """

    fee: int | None
    size: int | None
    inputs: list[Input]
    outputs: list[Output]


class Withdrawal(msgspec.Struct, frozen=True):
    """Rewards that a transaction took out of a reward account."""

    stake_address: str
    lovelace: int


class LabelMetadata(msgspec.Struct, frozen=True):
    """Metadata under one label: the hex of its CBOR or, where the node sends none, the node's JSON."""

    cbor: str | UnsetType = UNSET
    json: msgspec.Raw | UnsetType = UNSET


class WholeTransaction(Transaction, frozen=True):
    """What a transaction did and said. `mint` has negative quantities for what was burned; `metadata` goes by label."""

    valid: bool
    metadata: dict[str, LabelMetadata]
    mint: dict[str, int | dict[str, int]]
    withdrawals: list[Withdrawal]
    invalid_before: int | None
    invalid_hereafter: int | None


class _HistoryRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    total: int
    slot_no: int
    block_no: int
    block_hash: bytes
    tx_hash: bytes | None  # null in a row that stands for an empty page, and so is all from slot_no on


class _DetailedRow(_HistoryRow, frozen=True):
    fee: int | None
    size: int | None
    inputs: bytes
    outputs: bytes


class _ByHashRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    slot_no: int
    block_no: int
    block_hash: bytes
    tx_hash: bytes | None  # null where no transaction has the hash, and so is all the rest
    fee: int | None
    size: int | None
    inputs: bytes
    outputs: bytes
    extra: bytes | None


history_of = sql.query("history", _HistoryRow)
detailed_of = sql.query("detailed", _DetailedRow)
_by_hash = sql.query("by_hash", _ByHashRow)


async def history(ask: ChainAsk[HistoryPart]) -> ChainPage[HistoryEntry, CursorPaging]:
    """List the transactions of an address, briefly.

    A transaction belongs to an address that it spends from or pays to.
    """
    return await _page(ask, history_of, lambda row: HistoryEntry(*_place(row, ask.network)))


async def detailed(ask: ChainAsk[DetailedPart]) -> ChainPage[Transaction, CursorPaging]:
    """List the transactions of an address with what they spent and paid."""
    grouped = ask.question.group_by_policy
    return await _page(ask, detailed_of, lambda row: Transaction(*_place(row, ask.network), *_effects(row, grouped)))


async def by_hash(ask: ChainAsk[ByHash]) -> ChainAnswer[WholeTransaction]:
    """Read one transaction in full."""
    async with ask.connection() as db:
        row = await _by_hash.one(db, ask.question.hash)
    if row is None:
        raise errors.network_not_available()
    if row.tx_hash is None:
        raise errors.transaction_not_found()
    grouped = ask.question.group_by_policy
    extra = packed.unpack_extra(row.extra)
    return ChainAnswer(
        data=WholeTransaction(
            *_place(row, ask.network),
            *_effects(row, grouped),
            valid=extra.valid,
            metadata=_metadata(extra),
            mint=_assets(extra.mint, grouped),
            withdrawals=[Withdrawal(address.show_stake(raw), lovelace) for raw, lovelace in extra.withdrawals.items()],
            invalid_before=extra.invalid_before,
            invalid_hereafter=extra.invalid_hereafter,
        ),
        last_updated=Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network),
    )


RowT = TypeVar("RowT", bound=_HistoryRow)
EntryT = TypeVar("EntryT")


async def _page(
    ask: ChainAsk[HistoryPart] | ChainAsk[DetailedPart], query: sql.Query[RowT], entry: Callable[[RowT], EntryT]
) -> ChainPage[EntryT, CursorPaging]:
    """A page of an address' transactions, each row of it shown by `entry`."""
    asked = ask.question
    raw = _parse_address(asked.address, ask.network)
    newest_first = asked.order == "desc"
    from_tx_id = before_tx_id = None
    if asked.from_slot is not None:
        slot_no = min(asked.from_slot, _HIGHEST_SLOT)
        if newest_first:
            before_tx_id = (slot_no + 1) << 16
        else:
            from_tx_id = slot_no << 16
    async with ask.connection() as db:
        rows = await query.all(db, raw, asked.limit, asked.offset, from_tx_id, before_tx_id, newest_first)
    if not rows:
        raise errors.network_not_available()
    found = [] if rows[0].tx_hash is None else rows
    if newest_first:
        found.reverse()
    return ChainPage(
        data=[entry(row) for row in found[: asked.limit]],
        pagination=CursorPaging(
            limit=asked.limit,
            offset=asked.offset,
            total=rows[0].total,
            has_more=len(found) > asked.limit,
            next_cursor=_next_cursor(found, asked.limit, newest_first),
        ),
        last_updated=Tip(rows[0].tip_slot_no, rows[0].tip_hash).last_updated(ask.network),
    )


def _next_cursor(found: Sequence[_HistoryRow], limit: int, newest_first: bool) -> int | UnsetType:
    """The slot after the page's last one, in its direction; unset where the list ends or goes on in the same slot.

    It is not the slot of the next transaction: where a rollback replaces that one by another in between, the next page
    still has it.
    """
    if len(found) <= limit or found[limit].slot_no == found[limit - 1].slot_no:
        return UNSET
    return found[limit - 1].slot_no + (-1 if newest_first else 1)


def _parse_address(text: str, network: Network) -> bytes:
    try:
        return address.parse(text, network)
    except address.ForeignAddress as cause:
        raise errors.foreign_address() from cause
    except address.InvalidAddress as cause:
        raise errors.invalid_address() from cause


def _place(row: _HistoryRow | _ByHashRow, network: Network) -> tuple[str, str, int, int, datetime]:
    """The fields of a HistoryEntry."""
    assert row.tx_hash is not None, "the row of an empty page stands for no transaction"
    return row.tx_hash.hex(), row.block_hash.hex(), row.slot_no, row.block_no, network.slot_time(row.slot_no)


def _effects(row: _DetailedRow | _ByHashRow, grouped: bool) -> tuple[int | None, int | None, list[Input], list[Output]]:
    """The fields that a Transaction has beyond those of a HistoryEntry."""
    inputs = [
        Input(spent.tx_hash.hex(), spent.output_index, None, None)
        if spent.source is None
        else Input(
            spent.tx_hash.hex(), spent.output_index, _show_address(spent.source.address), _value(spent.source, grouped)
        )
        for spent in packed.unpack_inputs(row.inputs)
    ]
    first_index, paid = packed.unpack_outputs(row.outputs)
    outputs = [
        Output(index, _show_address(output.address), _value(output, grouped))
        for index, output in enumerate(paid, first_index)
    ]
    return row.fee, row.size, inputs, outputs


# One page names the same addresses over and over, and the next request's page many of them again.
_show_address = lru_cache(_CACHED_ADDRESSES)(address.show)


def _value(output: packed.Output, grouped: bool) -> Value:
    return Value(output.lovelace, _assets(output.assets, grouped) if output.assets else UNSET)


def _assets(assets: packed.Assets, grouped: bool) -> dict[str, int | dict[str, int]]:
    """Quantities by `<policy_id>.<asset_name>`, or by policy id and then asset name."""
    if grouped:
        return {
            policy_id.hex(): {name.hex(): quantity for name, quantity in quantities.items()}
            for policy_id, quantities in assets.items()
        }
    return {
        f"{policy_id.hex()}.{name.hex()}": quantity
        for policy_id, quantities in assets.items()
        for name, quantity in quantities.items()
    }


def _metadata(extra: packed.Extra) -> dict[str, LabelMetadata]:
    cbor = {str(label): LabelMetadata(cbor=data.hex()) for label, data in extra.metadata_cbor.items()}
    json = {str(label): LabelMetadata(json=msgspec.Raw(data)) for label, data in extra.metadata_json.items()}
    return cbor | json
