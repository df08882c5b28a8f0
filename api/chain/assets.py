"""Native assets: one asset, the assets of a policy, holders, transactions and mints."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec

from api import errors
from api.answers import Answer, ChainPage, Digits, Instant, MorePaging, Paging
from api.ask import ChainAsk
from api.chain.tip import ListRow
from api.chain.tip import of_rows as tip_of
from api.parameters import Choice, Hex, JsonSchema, Kind, ListQuestion, Question
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
from shared.sql import Connection

_CACHED_ADDRESSES = 16_384
_POLICY_DIGITS = 2 * HASH28_BYTES
# The dot may be omitted before a name. Text without dot and name is a policy id, and probably a mistake.
ASSET_PATTERN = rf"([0-9a-fA-F]{{{_POLICY_DIGITS}}})(\.|(?=.))(([0-9a-fA-F]{{2}}){{0,32}})"
_FINGERPRINT_PATTERN = "asset1[02-9ac-hj-np-z]{38}|ASSET1[02-9AC-HJ-NP-Z]{38}"

Source = Literal["cip68", "cip25", "registry"]
REGISTRY_FAILED = 'source_failed;source="registry"'
"""The header `Metadata-Warning` if the registry did not answer."""


class ShownMetadata(NamedTuple):
    """The metadata of an asset and where it is from; None twice if there is none."""

    value: Metadata | None
    source: Source | None


class AssetId(msgspec.Struct, frozen=True):
    """A policy id and an asset name."""

    policy_id: bytes
    asset_name: bytes


def parse_id(text: str) -> AssetId | None:
    """An asset as `<policy_id>.<asset_name>` in hex; None if the text has another form."""
    match = re.fullmatch(ASSET_PATTERN, text)
    if match is None:
        return None
    policy_id, _, asset_name, _ = match.groups()
    return AssetId(bytes.fromhex(policy_id), bytes.fromhex(asset_name))


class Fingerprint(msgspec.Struct, frozen=True):
    """The digest in the fingerprint of an asset (CIP-14), 20 bytes."""

    digest: bytes


class AssetKind(Kind[AssetId | Fingerprint]):
    """`<policy_id>.<asset_name>` in hex, upper or lower case, or a fingerprint.

    The name may be empty; only then is the dot required.
    """

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^({ASSET_PATTERN}|{_FINGERPRINT_PATTERN})$"}
        super().__init__("an asset", schema, errors.invalid_asset)

    def of_text(self, text: str) -> AssetId | Fingerprint:
        asset = parse_id(text)
        if asset is not None:
            return asset
        if re.fullmatch(rf"[0-9a-fA-F]{{{_POLICY_DIGITS}}}", text):
            raise errors.asset_without_dot()
        if not is_like_fingerprint(text):
            raise ValueError(text)
        try:
            return Fingerprint(parse_fingerprint(text))
        except ValueError as wrong:
            raise errors.invalid_fingerprint(str(wrong)) from wrong


class PolicyKind(Hex):
    """A policy id in hex. A fingerprint has its own refusal: the policy id can't be derived from it."""

    def __init__(self) -> None:
        super().__init__(HASH28_BYTES, errors.invalid_policy_id)

    def of_text(self, text: str) -> bytes:
        if text.lower().startswith(FINGERPRINT_START):
            raise errors.fingerprint_instead_of_policy_id()
        return super().of_text(text)


class InfoQuestion(Question, frozen=True, kw_only=True):
    """An asset, and the source of its metadata."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]
    metadata_source: Annotated[
        Literal["auto", "cip68", "cip25", "registry"], Choice("auto", "cip68", "cip25", "registry")
    ] = "auto"


class AssetListQuestion(ListQuestion, frozen=True, kw_only=True):
    """A page of a list about an asset."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]


class PolicyListQuestion(ListQuestion, frozen=True, kw_only=True):
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


class AccountHolder(msgspec.Struct, frozen=True):
    """A stake account, or an address that belongs to none, and the quantity in its unspent outputs.

    One of `stake_address` and `address` is null.
    """

    stake_address: str | None
    address: str | None
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


class _PolicyAssetRow(ListRow, frozen=True):
    total: int
    name: bytes | None  # null, like everything below, in the row of an empty page
    supply: str
    mint_count: int
    burn_count: int


class _HolderRow(ListRow, frozen=True):
    known: bool
    raw: bytes | None  # null in the row of an empty page
    quantity: str


class HolderEntry(msgspec.Struct, frozen=True):
    """The bytes of an address or a reward account, and a quantity."""

    raw: bytes
    quantity: str


