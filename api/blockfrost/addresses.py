"""`/addresses`: what an address holds, its unspent outputs, and its transactions; or those of a payment credential."""

from typing import Annotated, Literal, TypeVar

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import amounts, assets, refusals
from api.blockfrost import owners as shown
from api.blockfrost.amounts import Amount
from api.blockfrost.outputs import Unspent
from api.blockfrost.owners import TransactionPlace
from api.blockfrost.paging import Page
from api.blockfrost.ranges import RangePage
from api.blockfrost.units import UnitOrLovelaceKind
from api.chain import addresses, owners, payment_credentials
from api.chain.addresses import AddressQuestion
from api.chain.assets import REGISTRY_FAILED, AssetId
from api.chain.owners import OwnerKind, OwnerSummary
from api.chain.transactions import Address
from shared import address
from shared.network import Network
from shared.sql import Connection

MAX_ASSETS = 1_000
_ADA_DECIMALS = 6


class AddressPage(Page, frozen=True, kw_only=True):
    """A page of a list of an address."""

    address: Address


class AddressAssetPage(AddressPage, frozen=True, kw_only=True):
    """A page of the outputs of an address that hold an asset, or of those that hold none."""

    asset: Annotated[AssetId | Literal["lovelace"], UnitOrLovelaceKind()]


class AddressRange(RangePage, frozen=True, kw_only=True):
    """A page of the transactions of an address."""

    address: Address


class AddressHoldings(msgspec.Struct, frozen=True):
    """An address, or a payment credential, and what it holds. `script` is true if a script controls its outputs.

    A payment credential is the hash of a key or of a script, `addr_vkh1…` or `script1…`, or a key, `addr_vk1…`, which
    is shown as its hash. It stands for all addresses with this hash in their payment part.
    """

    address: str
    amount: list[Amount]
    stake_address: str | None
    type: Literal["byron", "shelley"]
    script: bool


class ExtendedAmount(Amount, frozen=True):
    """A quantity with its decimals, null if unknown, and whether the asset has metadata on the chain."""

    decimals: int | None
    has_nft_onchain_metadata: bool


class ExtendedHoldings(msgspec.Struct, frozen=True):
    """The same with what is known of each asset."""

    address: str
    amount: list[ExtendedAmount]
    stake_address: str | None
    type: Literal["byron", "shelley"]
    script: bool


async def info(ask: ChainAsk[AddressQuestion]) -> AddressHoldings:
    """Get an address and what it holds."""
    owner, raw = owner_of(ask.question.address, ask.network)
    async with ask.snapshot() as db:
        summary, facts = await _read(db, owner, raw, ask.question.address, ask.network)
        if not (summary.transaction_count or summary.utxo_count):
            raise refusals.never_used()
        assets, more = await shown.holdings(ask, owner, raw, db, limit=MAX_ASSETS)
    if more:
        raise refusals.too_many_assets(MAX_ASSETS)
    return AddressHoldings(
        facts.shown,
        [Amount(amounts.LOVELACE, str(summary.lovelace)), *sorted(assets, key=lambda held: held.unit)],
        facts.stake_address,
        "byron" if facts.is_byron else "shelley",
        facts.of_script,
    )


async def extended(ask: ChainAsk[AddressQuestion]) -> ExtendedHoldings:
    """Get an address and what it holds, with decimals.

    Decimals are those of a CIP-68 datum or, without one, of the registry. If the registry does not answer, the header
    `Metadata-Warning` says so, and the decimals of some assets may be null.
    """
    async with ask.snapshot() as db:
        held = await info(ask.about(ask.question, db))
        described = await assets.described_units(db, [amount.unit for amount in held.amount[1:]])
    ask.notes.may_change = ask.services.registry.is_asked
    decimals, failed = await assets.registered_decimals(
        ask.services.registry, [unit for unit, known in described.items() if known.decimals is None]
    )
    ask.notes.metadata_warning = REGISTRY_FAILED if failed else None
    lovelace, *others = held.amount
    return ExtendedHoldings(
        held.address,
        [
            ExtendedAmount(lovelace.unit, lovelace.quantity, _ADA_DECIMALS, has_nft_onchain_metadata=False),
            *(
                ExtendedAmount(
                    amount.unit,
                    amount.quantity,
                    decimals.get(amount.unit, described[amount.unit].decimals),
                    described[amount.unit].on_chain,
                )
                for amount in others
            ),
        ],
        held.stake_address,
        held.type,
        held.script,
    )


async def unspent(ask: ChainAsk[AddressPage]) -> list[Unspent]:
    """List the unspent outputs of an address."""
    return await _unspent(ask, None)


async def unspent_of_asset(ask: ChainAsk[AddressAssetPage]) -> list[Unspent]:
    """List the unspent outputs of an address that hold an asset; with `lovelace`, those that hold none."""
    return await _unspent(ask, ask.question.asset)


async def transactions(ask: ChainAsk[AddressRange]) -> list[TransactionPlace]:
    """List the transactions of an address."""
    return await shown.history(ask, *owner_of(ask.question.address, ask.network), ask.question)


async def transaction_hashes(ask: ChainAsk[AddressRange]) -> list[str]:
    """List the hashes of the transactions of an address."""
    return [entry.tx_hash for entry in await transactions(ask)]


AddressT = TypeVar("AddressT", bound=AddressPage)


async def _unspent(ask: ChainAsk[AddressT], asset: AssetId | Literal["lovelace"] | None) -> list[Unspent]:
    owner, raw = owner_of(ask.question.address, ask.network)
    async with ask.snapshot() as db:
        outputs = await shown.unspent(ask, owner, raw, db, ask.question, asset)
        if not outputs:
            await shown.refuse_unused(db, owner, raw, ask.network)
        return outputs


class _Facts(msgspec.Struct, frozen=True):
    """What the text of an address or of a payment credential says, besides what it holds."""

    shown: str
    stake_address: str | None
    is_byron: bool
    of_script: bool


def owner_of(text: str, network: Network) -> tuple[OwnerKind, bytes]:
    """The address, or the hash in a payment credential, that a caller has sent. Raises Refusal."""
    if not address.names_payment_credential(text):
        return "address", owners.parse_address(text, network)
    try:
        return "credential", address.parse_payment_credential(text)
    except address.InvalidAddress as cause:
        raise errors.invalid_address() from cause


async def _read(
    db: Connection, owner: OwnerKind, raw: bytes, text: str, network: Network
) -> tuple[OwnerSummary, _Facts]:
    """The summary and the facts of an owner, in a snapshot."""
    if owner == "credential":
        credential, _ = await payment_credentials.read_with_tip(db, raw, network)
        shown_text = address.show_payment_credential(raw, text)
        return credential, _Facts(shown_text, None, is_byron=False, of_script=credential.origin == "script")
    info, _ = await addresses.read_with_tip(db, raw, network)
    payment = info.payment_credential
    of_script = payment is not None and payment.origin == "script"
    return info, _Facts(info.address, info.stake_address, info.kind == "byron", of_script)
