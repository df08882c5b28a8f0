"""Addresses: what one holds, its unspent outputs, and its assets."""

from typing import Literal

import msgspec

from api.answers import ChainAnswer, ChainPage, PlacePaging
from api.ask import ChainAsk
from api.chain import owners, utxos
from api.chain.certificates import LedgerCredential
from api.chain.owners import Holding, HoldingList, OwnerSummary
from api.chain.tip import Tip
from api.chain.transactions import Address
from api.chain.utxos import UnspentList, UnspentOutput
from api.parameters import Question
from shared import address
from shared.network import Network
from shared.sql import Connection


class AddressQuestion(Question, frozen=True, kw_only=True):
    """An address."""

    address: Address


class AddressOutputs(UnspentList, frozen=True, kw_only=True):
    """A page of the unspent outputs of an address."""

    address: Address


class AddressAssets(HoldingList, frozen=True, kw_only=True):
    """A page of the assets of an address."""

    address: Address


class AddressInfo(OwnerSummary, frozen=True):
    """An address (CIP-19) and what it holds. All counts of an address that was never used are 0.

    Byron addresses have no credentials. The lovelace at a pointer address counts towards no stake.
    """

    address: str
    kind: Literal["base", "pointer", "enterprise", "byron"]
    payment_credential: LedgerCredential | None
    stake_credential: LedgerCredential | None
    stake_address: str | None


async def get_address(ask: ChainAsk[AddressQuestion]) -> ChainAnswer[AddressInfo]:
    """Get an address.

    The answer has its credentials, what it holds, and its first and last transaction.
    """
    raw = owners.parse_address(ask.question.address, ask.network)
    async with ask.connection() as db:
        info, tip = await read_with_tip(db, raw, ask.network)
    return ChainAnswer(data=info, last_updated=tip.last_updated(ask.network))


async def read_with_tip(db: Connection, raw: bytes, network: Network) -> tuple[AddressInfo, Tip]:
    """An address, all zeros if it was never used, and the tip of the same snapshot. Raises Refusal if nothing is
    indexed."""
    summary, tip = await owners.summary(db, "address", raw, network)
    parts, account = address.parts_of(raw), address.stake_of(raw)
    info = AddressInfo(
        address.show(raw),
        parts.kind,
        None if parts.payment is None else show_credential(parts.payment),
        None if parts.stake is None else show_credential(parts.stake),
        None if account is None else address.show_stake(account),
        **msgspec.structs.asdict(summary),
    )
    return info, tip


async def list_address_utxos(ask: ChainAsk[AddressOutputs]) -> ChainPage[UnspentOutput, PlacePaging]:
    """List the unspent outputs of an address.

    With `asset`, only outputs that hold it are listed.
    """
    return await utxos.unspent(ask, "address", owners.parse_address(ask.question.address, ask.network))


async def list_address_assets(ask: ChainAsk[AddressAssets]) -> ChainPage[Holding, PlacePaging]:
    """List the assets in the unspent outputs of an address."""
    return await owners.holdings(ask, "address", owners.parse_address(ask.question.address, ask.network))


def show_credential(credential: address.LedgerCredential) -> LedgerCredential:
    """A credential as answers show it."""
    return LedgerCredential(credential.hash.hex(), credential.origin)