class _MovementRow(ListRow, frozen=True):
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
    "held_no": "asset_no",
    "asked": "policy JOIN asset USING (policy_no) WHERE policy_id = $3 AND name = $4 AND first_tx_id IS NOT NULL",
    "exists": "asked.asset_no IS NOT NULL",
}
_OF_POLICY = {
    "held_no": "policy_no",
    "asked": "policy WHERE policy_id = $3",
    "exists": "true",
}

# Pages by `order`. Assets are sorted by -supply, so their directions are reversed.
policy_assets_pages = {
    "desc": _sql.query("policy_assets", _PolicyAssetRow, **_ASCENDING),
    "asc": _sql.query("policy_assets", _PolicyAssetRow, **_DESCENDING),
}
_ADDRESSES = {
    "owner_no": "address_no",
    "raw": "(SELECT raw FROM address WHERE address.address_no = page.address_no)",
}
_ACCOUNTS = {
    "owner_no": "account_no",
    "raw": "CASE WHEN page.account_no > 0 THEN (SELECT raw FROM stake WHERE stake_no = page.account_no)"
    " ELSE (SELECT raw FROM address WHERE address_no = -page.account_no) END",
}
_ALL_OF_ASSET = {
    "held_no": "asset_no",
    "asked": "policy JOIN asset USING (policy_no) WHERE policy_id = $1 AND name = $2",
}
_ALL_OF_POLICY = {"held_no": "policy_no", "asked": "policy WHERE policy_id = $1"}
_BY_QUANTITY = {"desc": _DESCENDING, "asc": _ASCENDING}


def _all_holders(holder: str, owner: Mapping[str, str], held: Mapping[str, str]) -> sql.Query[HolderEntry]:
    return _sql.query("all_holders", HolderEntry, holder=holder, **owner, **held)


def _holders_pages(holder: str, owner: Mapping[str, str], held: Mapping[str, str]) -> dict[str, sql.Query[_HolderRow]]:
    return {
        order: _sql.query("holders", _HolderRow, holder=holder, **owner, **held, **direction)
        for order, direction in _BY_QUANTITY.items()
    }


holders_pages = _holders_pages("holder", _ADDRESSES, _OF_ASSET)
policy_holders_pages = _holders_pages("policy_holder", _ADDRESSES, _OF_POLICY)
account_holders_pages = _holders_pages("account_holder", _ACCOUNTS, _OF_ASSET)
policy_account_holders_pages = _holders_pages("policy_account_holder", _ACCOUNTS, _OF_POLICY)
all_holders = _all_holders("holder", _ADDRESSES, _ALL_OF_ASSET)
all_policy_holders = _all_holders("policy_holder", _ADDRESSES, _ALL_OF_POLICY)
all_account_holders = _all_holders("account_holder", _ACCOUNTS, _ALL_OF_ASSET)
all_policy_account_holders = _all_holders("policy_account_holder", _ACCOUNTS, _ALL_OF_POLICY)
_transactions = _sql.query(
    "history", _MovementRow, history="asset_tx", last="chunk", length="(chunk << 6) + length(entries) / 18"
)
_mints = _sql.query("history", _MovementRow, history="mint", last="seq", length="seq + 1")


async def get_asset(ask: ChainAsk[InfoQuestion]) -> Answer[Asset]:
    """Get an asset.

    With `metadata_source=auto`, metadata comes from the first source that has any, in the order cip68, cip25, registry.
    Any other value reads only that source. If the registry does not answer, the header `Metadata-Warning` says so, and
    `metadata` is the registry's last valid answer if it is less than a day old, else null.
    """
    asked = await asset_of(ask, ask.question.asset)
    reference_name = metadata.reference_name(asked.asset_name)
    async with ask.connection() as db:
        row = await _asset.one(db, asked.policy_id, asked.asset_name, reference_name)
    if row is None:
        raise errors.network_not_available()
    if row.supply is None:
        raise errors.asset_not_found()
    return Answer(data=_asset_in(row, asked, await _describe(ask, asked, row), ask.network))


async def read(db: Connection, asset: AssetId, network: Network) -> Asset | None:
    """An asset with its metadata on the chain, in a snapshot; None if it does not exist. Raises Refusal 503."""
    row = await _asset.one(db, asset.policy_id, asset.asset_name, metadata.reference_name(asset.asset_name))
    if row is None:
        raise errors.network_not_available()
    if row.supply is None:
        return None
    return _asset_in(row, asset, _on_chain(asset, row, "auto"), network)


