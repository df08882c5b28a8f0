"""`/addresses`: what an address holds, its unspent outputs, and its transactions."""

from typing import Annotated

from api.ask import ChainAsk
from api.blockfrost import outputs, refusals
from api.blockfrost.outputs import Unspent
from api.blockfrost.paging import Page
from api.blockfrost.units import UnitKind
from api.chain import owners, utxos
from api.chain.assets import AssetId
from api.chain.transactions import Address
from api.chain.utxos import UnspentList
from shared.network import Network
from shared.sql import Connection


class AddressPage(Page, frozen=True, kw_only=True):
    """A page of a list of an address."""

    address: Address


class AddressAssetPage(AddressPage, frozen=True, kw_only=True):
    """A page of the outputs of an address that hold an asset."""

    asset: Annotated[AssetId, UnitKind()]


async def unspent(ask: ChainAsk[AddressPage]) -> list[Unspent]:
    """List the unspent outputs of an address."""
    return await _unspent(ask, None)


async def unspent_of_asset(ask: ChainAsk[AddressAssetPage]) -> list[Unspent]:
    """List the unspent outputs of an address that hold an asset."""
    return await _unspent(ask, ask.question.asset)


async def _unspent(ask: ChainAsk[AddressPage] | ChainAsk[AddressAssetPage], asset: AssetId | None) -> list[Unspent]:
    asked, raw = ask.question, owners.parse_address(ask.question.address, ask.network)
    question = UnspentList(limit=asked.count, offset=asked.offset, order=asked.order, asset=asset)
    async with ask.snapshot() as db:
        found = (await utxos.unspent(ask.about(question, db), "address", raw)).data
        if not found:
            await refuse_unused(db, "address", raw, ask.network)
        return await outputs.unspent(db, found)


async def refuse_unused(db: Connection, owner: owners.OwnerKind, raw: bytes, network: Network) -> None:
    """Raise Refusal if an owner was never used: Blockfrost has no empty lists of those."""
    summary, _ = await owners.summary(db, owner, raw, network)
    if not (summary.transaction_count or summary.utxo_count):
        raise refusals.never_used()
