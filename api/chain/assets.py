"""Native assets: one in full, those of a policy, who holds them, and how they moved."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal, TypeVar

import msgspec

from api import errors
from api.answers import Answer, ChainPage, Instant, MorePaging, Paging
from api.ask import ChainAsk
from api.chain.tip import Tip
from api.parameters import Choice, Hex, Integer, JsonSchema, Kind, Offset, Order, Question
from shared import address, metadata, packed, sql
from shared.ledger import fingerprint, slot_of
from shared.metadata import Metadata

_POLICY_BYTES = 28
_CACHED_ADDRESSES = 16_384
_ASSET = re.compile(r"([0-9a-fA-F]{56})\.((?:[0-9a-fA-F]{2}){0,32})")

Source = Literal["cip68", "cip25", "registry"]


class AssetId(msgspec.Struct, frozen=True):
    """An asset by its policy's hash and its name."""

    policy_id: bytes
    asset_name: bytes


class AssetKind(Kind[AssetId]):
    """`<policy_id>.<asset_name>` in hex digits of either case; the name may be empty, the dot may not be missing."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": r"^[0-9a-fA-F]{56}\.([0-9a-fA-F]{2}){0,32}$"}
        super().__init__("an asset", schema, errors.invalid_asset().message)

    def of_text(self, text: str) -> AssetId:
        found = _ASSET.fullmatch(text)
        if found is None:
            raise ValueError(text)
        return AssetId(bytes.fromhex(found[1]), bytes.fromhex(found[2]))


class OfAsset(Question, frozen=True, kw_only=True):
    """Which asset, and whose word on it counts."""

    asset: Annotated[AssetId, AssetKind()]
    metadata_source: Annotated[
        Literal["auto", "cip68", "cip25", "registry"], Choice("auto", "cip68", "cip25", "registry")
    ] = "auto"


class _Part(Question, frozen=True, kw_only=True):
    limit: Annotated[int, Integer(1, 500)] = 100
    offset: Offset = 0
    order: Order = "desc"


class AssetPart(_Part, frozen=True, kw_only=True):
    """Which part of a list of an asset, and from which end."""

    asset: Annotated[AssetId, AssetKind()]


class PolicyPart(_Part, frozen=True, kw_only=True):
    """Which part of a list of a policy, and from which end."""

    policy: Annotated[bytes, Hex(_POLICY_BYTES, errors.invalid_policy_id().message)] = msgspec.field(name="policyId")


class PolicyAsset(msgspec.Struct, frozen=True):
    """An asset of a policy. `asset_name_ascii` is the UTF-8 text of the name, null where it is none."""

    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: str
    mint_count: int
    burn_count: int


class Asset(msgspec.Struct, frozen=True):
    """An asset and what is said of it.

    `total_supply` is what was minted less what was burned; `mint_count` and `burn_count` count transactions. The first
    mint is null where it lies before the first indexed block.
    """

    policy_id: str
    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: str
    mint_count: int
    burn_count: int
    first_mint_tx: str | None
    first_mint_slot: int | None
    first_mint_time: Instant | None
    metadata: Metadata | None
    metadata_source: Source | None


class Holder(msgspec.Struct, frozen=True):
    """How much lies in the unspent outputs of an address."""

    address: str
    stake_address: str | None
    quantity: str


class AssetTransaction(msgspec.Struct, frozen=True):
    """A transaction with the asset in its outputs, and how much of it in all of them."""

    tx_hash: str
    block_hash: str
    block_no: int
    slot_no: int
    block_time: Instant
    quantity: str


class Mint(msgspec.Struct, frozen=True):
    """What a transaction minted of an asset or, below zero, burned."""

    tx_hash: str
    block_no: int
    slot_no: int
    block_time: Instant
    quantity: str


class _AssetRow(msgspec.Struct, frozen=True):
    supply: str | None  # null where there is no such asset, and so is all the rest
    mint_count: int
    burn_count: int
    first_mint_tx_id: int | None
    first_mint_hash: bytes | None
    named_extra: bytes | None
    datum: bytes | None


class _PageRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes


class _PolicyAssetRow(_PageRow, frozen=True):
    total: int
    name: bytes | None  # null in a row that stands for an empty page, and so is the rest
    supply: str
    mint_count: int
    burn_count: int


class _HolderRow(_PageRow, frozen=True):
    known: bool
    raw: bytes | None  # null in a row that stands for an empty page
    quantity: str


class _MovementRow(_PageRow, frozen=True):
    known: bool
    total: int
    tx_hash: bytes | None  # null in a row that stands for an empty page, and so is the rest
    block_hash: bytes
    block_no: int
    slot_no: int
    quantity: str


_asset = sql.query("asset", _AssetRow)
policy_assets_of = {
    "desc": sql.query("policy_assets_desc", _PolicyAssetRow),
    "asc": sql.query("policy_assets_asc", _PolicyAssetRow),
}
holders_of = {"desc": sql.query("holders_desc", _HolderRow), "asc": sql.query("holders_asc", _HolderRow)}
policy_holders_of = {
    "desc": sql.query("policy_holders_desc", _HolderRow),
    "asc": sql.query("policy_holders_asc", _HolderRow),
}
_transactions = sql.query("transactions", _MovementRow)
_mints = sql.query("mints", _MovementRow)


async def info(ask: ChainAsk[OfAsset]) -> Answer[Asset]:
    """Read an asset.

    With `metadata_source=auto` the first source that describes it counts, in the order cip68, cip25, registry; any
    other value asks that source alone.
    """
    asked = ask.question.asset
    reference_name = metadata.reference_name(asked.asset_name)
    async with ask.connection() as db:
        row = await _asset.one(db, asked.policy_id, asked.asset_name, reference_name)
    if row is None:
        raise errors.network_not_available()
    if row.supply is None:
        raise errors.asset_not_found()
    described, source = await _describe(ask, row)
    first_slot = None if row.first_mint_tx_id is None else slot_of(row.first_mint_tx_id)
    return Answer(
        data=Asset(
            policy_id=asked.policy_id.hex(),
            asset_name=asked.asset_name.hex(),
            asset_name_ascii=_text(asked.asset_name),
            fingerprint=fingerprint(asked.policy_id, asked.asset_name),
            total_supply=row.supply,
            mint_count=row.mint_count,
            burn_count=row.burn_count,
            first_mint_tx=None if row.first_mint_hash is None else row.first_mint_hash.hex(),
            first_mint_slot=first_slot,
            first_mint_time=None if first_slot is None else ask.network.slot_time(first_slot),
            metadata=described,
            metadata_source=source,
        )
    )


async def of_policy(ask: ChainAsk[PolicyPart]) -> ChainPage[PolicyAsset, Paging]:
    """List the assets of a policy by supply, burned ones included; those of equal supply by name."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_assets_of[asked.order].all(db, asked.policy, asked.limit, asked.offset)
    tip = _tip(rows)
    total = rows[0].total
    return ChainPage(
        data=[
            PolicyAsset(
                row.name.hex(),
                _text(row.name),
                fingerprint(asked.policy, row.name),
                row.supply,
                row.mint_count,
                row.burn_count,
            )
            for row in rows
            if row.name is not None
        ],
        pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
        last_updated=tip.last_updated(ask.network),
    )


