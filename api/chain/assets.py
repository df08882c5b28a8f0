"""Native assets: one asset, the assets of a policy, holders, transactions and mints."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from api import errors
from api.answers import Answer, ChainPage, Digits, Instant, MorePaging, Paging
from api.ask import ChainAsk
from api.chain.tip import Tip
from api.parameters import Choice, Hex, Integer, JsonSchema, Kind, Offset, Order, Question
from shared import address, metadata, packed, sql
from shared.ledger import (
    FINGERPRINT_START,
    HASH28_BYTES,
    fingerprint,
    fingerprint_digest,
    fingerprint_number,
    fingerprints,
    is_like_fingerprint,
    parse_fingerprint,
    slot_of,
)
from shared.metadata import Metadata
from shared.network import Network

_CACHED_ADDRESSES = 16_384
_POLICY_DIGITS = 2 * HASH28_BYTES
# The dot may be left out before a name. Without dot and name it is a policy id, and probably a mistake.
_ASSET_PATTERN = rf"([0-9a-fA-F]{{{_POLICY_DIGITS}}})(\.|(?=.))(([0-9a-fA-F]{{2}}){{0,32}})"
_FINGERPRINT_PATTERN = "asset1[02-9ac-hj-np-z]{38}|ASSET1[02-9AC-HJ-NP-Z]{38}"

Source = Literal["cip68", "cip25", "registry"]
_REGISTRY_FAILED = 'source_failed;source="registry"'


class AssetId(msgspec.Struct, frozen=True):
    """A policy id and an asset name."""

    policy_id: bytes
    asset_name: bytes


class Fingerprint(msgspec.Struct, frozen=True):
    """The digest in the fingerprint of an asset (CIP-14), 20 bytes."""

    digest: bytes


class AssetKind(Kind[AssetId | Fingerprint]):
    """`<policy_id>.<asset_name>` in hex, upper or lower case, or a fingerprint.

    The name may be empty; only then is the dot required.
    """

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^({_ASSET_PATTERN}|{_FINGERPRINT_PATTERN})$"}
        super().__init__("an asset", schema, errors.invalid_asset)

    def of_text(self, text: str) -> AssetId | Fingerprint:
        found = re.fullmatch(_ASSET_PATTERN, text)
        if found is not None:
            return AssetId(bytes.fromhex(found[1]), bytes.fromhex(found[3]))
        if re.fullmatch(rf"[0-9a-fA-F]{{{_POLICY_DIGITS}}}", text):
            raise errors.asset_without_dot()
        if not is_like_fingerprint(text):
            raise ValueError(text)
        try:
            return Fingerprint(parse_fingerprint(text))
        except ValueError as wrong:
            raise errors.invalid_fingerprint(str(wrong)) from wrong


class PolicyKind(Hex):
    """A policy id in hex. A fingerprint is refused by name, as it can't tell its policy."""

    def __init__(self) -> None:
        super().__init__(HASH28_BYTES, errors.invalid_policy_id)

    def of_text(self, text: str) -> bytes:
        if text.lower().startswith(FINGERPRINT_START):
            raise errors.fingerprint_of_no_policy()
        return super().of_text(text)


class InfoQuestion(Question, frozen=True, kw_only=True):
    """An asset, and the source of its metadata."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]
    metadata_source: Annotated[
        Literal["auto", "cip68", "cip25", "registry"], Choice("auto", "cip68", "cip25", "registry")
    ] = "auto"


class _ListQuestion(Question, frozen=True, kw_only=True):
    limit: Annotated[int, Integer(1, 500)] = 100
    offset: Offset = 0
    order: Order = "desc"


class AssetListQuestion(_ListQuestion, frozen=True, kw_only=True):
    """A page of a list about an asset."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]


class PolicyListQuestion(_ListQuestion, frozen=True, kw_only=True):
    """A page of a list about a policy."""

    policy: Annotated[bytes, PolicyKind()] = msgspec.field(name="policyId")


class PolicyAsset(msgspec.Struct, frozen=True):
    """An asset of a policy. `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8."""

    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: Digits
    mint_count: int
    burn_count: int


class Asset(msgspec.Struct, frozen=True):
    """An asset with its metadata.

    `total_supply` is the quantity minted minus the quantity burned. `mint_count` and `burn_count` count transactions.
    The first mint is null if it precedes the first indexed block.
    """

    policy_id: str
    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: Digits
    mint_count: int
    burn_count: int
    first_mint_tx: str | None
    first_mint_slot: int | None
    first_mint_time: Instant | None
    metadata: Metadata | None
    metadata_source: Source | None


class Holder(msgspec.Struct, frozen=True):
    """An address and the quantity in its unspent outputs."""

    address: str
    stake_address: str | None
    quantity: Digits


