"""`/assets`: an asset, its holders, transactions and mints, and the assets of a policy."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import amounts, onchain_metadata, plain, refusals
from api.blockfrost.cip25 import standard
from api.blockfrost.owners import TransactionPlace, places_of
from api.blockfrost.paging import Page
from api.blockfrost.ranges import RangePage, limits
from api.blockfrost.units import UnitKind
from api.chain import assets, metadatum, tip
from api.chain.assets import AssetId, AssetListQuestion, PolicyKind, PolicyListQuestion
from api.parameters import Question
from api.sources.registry import MAX_LOOK_UPS, Registry
from shared import sql
from shared.ledger import HASH28_BYTES
from shared.metadata import Metadata, reference_name
from shared.sql import Connection


class AssetQuestion(Question, frozen=True, kw_only=True):
    """An asset."""

    asset: Annotated[AssetId, UnitKind()]


class AssetPage(Page, frozen=True, kw_only=True):
    """A page of a list about an asset."""

    asset: Annotated[AssetId, UnitKind()]


class AssetTransactions(RangePage, frozen=True, kw_only=True):
    """A page of the transactions of an asset."""

    asset: Annotated[AssetId, UnitKind()]


class PolicyPage(Page, frozen=True, kw_only=True):
    """A page of the assets of a policy."""

    policy: Annotated[bytes, PolicyKind()]


class RegisteredMetadata(msgspec.Struct, frozen=True):
    """Metadata of an asset from the token registry."""

    name: str | None
    description: str | None
    ticker: str | None
    url: str | None
    logo: str | None
    decimals: int | None


class Asset(msgspec.Struct, frozen=True):
    """An asset. `asset_name` is null if it is empty. The first mint is null if it precedes the first indexed block.

    `onchain_metadata` is the whole map of the reference token's datum if it complies with CIP-68 (its version is the
    standard, its third field the extra), else the CIP-25 metadata as plain JSON, whose standard is null if it does not
    comply with the version that it names.
    """

    asset: str
    policy_id: str
    asset_name: str | None
    fingerprint: str
    quantity: str
    initial_mint_tx_hash: str | None
    mint_or_burn_count: int
    onchain_metadata: Any
    onchain_metadata_standard: str | None
    onchain_metadata_extra: str | None
    metadata: RegisteredMetadata | None


class Supplied(msgspec.Struct, frozen=True):
    """An asset and the quantity that exists."""

    asset: str
    quantity: str


class Holder(msgspec.Struct, frozen=True):
    """An address and the quantity in its unspent outputs."""

    address: str
    quantity: str


class Mint(msgspec.Struct, frozen=True):
    """What a transaction minted or, with a quantity below 0, burned."""

    tx_hash: str
    action: Literal["minted", "burned"]
    amount: str


class Described(msgspec.Struct, frozen=True):
    """Whether an asset has metadata on the chain (CIP-68 or CIP-25), and its decimals by CIP-68."""

    on_chain: bool
    decimals: int | None


class _DescribedRow(msgspec.Struct, frozen=True):
    is_named: bool
    datum: bytes | None


class _Rank(msgspec.Struct, frozen=True):
    transactions: int


class _Listed(msgspec.Struct, frozen=True):
    policy_id: bytes
    name: bytes
    supply: str


_sql = sql.beside(__file__)
_rank = _sql.query("rank", _Rank)
_listed = _sql.query("listed", _Listed)
_described = _sql.query("described", _DescribedRow)
_DESCRIBED_AT_ONCE = 100  # each may have a datum of 16 KiB
_LOOK_UPS_AT_ONCE, _LOOK_UPS_S = MAX_LOOK_UPS // 2, 3.0


async def listed(ask: ChainAsk[Page]) -> list[Supplied]:
    """List all assets in the order of their first mints, burned ones included."""
    asked = ask.question
    newest_first = asked.order == "desc"
    async with ask.snapshot() as db:
        await tip.read(db)
        rows = await _listed.all(db, asked.count, asked.offset, newest_first)
    shown = [Supplied(amounts.unit_of(row.policy_id.hex(), row.name.hex()), row.supply) for row in rows]
    return shown[::-1] if newest_first else shown


async def info(ask: ChainAsk[AssetQuestion]) -> Asset:
    """Get an asset with its metadata."""
    asset = ask.question.asset
    async with ask.snapshot() as db:
        native = await assets.read(db, asset, ask.network)
        datum, cip25 = await assets.described(db, asset)
    if native is None:
        raise errors.asset_not_found()
    cip68 = None if datum is None else onchain_metadata.of_datum(datum, asset.asset_name)
    names = asset.policy_id, asset.asset_name
    entry = None if cip25 is None else cip25.entry(*names)
    by_cip25 = None if cip25 is None or cip25.label is None else standard(cip25.label, *names)
    ask.notes.may_change = ask.services.registry.is_asked
    registered = (await ask.services.registry.look_up(asset.policy_id + asset.asset_name)).metadata
    return Asset(
        asset=amounts.unit_of(native.policy_id, native.asset_name),
        policy_id=native.policy_id,
        asset_name=native.asset_name or None,
        fingerprint=native.fingerprint,
        quantity=native.total_supply,
        initial_mint_tx_hash=native.first_mint_tx,
        mint_or_burn_count=native.mint_count + native.burn_count,
        onchain_metadata=_plain(entry) if cip68 is None else cip68.metadata,
        onchain_metadata_standard=by_cip25 if cip68 is None else cip68.standard,
        onchain_metadata_extra=None if cip68 is None else cip68.extra,
        metadata=None if registered is None else _registered(registered),
    )


async def described_units(db: Connection, units: Sequence[str]) -> dict[str, Described]:
    """What the chain tells about assets by unit, in a snapshot."""
    found = dict[str, Described]()
    for first in range(0, len(units), _DESCRIBED_AT_ONCE):
        some = units[first : first + _DESCRIBED_AT_ONCE]
        parts = [AssetId(raw[:HASH28_BYTES], raw[HASH28_BYTES:]) for raw in map(bytes.fromhex, some)]
        rows = await _described.all(
            db,
            [asset.policy_id for asset in parts],
            [asset.asset_name for asset in parts],
            [reference_name(asset.asset_name) for asset in parts],
        )
        for unit, asset, row in zip(some, parts, rows, strict=True):
            cip68 = None if row.datum is None else onchain_metadata.of_datum(row.datum, asset.asset_name)
            decimals = None if cip68 is None else cip68.metadata.get("decimals")
            found[unit] = Described(row.is_named or cip68 is not None, decimals)
    return found


async def registered_decimals(registry: Registry, units: Sequence[str]) -> tuple[dict[str, int], bool]:
    """The decimals of assets that the registry knows, by unit, and whether it failed to tell those of some.

    As many are looked up at once as leave room for others, and none after a time: those that are missing are found
    by later requests, since what is looked up is kept.
    """
    found, failed, waiting = dict[str, int](), False, deque(units)
    until = time.monotonic() + _LOOK_UPS_S

    async def look_up() -> None:
        nonlocal failed
        while waiting:
            unit = waiting.popleft()
            if time.monotonic() > until:
                failed = True
                return
            result = await registry.look_up(bytes.fromhex(unit))
            failed |= result.failed
            if result.metadata is not None and result.metadata.decimals is not None:
                found[unit] = result.metadata.decimals

    await asyncio.gather(*(look_up() for _ in range(min(_LOOK_UPS_AT_ONCE, len(units)))))
    return found, failed


async def holders(ask: ChainAsk[AssetPage]) -> list[Holder]:
    """List the holders of an asset by quantity."""
    asked = ask.question
    question = AssetListQuestion(asset=asked.asset, limit=asked.count, offset=asked.offset, order=asked.order)
    return [
        Holder(holder.address, holder.quantity)
        for holder in (await assets.list_asset_holders(ask.about(question))).data
    ]


async def transactions(ask: ChainAsk[AssetTransactions]) -> list[TransactionPlace]:
    """List the transactions with an asset in at least one output."""
    asked = ask.question
    async with ask.snapshot() as db:
        limit, offset = await _between(db, asked)
        question = AssetListQuestion(asset=asked.asset, limit=max(limit, 1), offset=offset, order=asked.order)
        entries = (await assets.list_asset_transactions(ask.about(question, db))).data
        return await places_of(db, entries[:limit])


async def transaction_hashes(ask: ChainAsk[AssetTransactions]) -> list[str]:
    """List the hashes of the transactions with an asset in at least one output."""
    return [entry.tx_hash for entry in await transactions(ask)]


async def mints(ask: ChainAsk[AssetPage]) -> list[Mint]:
    """List the mints and burns of an asset."""
    asked = ask.question
    question = AssetListQuestion(asset=asked.asset, limit=asked.count, offset=asked.offset, order=asked.order)
    return [
        Mint(mint.tx_hash, "burned" if mint.quantity.startswith("-") else "minted", mint.quantity)
        for mint in (await assets.list_asset_mints(ask.about(question))).data
    ]


async def of_policy(ask: ChainAsk[PolicyPage]) -> list[Supplied]:
    """List the assets of a policy by supply."""
    asked, policy_id = ask.question, ask.question.policy.hex()
    question = PolicyListQuestion(policy=asked.policy, limit=asked.count, offset=asked.offset, order=asked.order)
    page = await assets.list_policy_assets(ask.about(question))
    if not page.pagination.total:
        raise refusals.policy_not_found()
    return [Supplied(amounts.unit_of(policy_id, supplied.asset_name), supplied.total_supply) for supplied in page.data]


async def _between(db: Connection, asked: AssetTransactions) -> tuple[int, int]:
    """Limit and offset of a page of the transactions between two places, in a snapshot. The limit may be 0."""
    first_tx_id, tx_id_after = await limits(db, asked)
    if first_tx_id is None and tx_id_after is None:
        return asked.count, asked.offset

    async def rank(tx_id: int | None) -> int:
        row = await _rank.one(db, asked.asset.policy_id, asked.asset.asset_name, tx_id)
        return 0 if row is None else row.transactions

    total = await rank(None)
    first = 0 if first_tx_id is None else await rank(first_tx_id)
    beyond = await rank(tx_id_after)
    skipped = first if asked.order == "asc" else total - beyond
    return max(min(asked.count, beyond - first - asked.offset), 0), skipped + asked.offset


def _plain(cip25: Mapping[Any, Any] | None) -> Any:
    if cip25 is None:
        return None
    try:
        return plain.of_detailed(metadatum.detailed(cip25))
    except ValueError:  # nested too deeply, or values that metadata can't have, as in the JSON of old nodes
        return None


def _registered(metadata: Metadata) -> RegisteredMetadata:
    return RegisteredMetadata(
        metadata.name, metadata.description, metadata.ticker, metadata.url, metadata.logo, metadata.decimals
    )