async def policy_holders(ask: ChainAsk[PolicyPart]) -> ChainPage[Holder, MorePaging]:
    """List who holds assets of a policy, by how much of all of them together."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_holders_of[asked.order].all(db, asked.policy, asked.limit, asked.offset)
    return _holder_page(ask, rows)


async def holders(ask: ChainAsk[AssetPart]) -> ChainPage[Holder, MorePaging]:
    """List who holds an asset, by how much."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await holders_of[asked.order].all(
            db, asked.asset.policy_id, asked.asset.asset_name, asked.limit, asked.offset
        )
    return _holder_page(ask, rows)


async def transactions(ask: ChainAsk[AssetPart]) -> ChainPage[AssetTransaction, MorePaging]:
    """List the transactions with an asset in at least one output."""
    asked = ask.question
    rows = await _movements(ask, _transactions)
    return ChainPage(
        data=[
            AssetTransaction(
                _hash(row),
                row.block_hash.hex(),
                row.block_no,
                row.slot_no,
                ask.network.slot_time(row.slot_no),
                row.quantity,
            )
            for row in _in_order(rows, asked)
        ],
        pagination=MorePaging(asked.limit, asked.offset, has_more=asked.offset + asked.limit < rows[0].total),
        last_updated=_tip(rows).last_updated(ask.network),
    )


