"""The parts that addresses, accounts and payment credentials have in common: they own outputs and have a history.

Their lists continue at a cursor, at the same cost for any depth: docs/decisions/0046-cursors.md.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeVar
from uuid import UUID

import msgspec

from api import errors
from api.answers import ChainPage, Digits, Instant, PlacePaging, Quantity
from api.ask import ChainAsk
from api.chain import names
from api.chain.assets import ASSET_PATTERN, AssetId, parse_id, text_of
from api.chain.tip import ListRow, Tip
from api.chain.tip import of_rows as tip_of
from api.parameters import JsonSchema, Kind, ListQuestion
from shared import address, sql
from shared.ledger import AssetNo, fingerprint, slot_of
from shared.network import Network
from shared.sql import Connection

OwnerKind = Literal["address", "account", "credential"]
"""A `credential` is a payment credential, by its hash. Its lists have two parts: those of the first address with it,
and those of all others, which most have not.
"""

# Names of tables and columns in the statements about each kind of owner.
_KEYS: dict[OwnerKind, dict[str, str]] = {
    "address": {"owner": "address", "owner_no": "address_no"},
    "account": {"owner": "stake", "owner_no": "stake_no"},
}
HISTORIES: dict[OwnerKind, dict[str, str]] = {
    "address": {**_KEYS["address"], "history": "address_tx", "named": "raw = $1"},
    "account": {**_KEYS["account"], "history": "account_tx", "named": "raw = $1"},
    "credential": {
        **_KEYS["address"],
        "history": "credential_tx",
        "named": "payment_hash(raw) = $1 AND credential_no IS NULL",
    },
}
OUTPUTS: dict[OwnerKind, dict[str, str]] = {
    "address": {**_KEYS["address"], "utxo_bucket": "utxo_bucket"},
    "account": {**_KEYS["account"], "utxo_bucket": "account_utxo_bucket"},
}
HOLDINGS: dict[OwnerKind, dict[str, str]] = {
    "address": {"holder": "holder", "holder_no": "address_no"},
    "account": {"holder": "account_holder", "holder_no": "account_no"},
}


# The entries after a cursor in lists by row number, and the number from which a list begins in that direction.
AFTER = {
    "asc": {"order": "asc", "after": ">", "edge": "0"},
    "desc": {"order": "desc", "after": "<", "edge": "2147483647"},
}
# The entries from a place in lists in the order of the chain, and the place from which a list begins in that direction.
FROM_PLACE = {
    "asc": {"order": "ASC", "compare": ">=", "edge": "'-9223372036854775808'::bigint"},
    "desc": {"order": "DESC", "compare": "<", "edge": "'9223372036854775807'::bigint"},
}
_CURSOR = "the next_cursor of a page of this list"
_MAX_TX_ID = (1 << 63) - 1


class Place(msgspec.Struct, frozen=True):
    """A place on the chain: a tx_id and the number of an entry in that transaction. The entry need not exist."""

    tx_id: int
    number: int


class PlaceKind(Kind[Place]):
    """The `next_cursor` of a list in the order of the chain."""

    _FORM = re.compile(r"(-?[0-9]{1,19})\.([0-9]{1,5})")

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^{self._FORM.pattern}$"}
        super().__init__(_CURSOR, schema)

    def of_text(self, text: str) -> Place:
        match = self._FORM.fullmatch(text)
        if match is None:
            raise ValueError(text)
        tx_id, number = map(int, match.groups())
        if abs(tx_id) > _MAX_TX_ID:
            raise ValueError(text)
        return Place(tx_id, number)


class AssetPlace(Kind[AssetId]):
    """The `next_cursor` of a list of assets: one of them, in the form `<policy_id>.<asset_name>`."""

    def __init__(self) -> None:
        super().__init__(_CURSOR, {"type": "string", "pattern": f"^{ASSET_PATTERN}$"})

    def of_text(self, text: str) -> AssetId:
        asset = parse_id(text)
        if asset is None:
            raise ValueError(text)
        return asset


class HoldingList(ListQuestion, frozen=True, kw_only=True):
    """A page of the assets of an owner."""

    cursor: Annotated[AssetId | None, AssetPlace()] = None


class Position(msgspec.Struct, frozen=True):
    """A transaction and its position on the chain."""

    tx_hash: str
    slot_no: int
    block_time: Instant


class Holding(msgspec.Struct, frozen=True):
    """An asset and its quantity in the unspent outputs of an address or an account.

    `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8.
    """

    policy_id: str
    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    quantity: Digits


class OwnerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The value of an owner's unspent outputs, and its first and last transaction, if any."""

    lovelace: Quantity
    utxo_count: int
    asset_count: int
    transaction_count: int
    first_transaction: Position | None
    last_transaction: Position | None


class _SummaryRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    lovelace: int
    utxo_count: int
    asset_count: int
    transaction_count: int
    first_tx_id: int | None
    first_hash: bytes | None
    last_tx_id: int | None
    last_hash: bytes | None


class _HoldingRow(ListRow, frozen=True):
    placed: bool
    numbering: UUID
    asset_no: AssetNo | None  # null in the row of an empty page
    quantity: str


_sql = sql.beside(__file__)
_summaries: dict[OwnerKind, sql.Query[_SummaryRow]] = {
    owner: _sql.query(
        "summary", _SummaryRow, **HISTORIES[owner], **HOLDINGS[owner], utxo_bucket=OUTPUTS[owner]["utxo_bucket"]
    )
    for owner in _KEYS
}
_summaries["credential"] = _sql.query("summary_of_credential", _SummaryRow)
holdings_pages: dict[tuple[OwnerKind, str], sql.Query[_HoldingRow]] = {
    (owner, order): _sql.query("holdings", _HoldingRow, **_KEYS[owner], **HOLDINGS[owner], **AFTER[order])
    for owner in _KEYS
    for order in AFTER
}
holdings_pages |= {
    ("credential", order): _sql.query("holdings_of_credential", _HoldingRow, **AFTER[order]) for order in AFTER
}

ListT = TypeVar("ListT", bound=HoldingList)


def parse_address(text: str, network: Network) -> bytes:
    """The raw bytes of a caller's payment address. Raises Refusal."""
    try:
        return address.parse(text, network)
    except address.ForeignAddress as cause:
        raise errors.foreign_address() from cause
    except address.InvalidAddress as cause:
        raise errors.invalid_address() from cause


def parse_stake(text: str, network: Network) -> bytes:
    """The reward account of a caller's stake address, 29 bytes. Raises Refusal."""
    try:
        return address.parse_stake(text, network)
    except address.ForeignAddress as cause:
        raise errors.foreign_stake_address() from cause
    except address.InvalidAddress as cause:
        raise errors.invalid_stake_address() from cause


async def summary(db: Connection, owner: OwnerKind, raw: bytes, network: Network) -> tuple[OwnerSummary, Tip]:
    """The summary of an owner, all zeros if it was never used, and the tip. Raises Refusal."""
    row = await _summaries[owner].one(db, raw)
    if row is None:
        raise errors.network_not_available()
    totals = OwnerSummary(
        lovelace=row.lovelace,
        utxo_count=row.utxo_count,
        asset_count=row.asset_count,
        transaction_count=row.transaction_count,
        first_transaction=position(row.first_tx_id, row.first_hash, network),
        last_transaction=position(row.last_tx_id, row.last_hash, network),
    )
    return totals, Tip(row.tip_slot_no, row.tip_hash)


def position(tx_id: int | None, tx_hash: bytes | None, network: Network) -> Position | None:
    """The position of a transaction by its number; None without a transaction."""
    if tx_id is None or tx_hash is None:
        return None
    return Position(tx_hash.hex(), slot_of(tx_id), network.slot_time(slot_of(tx_id)))


def paging(asked: ListQuestion, rows: Sequence[object], cursor: Callable[[], str]) -> PlacePaging:
    """The position of a page, given its rows and the one beyond it; `cursor` is the place of its last entry."""
    if len(rows) <= asked.limit:
        return PlacePaging(asked.limit, asked.offset, has_more=False)
    return PlacePaging(asked.limit, asked.offset, has_more=True, next_cursor=cursor())


def show_place(tx_id: int, number: int) -> str:
    """The cursor of an entry of a list in the order of the chain."""
    return f"{tx_id}.{number}"


def start_after(cursor: Place | None, order: str) -> tuple[int | None, int | None]:
    """The place at which a statement with FROM_PLACE continues after a cursor; nulls without one."""
    if cursor is None:
        return None, None
    return cursor.tx_id, cursor.number + (order == "asc")


def wrong_cursor() -> errors.Refusal:
    """The error for a cursor that names something unknown to the index."""
    return errors.invalid_parameter(f"cursor must be {_CURSOR}")


async def holdings(ask: ChainAsk[ListT], owner: OwnerKind, raw: bytes) -> ChainPage[Holding, PlacePaging]:
    """A page of the assets of an owner."""
    asked = ask.question
    query = holdings_pages[owner, asked.order]
    after = (None, None) if asked.cursor is None else (asked.cursor.policy_id, asked.cursor.asset_name)
    async with ask.connection() as db:

        async def read() -> ChainPage[Holding, PlacePaging]:
            rows = await query.all(db, raw, asked.limit, asked.offset, *after)
            tip = tip_of(rows)
            if not rows[0].placed:
                raise wrong_cursor()
            quantities = {row.asset_no: row.quantity for row in rows[: asked.limit] if row.asset_no is not None}
            shown = await names.resolve(db, rows[0].numbering, (), quantities)
            data = [_holding(shown.assets[asset_no], quantity) for asset_no, quantity in quantities.items()]
            return ChainPage(
                data=data,
                pagination=paging(asked, rows, lambda: f"{data[-1].policy_id}.{data[-1].asset_name}"),
                last_updated=tip.last_updated(ask.network),
            )

        return await names.until_consistent(read)


def _holding(asset: names.AssetName, quantity: str) -> Holding:
    name = bytes.fromhex(asset.name)
    return Holding(
        asset.policy_id,
        asset.name,
        text_of(name),
        fingerprint(bytes.fromhex(asset.policy_id), name),
        quantity,
    )
