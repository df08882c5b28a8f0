"""`/assets`: an asset, its holders, transactions and mints, and the assets of a policy."""

from collections.abc import Mapping
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
from api.chain import assets, metadatum
from api.chain.assets import AssetId, AssetListQuestion, PolicyKind, PolicyListQuestion
from api.parameters import Question
from shared import sql
from shared.metadata import Metadata
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


class _Rank(msgspec.Struct, frozen=True):
    transactions: int


_rank = sql.beside(__file__).query("rank", _Rank)


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