async def described(db: Connection, asset: AssetId) -> tuple[bytes | None, metadata.Described | None]:
    """The present datum of an asset's reference token (CIP-68), and the CIP-25 metadata of the last transaction that
    minted and described it, in a snapshot. Either is None if there is none.
    """
    row = await _asset.one(db, asset.policy_id, asset.asset_name, metadata.reference_name(asset.asset_name))
    if row is None:
        return None, None
    cip25 = None if row.named_extra is None else metadata.Described(packed.unpack_extra(row.named_extra))
    return row.datum, cip25


def _asset_in(row: _AssetRow, asset: AssetId, shown: ShownMetadata, network: Network) -> Asset:
    assert row.supply is not None, "the asset exists"
    first_slot = None if row.first_mint_tx_id is None else slot_of(row.first_mint_tx_id)
    return Asset(
        policy_id=asset.policy_id.hex(),
        asset_name=asset.asset_name.hex(),
        asset_name_ascii=text_of(asset.asset_name),
        fingerprint=fingerprint(asset.policy_id, asset.asset_name),
        total_supply=row.supply,
        mint_count=row.mint_count,
        burn_count=row.burn_count,
        first_mint_tx=None if row.first_mint_hash is None else row.first_mint_hash.hex(),
        first_mint_slot=first_slot,
        first_mint_time=None if first_slot is None else network.slot_time(first_slot),
        metadata=shown.value,
        metadata_source=shown.source,
    )


async def list_policy_assets(ask: ChainAsk[PolicyListQuestion]) -> ChainPage[PolicyAsset, Paging]:
    """List the assets of a policy by supply, including burned ones. Ties are ordered by name."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_assets_pages[asked.order].all(db, asked.policy, asked.limit, asked.offset)
    tip = tip_of(rows)
    total = rows[0].total
    names = [row.name for row in rows if row.name is not None]
    return ChainPage(
        data=[
            PolicyAsset(name.hex(), text_of(name), shown, row.supply, row.mint_count, row.burn_count)
            for name, shown, row in zip(names, fingerprints(asked.policy, names), rows, strict=False)
        ],
        pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
        last_updated=tip.last_updated(ask.network),
    )


async def list_policy_holders(ask: ChainAsk[PolicyListQuestion]) -> ChainPage[Holder, MorePaging]:
    """List holders of a policy by total quantity."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_holders_pages[asked.order].all(db, asked.limit, asked.offset, asked.policy)
    return _holder_page(ask, rows, show_holders)


async def list_policy_account_holders(ask: ChainAsk[PolicyListQuestion]) -> ChainPage[AccountHolder, MorePaging]:
    """List holders of a policy by stake account.

    They are sorted by total quantity. An address without a stake account has its own entry.
    """
    asked = ask.question
    async with ask.connection() as db:
        rows = await policy_account_holders_pages[asked.order].all(db, asked.limit, asked.offset, asked.policy)
    return _holder_page(ask, rows, show_account_holders)


async def list_asset_holders(ask: ChainAsk[AssetListQuestion]) -> ChainPage[Holder, MorePaging]:
    """List holders of an asset by quantity."""
    asked, asset = ask.question, await asset_of(ask, ask.question.asset)
    async with ask.connection() as db:
        rows = await holders_pages[asked.order].all(db, asked.limit, asked.offset, asset.policy_id, asset.asset_name)
    return _holder_page(ask, rows, show_holders)


async def list_asset_account_holders(ask: ChainAsk[AssetListQuestion]) -> ChainPage[AccountHolder, MorePaging]:
    """List holders of an asset by stake account.

    They are sorted by quantity. An address without a stake account has its own entry.
    """
    asked, asset = ask.question, await asset_of(ask, ask.question.asset)
    page = account_holders_pages[asked.order]
    async with ask.connection() as db:
        rows = await page.all(db, asked.limit, asked.offset, asset.policy_id, asset.asset_name)
    return _holder_page(ask, rows, show_account_holders)


async def list_asset_transactions(ask: ChainAsk[AssetListQuestion]) -> ChainPage[AssetTransaction, MorePaging]:
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
        last_updated=tip_of(rows).last_updated(ask.network),
    )


async def list_asset_mints(ask: ChainAsk[AssetListQuestion]) -> ChainPage[Mint, Paging]:
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
        last_updated=tip_of(rows).last_updated(ask.network),
    )


QuestionT = TypeVar("QuestionT", bound=Question)


async def asset_of(ask: ChainAsk[QuestionT], named: AssetId | Fingerprint) -> AssetId:
    """The asset that a caller names. Raises Refusal for an unknown fingerprint.

    NOTE: a look-up by fingerprint needs no snapshot with the answer: a fingerprint always stands for the same policy
    and name.
    """
    if isinstance(named, AssetId):
        return named
    async with ask.connection() as db:
        asset = await find(db, named)
    if asset is None:
        raise errors.asset_not_found()
    return asset


