"""Outputs: the unspent ones of an address, an account or a payment credential, and a single one by its reference."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec

from api import errors
from api.answers import ChainAnswer, ChainPage, Instant, PlacePaging
from api.ask import ChainAsk
from api.chain import assets, contracts, names, owners, tip
from api.chain.assets import AssetId, AssetKind, Fingerprint
from api.chain.contracts import Carried
from api.chain.names import Names
from api.chain.owners import FROM_PLACE, Place, PlaceKind, Position
from api.chain.transactions import Value, value_of
from api.http.bodies import MAX_AT_ONCE_BYTES, Limiting, in_parts
from api.parameters import Hex, Integer, ListQuestion, Question
from shared import address, packed, sql
from shared.ledger import slot_of
from shared.network import Network
from shared.sql import Connection

MAX_INDEX = (1 << 16) - 1
_ROWS_AT_ONCE = 100


class UnspentList(ListQuestion, frozen=True, kw_only=True):
    """A page of unspent outputs. With `asset`, only those that hold it."""

    asset: Annotated[AssetId | Fingerprint | None, AssetKind()] = None
    cursor: Annotated[Place | None, PlaceKind()] = None


class OutputQuestion(Question, frozen=True, kw_only=True):
    """An output by its transaction and index."""

    tx_hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash)]
    index: Annotated[int, Integer(0, MAX_INDEX)]


class UnspentOutput(msgspec.Struct, frozen=True):
    """An output without its spender, as in lists of unspent outputs.

    `slot_no` and `block_time` are null if it is part of the genesis. `data_hash` is the hash of its datum, and
    `inline_datum` is the CBOR of its datum in hex, null if the output has only the hash.
    """

    tx_hash: str
    output_index: int
    slot_no: int | None
    block_time: Instant | None
    address: str
    value: Value
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None


class MadeOutput(UnspentOutput, frozen=True):
    """An output by its reference, spent or not: `spent_by` is the transaction that spent it, null if none has.

    The ledger removed some outputs of Byron without a transaction when a later era began: unredeemed vouchers and
    outputs of no lovelace. `dropped_slot_no` is the slot of that era's first block, null for all other outputs.
    """

    spent_by: Position | None
    dropped_slot_no: int | None


class OutputRow(tip.ListRow, frozen=True):
    """An output in a list, and the tip."""

    numbering: UUID
    tx_id: int | None  # null, like everything below, in the row of an empty page
    output_index: int
    tx_hash: bytes
    outputs: bytes | None  # null for an output of the genesis
    attached: bytes | None
    genesis_address: bytes | None
    genesis_lovelace: int | None


class _OfAssetRow(OutputRow, frozen=True):
    known: bool


class _MadeRow(OutputRow, frozen=True):
    spent_tx_id: int | None
    spent_hash: bytes | None
    dropped_slot_no: int | None


_sql = sql.beside(__file__)
_DIRECTIONS = {
    "asc": {**FROM_PLACE["asc"], "lag": "", "over": ""},
    "desc": {**FROM_PLACE["desc"], "lag": "lag", "over": "OVER in_order"},
}
# The opposite order, and the comparisons of a place that is after another one, and of one that is before it.
_OPPOSITE = {
    "asc": {"back": "DESC", "beyond": ">", "short": "<"},
    "desc": {"back": "ASC", "beyond": "<", "short": ">="},
}
_UTXO_ASSETS: dict[owners.OwnerKind, str] = {"address": "utxo_asset", "account": "account_utxo_asset"}
unspent_pages: dict[tuple[owners.OwnerKind, str], sql.Query[OutputRow]] = {
    (owner, order): _sql.query("unspent", OutputRow, **parts, **direction)
    for owner, parts in owners.OUTPUTS.items()
    for order, direction in _DIRECTIONS.items()
}
unspent_of_asset_pages: dict[tuple[owners.OwnerKind, str], sql.Query[_OfAssetRow]] = {
    (owner, order): _sql.query("unspent_of_asset", _OfAssetRow, **parts, utxo_asset=_UTXO_ASSETS[owner], **direction)
    for owner, parts in owners.OUTPUTS.items()
    for order, direction in FROM_PLACE.items()
}
# The lists of a payment credential: those of its first address, and those of all others.
_PARTS = (
    {"owner_no": "address_no", "utxo_bucket": "utxo_bucket", "utxo_asset": "utxo_asset"},
    {"owner_no": "credential_no", "utxo_bucket": "credential_utxo_bucket", "utxo_asset": "credential_utxo_asset"},
)
unspent_pages |= {
    ("credential", order): _sql.query("unspent_of_credential", OutputRow, **direction, **_OPPOSITE[order])
    for order, direction in _DIRECTIONS.items()
}
unspent_of_asset_pages |= {
    ("credential", order): _sql.query(
        "unspent_of_asset_of_credential",
        _OfAssetRow,
        order=direction["order"],
        sources=" UNION ALL ".join(_sql.text("holding", **part, **direction) for part in _PARTS),
    )
    for order, direction in FROM_PLACE.items()
}
_output = _sql.query("output", _MadeRow)

ShownT = TypeVar("ShownT")
UnspentT = TypeVar("UnspentT", bound=UnspentList)


async def get_utxo(ask: ChainAsk[OutputQuestion]) -> ChainAnswer[MadeOutput]:
    """Get an output, spent or not.

    The answer names the transaction that has spent it, if any. An output that the ledger dropped when an era began
    is neither spent nor unspent.
    """
    asked = ask.question
    async with ask.snapshot() as db:
        last_updated = (await tip.read(db)).last_updated(ask.network)
        output = await read(db, asked.tx_hash, asked.index, ask.network)
    if output is None:
        raise errors.output_not_found()
    return ChainAnswer(data=output, last_updated=last_updated)


async def read(db: Connection, tx_hash: bytes, index: int, network: Network) -> MadeOutput | None:
    """An output in a snapshot; None if no indexed transaction has made it."""
    row = await _output.one(db, tx_hash, index)
    return None if row is None else await _shown_made(db, row, network)


async def unspent(
    ask: ChainAsk[UnspentT], owner: owners.OwnerKind, raw: bytes
) -> ChainPage[UnspentOutput, PlacePaging]:
    """A page of the unspent outputs of an owner, those with an asset if the question names one."""
    asked = ask.question
    asset = None if asked.asset is None else await assets.asset_of(ask, asked.asset)
    async with ask.snapshot() as db:
        rows = await unspent_rows(db, asked, owner, raw, asset)
        last = tip.of_rows(rows)
        shown = [row for row in rows[: asked.limit] if row.tx_id is not None]
        page = ChainPage(
            data=await listed(db, shown, ask.network, _same, "limit"),
            pagination=owners.paging(
                asked, rows, lambda: owners.show_place(shown[-1].tx_id or 0, shown[-1].output_index)
            ),
            last_updated=last.last_updated(ask.network),
        )
        return await ask.written(page)


async def unspent_rows(
    db: Connection, asked: UnspentList, owner: owners.OwnerKind, raw: bytes, asset: AssetId | None
) -> Sequence[OutputRow]:
    """The rows of a page and one beyond it, in a snapshot. Raises Refusal for an unknown asset."""
    page = raw, asked.limit, asked.offset, *owners.start_after(asked.cursor, asked.order)
    if asset is None:
        return await unspent_pages[owner, asked.order].all(db, *page)
    held = await unspent_of_asset_pages[owner, asked.order].all(db, *page, asset.policy_id, asset.asset_name)
    if held and not held[0].known:
        raise errors.asset_not_found()
    return held


async def listed(
    db: Connection,
    rows: Sequence[OutputRow],
    network: Network,
    show: Callable[[Connection, list[UnspentOutput]], Awaitable[list[ShownT]]],
    limited_by: Limiting,
) -> list[ShownT]:
    """Outputs in the form that `show` gives them, in the snapshot of their rows; in parts if they are many or long."""
    batches = list(_batches(rows))

    async def shown_outputs() -> AsyncIterator[ShownT]:
        for batch in batches:
            for output in await show(db, await _shown(db, batch, network)):
                yield output

    return in_parts(shown_outputs(), limited_by) if len(batches) > 1 else [output async for output in shown_outputs()]


def _batches(rows: Sequence[OutputRow]) -> Iterator[list[OutputRow]]:
    """Rows with at most MAX_AT_ONCE_BYTES bytes of outputs, or a single one. Each may have a long datum, too."""
    batch: list[OutputRow] = []
    size = 0
    for row in rows:
        size += len(row.outputs or b"")
        if batch and (size > MAX_AT_ONCE_BYTES or len(batch) == _ROWS_AT_ONCE):
            yield batch
            batch, size = [], len(row.outputs or b"")
        batch.append(row)
    if batch:
        yield batch


async def _same(_: Connection, shown: list[UnspentOutput]) -> list[UnspentOutput]:
    return shown


async def _shown_made(db: Connection, row: _MadeRow, network: Network) -> MadeOutput | None:
    if row.tx_id is None or (_packed_output(row) is None and row.outputs is not None):
        return None
    (shown,) = await _shown(db, [row], network)
    spent_by = owners.position(row.spent_tx_id, row.spent_hash, network)
    return MadeOutput(**msgspec.structs.asdict(shown), spent_by=spent_by, dropped_slot_no=row.dropped_slot_no)


async def _shown(db: Connection, rows: Sequence[OutputRow], network: Network) -> list[UnspentOutput]:
    """Outputs as answers show them, in a snapshot."""
    outputs = [_packed_output(row) for row in rows]
    known = [output for output in outputs if output is not None]
    shown = await names.resolve(db, rows[0].numbering, known) if known else Names({}, {})
    carried = await contracts.carried(db, [(row.attached, row.output_index) for row in rows])
    return [
        _shown_one(row, output, what, shown, network) for row, output, what in zip(rows, outputs, carried, strict=True)
    ]


def _shown_one(
    row: OutputRow, output: packed.Output | None, carried: Carried, shown: Names, network: Network
) -> UnspentOutput:
    if output is None:
        assert row.genesis_address is not None and row.genesis_lovelace is not None, "an output has one of two sources"
        whose, value = address.show(row.genesis_address), Value(row.genesis_lovelace)
        slot_no = None
    else:
        assert row.tx_id is not None, "the row of an empty page is not shown"
        whose, value = shown.addresses[output.address_no], value_of(output, shown, grouped=False)
        slot_no = slot_of(row.tx_id)
    return UnspentOutput(
        row.tx_hash.hex(),
        row.output_index,
        slot_no,
        None if slot_no is None else network.slot_time(slot_no),
        whose,
        value,
        carried.data_hash,
        carried.inline_datum,
        carried.reference_script_hash,
    )


def _packed_output(row: OutputRow) -> packed.Output | None:
    """The output in the row of its transaction; None for an output of the genesis, and for one that does not exist."""
    if row.outputs is None:
        return None
    return packed.unpack_output_at(row.outputs, row.output_index)