class AssetTransaction(msgspec.Struct, frozen=True):
    """A transaction with the asset in its outputs, and the total quantity there."""

    tx_hash: str
    block_hash: str
    block_no: int
    slot_no: int
    block_time: Instant
    quantity: Digits


class Mint(msgspec.Struct, frozen=True):
    """The quantity of an asset that a transaction minted; negative if burned."""

    tx_hash: str
    block_no: int
    slot_no: int
    block_time: Instant
    quantity: Digits


class _AssetRow(msgspec.Struct, frozen=True):
    supply: str | None  # null, like everything else, if there is no such asset
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
    name: bytes | None  # null, like everything below, in the row of an empty page
    supply: str
    mint_count: int
    burn_count: int


class _HolderRow(_PageRow, frozen=True):
    known: bool
    raw: bytes | None  # null in the row of an empty page
    quantity: str


class _MovementRow(_PageRow, frozen=True):
    known: bool
    total: int
    tx_hash: bytes | None  # null, like everything below, in the row of an empty page
    block_hash: bytes
    block_no: int
    slot_no: int
    quantity: str


class _NamedRow(msgspec.Struct, frozen=True):
    policy_id: bytes | None  # null, like the name, if no asset has the number
    asset_name: bytes


_sql = sql.beside(__file__)
_asset = _sql.query("asset", _AssetRow)
_by_fingerprint = _sql.query("by_fingerprint", _NamedRow)
_ASCENDING = {"order": "ASC", "compare": ">=", "edge": "'-Infinity'", "lag": "", "over": ""}
_DESCENDING = {"order": "DESC", "compare": "<", "edge": "'Infinity'", "lag": "lag", "over": "OVER in_order"}
_OF_ASSET = {
    "holder": "holder",
    "held_no": "asset_no",
    "asked": "policy JOIN asset USING (policy_no) WHERE policy_id = $3 AND name = $4 AND first_tx_id IS NOT NULL",
    "exists": "asked.asset_no IS NOT NULL",
}
_OF_POLICY = {
    "holder": "policy_holder",
    "held_no": "policy_no",
    "asked": "policy WHERE policy_id = $3",
    "exists": "true",
}

# Pages by `order`. Assets are sorted by -supply, so their directions are reversed.
policy_assets_pages = {
    "desc": _sql.query("policy_assets", _PolicyAssetRow, **_ASCENDING),
    "asc": _sql.query("policy_assets", _PolicyAssetRow, **_DESCENDING),
}
holders_pages = {
    "desc": _sql.query("holders", _HolderRow, **_OF_ASSET, **_DESCENDING),
    "asc": _sql.query("holders", _HolderRow, **_OF_ASSET, **_ASCENDING),
}
policy_holders_pages = {
    "desc": _sql.query("holders", _HolderRow, **_OF_POLICY, **_DESCENDING),
    "asc": _sql.query("holders", _HolderRow, **_OF_POLICY, **_ASCENDING),
}
_transactions = _sql.query(
    "history", _MovementRow, history="asset_tx", last="chunk", length="(chunk << 6) + length(entries) / 18"
)
_mints = _sql.query("history", _MovementRow, history="mint", last="seq", length="seq + 1")


async def info(ask: ChainAsk[InfoQuestion]) -> Answer[Asset]:
    """Get an asset.

    With `metadata_source=auto`, metadata comes from the first source that has any, in the order cip68, cip25, registry.
    Any other value reads that source only. If the registry does not answer, the header `Metadata-Warning` says so, and
    `metadata` is what the registry said within the last day, or null.
    """
    asked = await _asset_of(ask)
    reference_name = metadata.reference_name(asked.asset_name)
    async with ask.connection() as db:
        row = await _asset.one(db, asked.policy_id, asked.asset_name, reference_name)
    if row is None:
        raise errors.network_not_available()
    if row.supply is None:
        raise errors.asset_not_found()
    described, source = await _describe(ask, asked, row)
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


async def of_policy(ask: ChainAsk[PolicyListQuestion]) -> ChainPage[PolicyAsset, Paging]:
    """List the assets of a policy by supply, including burned ones. Ties are ordered by name."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_assets_pages[asked.order].all(db, asked.policy, asked.limit, asked.offset)
    tip = _tip(rows)
    total = rows[0].total
    names = [row.name for row in rows if row.name is not None]
    return ChainPage(
        data=[
            PolicyAsset(name.hex(), _text(name), shown, row.supply, row.mint_count, row.burn_count)
            for name, shown, row in zip(names, fingerprints(asked.policy, names), rows, strict=False)
        ],
        pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
        last_updated=tip.last_updated(ask.network),
    )


async def policy_holders(ask: ChainAsk[PolicyListQuestion]) -> ChainPage[Holder, MorePaging]:
    """List holders of a policy by total quantity."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_holders_pages[asked.order].all(db, asked.limit, asked.offset, asked.policy)
    return _holder_page(ask, rows)