async def find(db: Connection, named: AssetId | Fingerprint) -> AssetId | None:
    """The same on a connection; None for an unknown fingerprint. Raises Refusal 503."""
    if isinstance(named, AssetId):
        return named
    rows = await _by_fingerprint.all(db, fingerprint_number(named.digest))
    if not rows:
        raise errors.network_not_available()
    for row in rows:
        if row.policy_id is not None and fingerprint_digest(row.policy_id + row.asset_name) == named.digest:
            return AssetId(row.policy_id, row.asset_name)
    return None


async def _describe(ask: ChainAsk[InfoQuestion], asked: AssetId, row: _AssetRow) -> ShownMetadata:
    """The metadata of an asset from the source that the question names, and that source."""
    wanted = ask.question.metadata_source
    on_chain = _on_chain(asked, row, wanted)
    if on_chain.value is not None or wanted not in ("auto", "registry"):
        return on_chain
    ask.notes.may_change = ask.services.registry.is_asked
    result = await ask.services.registry.look_up(asked.policy_id + asked.asset_name)
    ask.notes.metadata_warning = REGISTRY_FAILED if result.failed else None
    return ShownMetadata(result.metadata, None if result.metadata is None else "registry")


def _on_chain(asset: AssetId, row: _AssetRow, wanted: str) -> ShownMetadata:
    """The metadata of an asset that the chain has, and its source."""
    value: Metadata | None = None
    if wanted in ("auto", "cip68") and row.datum is not None:
        value = metadata.of_datum(row.datum, asset.policy_id, asset.asset_name)
        if value is not None:
            return ShownMetadata(value, "cip68")
    if wanted in ("auto", "cip25") and row.named_extra is not None:
        value = metadata.of_transaction(packed.unpack_extra(row.named_extra), asset.policy_id, asset.asset_name)
        if value is not None:
            return ShownMetadata(value, "cip25")
    return ShownMetadata(None, None)


HolderT = TypeVar("HolderT", Holder, AccountHolder)


def _holder_page(
    ask: ChainAsk[AssetListQuestion] | ChainAsk[PolicyListQuestion],
    rows: Sequence[_HolderRow],
    show: Callable[[Sequence[HolderEntry], Network], list[HolderT]],
) -> ChainPage[HolderT, MorePaging]:
    asked = ask.question
    tip = tip_of(rows)
    if not rows[0].known:
        raise errors.asset_not_found()
    entries = [HolderEntry(row.raw, row.quantity) for row in rows[: asked.limit] if row.raw is not None]
    return ChainPage(
        data=show(entries, ask.network),
        pagination=MorePaging(asked.limit, asked.offset, has_more=len(rows) > asked.limit),
        last_updated=tip.last_updated(ask.network),
    )


async def _movements(ask: ChainAsk[AssetListQuestion], query: sql.Query[_MovementRow]) -> list[_MovementRow]:
    """A page of a history of an asset, oldest first. An empty page is one row without a transaction."""
    asked, asset = ask.question, await asset_of(ask, ask.question.asset)
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
    movements = [row for row in rows if row.tx_hash is not None]
    return movements[::-1] if asked.order == "desc" else movements


def _hash(row: _MovementRow) -> str:
    assert row.tx_hash is not None, "the row of an empty page has no transaction"
    return row.tx_hash.hex()


def show_holders(held: Sequence[HolderEntry], network: Network) -> list[Holder]:
    """Holding addresses, each with its stake address."""
    shown = _show_addresses([entry.raw for entry in held], network)
    return [Holder(*texts, entry.quantity) for texts, entry in zip(shown, held, strict=True)]


def show_account_holders(held: Sequence[HolderEntry], network: Network) -> list[AccountHolder]:
    """Holding accounts, and holding addresses without an account."""
    accounts = [entry.raw for entry in held if address.is_reward_account(entry.raw)]
    apart = [entry.raw for entry in held if not address.is_reward_account(entry.raw)]
    stakes = dict(zip(accounts, address.show_stakes(accounts, network), strict=True))
    addresses = dict(zip(apart, address.show_all(apart), strict=True))
    return [AccountHolder(stakes.get(entry.raw), addresses.get(entry.raw), entry.quantity) for entry in held]


def _show_addresses(raws: Sequence[bytes], network: Network) -> list[tuple[str, str | None]]:
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


def text_of(name: bytes) -> str | None:
    """The name of an asset as UTF-8 text, None if it is not valid UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
