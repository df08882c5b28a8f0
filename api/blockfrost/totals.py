"""`/addresses/…/total` and `/accounts/…/addresses/total`: what an address, a payment credential or an account has
received and sent.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from api.ask import ChainAsk
from api.blockfrost import accounts, addresses, amounts, refusals
from api.blockfrost.amounts import Amount
from api.chain import owners, totals
from api.chain.accounts import AccountQuestion
from api.chain.addresses import AddressQuestion
from api.chain.totals import Totals
from shared import address
from shared.sql import Connection


class _Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs of the genesis are received in transactions that Blockfrost has made up, which count in `tx_count`."""

    received_sum: list[Amount]
    sent_sum: list[Amount]
    tx_count: int


class AddressTotal(_Sums, frozen=True):
    """What an address, or the addresses with a payment credential, have received and sent."""

    address: str


class AccountTotal(_Sums, frozen=True):
    """What the addresses of an account have received and sent."""

    stake_address: str


async def of_address(ask: ChainAsk[AddressQuestion]) -> AddressTotal:
    """Get what an address has received and sent."""
    text = ask.question.address
    owner, raw = addresses.owner_of(text, ask.network)
    shown = address.show_payment_credential(raw, text) if owner == "credential" else address.show(raw)

    async def show(_: Connection, found: Totals) -> AddressTotal:
        if not _is_used(found):
            raise refusals.never_used()
        return AddressTotal(shown, **await _sums(found))

    return await totals.shown(ask, owner, raw, show)


async def of_account(ask: ChainAsk[AccountQuestion]) -> AccountTotal:
    """Get what the addresses of an account have received and sent."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)

    async def show(db: Connection, found: Totals) -> AccountTotal:
        if not _is_used(found):
            await accounts.refuse_unknown(db, raw)
        return AccountTotal(address.show_stake(raw), **await _sums(found))

    return await totals.shown(ask, "account", raw, show)


def _is_used(found: Totals) -> bool:
    return bool(found.transactions or found.genesis_outputs)


async def _sums(found: Totals) -> dict[str, Any]:
    """The common fields. An asset that was never sent is not among the sent ones."""

    async def received() -> AsyncIterator[Amount]:
        yield Amount(amounts.LOVELACE, str(found.received_lovelace))
        async for asset in found.assets():
            yield Amount(amounts.unit_of(asset.policy_id, asset.asset_name), asset.received)

    async def sent() -> AsyncIterator[Amount]:
        yield Amount(amounts.LOVELACE, str(found.sent_lovelace))
        async for asset in found.assets():
            if asset.sent != "0":
                yield Amount(amounts.unit_of(asset.policy_id, asset.asset_name), asset.sent)

    return {
        "received_sum": await totals.listed(found, received()),
        "sent_sum": await totals.listed(found, sent()),
        "tx_count": found.transactions + found.genesis_outputs,
    }