async def mints(ask: ChainAsk[AssetPart]) -> ChainPage[Mint, Paging]:
    """List what was minted and burned of an asset, one net quantity per transaction."""
    asked = ask.question
    rows = await _movements(ask, _mints)
    total = rows[0].total
    return ChainPage(
        data=[
            Mint(_hash(row), row.block_no, row.slot_no, ask.network.slot_time(row.slot_no), row.quantity)
            for row in _in_order(rows, asked)
        ],
        pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
        last_updated=_tip(rows).last_updated(ask.network),
    )


async def _describe(ask: ChainAsk[OfAsset], row: _AssetRow) -> tuple[Metadata | None, Source | None]:
    """What is said of an asset, and by which source."""
    asked, wanted = ask.question.asset, ask.question.metadata_source
    found: Metadata | None = None
    if wanted in ("auto", "cip68") and row.datum is not None:
        found = metadata.of_datum(row.datum, asked.policy_id, asked.asset_name)
        if found is not None:
            return found, "cip68"
    if wanted in ("auto", "cip25") and row.named_extra is not None:
        found = metadata.of_transaction(packed.unpack_extra(row.named_extra), asked.policy_id, asked.asset_name)
        if found is not None:
            return found, "cip25"
    if wanted in ("auto", "registry"):
        found = await ask.services.registry.metadata(asked.policy_id + asked.asset_name)
    return found, None if found is None else "registry"


def _holder_page(
    ask: ChainAsk[AssetPart] | ChainAsk[PolicyPart], rows: Sequence[_HolderRow]
) -> ChainPage[Holder, MorePaging]:
    asked = ask.question
    tip = _tip(rows)
    if not rows[0].known:
        raise errors.asset_not_found()
    return ChainPage(
        data=[Holder(*_show_address(row.raw), row.quantity) for row in rows[: asked.limit] if row.raw is not None],
        pagination=MorePaging(asked.limit, asked.offset, has_more=len(rows) > asked.limit),
        last_updated=tip.last_updated(ask.network),
    )


async def _movements(ask: ChainAsk[AssetPart], query: sql.Query[_MovementRow]) -> list[_MovementRow]:
    """A page of a history of an asset, oldest first; one row without a transaction where it is empty."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await query.all(
            db, asked.asset.policy_id, asked.asset.asset_name, asked.limit, asked.offset, asked.order == "desc"
        )
    if not rows:
        raise errors.network_not_available()
    if not rows[0].known:
        raise errors.asset_not_found()
    return rows


def _in_order(rows: list[_MovementRow], asked: AssetPart) -> list[_MovementRow]:
    """The rows of a page that is not empty, in the order asked for."""
    found = [row for row in rows if row.tx_hash is not None]
    return found[::-1] if asked.order == "desc" else found


def _hash(row: _MovementRow) -> str:
    assert row.tx_hash is not None, "the row of an empty page stands for no transaction"
    return row.tx_hash.hex()


_RowT = TypeVar("_RowT", bound=_PageRow)


def _tip(rows: Sequence[_RowT]) -> Tip:
    """The tip of the rows' snapshot. Raises Refusal 503 where the network is not served."""
    if not rows:
        raise errors.network_not_available()
    return Tip(rows[0].tip_slot_no, rows[0].tip_hash)


@lru_cache(_CACHED_ADDRESSES)
def _show_address(raw: bytes) -> tuple[str, str | None]:
    return address.show(raw), address.stake_address(raw)


def _text(name: bytes) -> str | None:
    """A name as UTF-8 text, None where it is none."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