async def holders(ask: ChainAsk[AssetListQuestion]) -> ChainPage[Holder, MorePaging]:
    """List holders of an asset by quantity."""
    asked, asset = ask.question, await _asset_of(ask)
    async with ask.connection() as db:
        rows = await holders_pages[asked.order].all(db, asked.limit, asked.offset, asset.policy_id, asset.asset_name)
    return _holder_page(ask, rows)


async def transactions(ask: ChainAsk[AssetListQuestion]) -> ChainPage[AssetTransaction, MorePaging]:
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


async def mints(ask: ChainAsk[AssetListQuestion]) -> ChainPage[Mint, Paging]:
    """List mints and burns of an asset, with one net quantity per transaction."""
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


async def _asset_of(ask: ChainAsk[InfoQuestion] | ChainAsk[AssetListQuestion]) -> AssetId:
    """The asset of a question.

    NOTE: a look-up by fingerprint needs no snapshot with the answer: policy and name of a number never change.
    """
    named = ask.question.asset
    if isinstance(named, AssetId):
        return named
    async with ask.connection() as db:
        rows = await _by_fingerprint.all(db, fingerprint_number(named.digest))
    if not rows:
        raise errors.network_not_available()
    for row in rows:
        if row.policy_id is not None and fingerprint_digest(row.policy_id + row.asset_name) == named.digest:
            return AssetId(row.policy_id, row.asset_name)
    raise errors.asset_not_found()


async def _describe(
    ask: ChainAsk[InfoQuestion], asked: AssetId, row: _AssetRow
) -> tuple[Metadata | None, Source | None]:
    """The metadata of an asset, and its source."""
    wanted = ask.question.metadata_source
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
        result = await ask.services.registry.look_up(asked.policy_id + asked.asset_name)
        found, ask.notes.metadata_warning = result.metadata, _REGISTRY_FAILED if result.failed else None
    return found, None if found is None else "registry"


def _holder_page(
    ask: ChainAsk[AssetListQuestion] | ChainAsk[PolicyListQuestion], rows: Sequence[_HolderRow]
) -> ChainPage[Holder, MorePaging]:
    asked = ask.question
    tip = _tip(rows)
    if not rows[0].known:
        raise errors.asset_not_found()
    raws = [row.raw for row in rows[: asked.limit] if row.raw is not None]
    return ChainPage(
        data=[Holder(*shown, row.quantity) for shown, row in zip(_show_holders(raws, ask.network), rows, strict=False)],
        pagination=MorePaging(asked.limit, asked.offset, has_more=len(rows) > asked.limit),
        last_updated=tip.last_updated(ask.network),
    )


async def _movements(ask: ChainAsk[AssetListQuestion], query: sql.Query[_MovementRow]) -> list[_MovementRow]:
    """A page of a history of an asset, oldest first. An empty page is one row without a transaction."""
    asked, asset = ask.question, await _asset_of(ask)
    newest_first = asked.order == "desc"
    async with ask.connection() as db:
        rows = await query.all(db, asset.policy_id, asset.asset_name, asked.limit, asked.offset, newest_first)
    if not rows:
        raise errors.network_not_available()
    if not rows[0].known:
        raise errors.asset_not_found()
    return rows


def _in_order(rows: list[_MovementRow], asked: AssetListQuestion) -> list[_MovementRow]:
    """The transactions of a page, in the order requested."""
    found = [row for row in rows if row.tx_hash is not None]
    return found[::-1] if asked.order == "desc" else found


def _hash(row: _MovementRow) -> str:
    assert row.tx_hash is not None, "the row of an empty page has no transaction"
    return row.tx_hash.hex()


_RowT = TypeVar("_RowT", bound=_PageRow)


def _tip(rows: Sequence[_RowT]) -> Tip:
    """The tip in the snapshot of the rows. Raises Refusal 503 if the network is not served."""
    if not rows:
        raise errors.network_not_available()
    return Tip(rows[0].tip_slot_no, rows[0].tip_hash)


def _show_holders(raws: Sequence[bytes], network: Network) -> list[tuple[str, str | None]]:
    """Addresses as text, each with its stake address. Recently shown addresses are cached."""
    unknown = [raw for raw in raws if raw not in _shown]
    if unknown:
        if len(_shown) + len(unknown) > _CACHED_ADDRESSES:
            _shown.clear()
            unknown = list(raws)
        accounts = {raw: account for raw in unknown if (account := address.stake_of(raw)) is not None}
        stakes = dict(zip(accounts, address.show_stakes(list(accounts.values()), network), strict=True))
        _shown.update(
            (raw, (text, stakes.get(raw))) for raw, text in zip(unknown, address.show_all(unknown), strict=True)
        )
    return [_shown[raw] for raw in raws]


_shown: dict[bytes, tuple[str, str | None]] = {}


def _text(name: bytes) -> str | None:
    """A name as UTF-8 text, None if it is not valid UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
