"""`/accounts`: a stake account, its addresses, assets and outputs, its delegations and withdrawals."""

from typing import TypeVar

import msgspec

from api.ask import ChainAsk
from api.blockfrost import outputs, refusals
from api.blockfrost import owners as shown
from api.blockfrost.amounts import Amount
from api.blockfrost.outputs import Unspent
from api.blockfrost.paging import Page
from api.chain import accounts, owners
from api.chain.accounts import (
    AccountAddress,
    AccountAddresses,
    AccountDelegations,
    AccountList,
    AccountQuestion,
    StakeAddress,
)
from api.chain.certificates import Representative
from shared import sql
from shared.encoding import bech32_encode
from shared.network import Network
from shared.sql import Connection

ListT = TypeVar("ListT", bound=AccountList)

_OF_A_KEY, _OF_A_SCRIPT = b"\x22", b"\x23"  # the first byte of a representative's id (CIP-129)


class AccountPage(Page, frozen=True, kw_only=True):
    """A page of a list of an account."""

    stake_address: StakeAddress


class Account(msgspec.Struct, frozen=True):
    """An account. `controlled_amount` is the lovelace at its addresses plus its rewards.

    `active_epoch` is the epoch of its last registration or deregistration, null if no block has one. `drep_id` follows
    CIP-129, or is a name such as `drep_always_abstain`. The sums over its lifetime are null.
    """

    stake_address: str
    active: bool
    registered: bool | None
    active_epoch: int | None
    controlled_amount: str
    rewards_sum: None
    withdrawals_sum: None
    reserves_sum: None
    treasury_sum: None
    withdrawable_amount: str
    pool_id: str | None
    drep_id: str | None


class Delegation(msgspec.Struct, frozen=True):
    """A delegation to a pool. `tx_hash` is null for one in the genesis.

    `amount` is the lovelace in all outputs of the transaction, as with Blockfrost, not the stake.
    """

    active_epoch: int
    tx_hash: str | None
    amount: str | None
    pool_id: str
    tx_slot: int | None
    block_time: int | None
    block_height: int | None


class Withdrawal(msgspec.Struct, frozen=True):
    """Rewards withdrawn by a transaction. `block_time` is in seconds since 1970."""

    tx_hash: str
    amount: str
    tx_slot: int
    block_time: int
    block_height: int


class _Certified(msgspec.Struct, frozen=True):
    certified: bool
    registration_epoch_no: int | None


_certified = sql.beside(__file__).query("certified", _Certified)


async def info(ask: ChainAsk[AccountQuestion]) -> Account:
    """Get a stake account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        found = await _known(db, raw, ask.network)
        certificates = await _certified.only(db, raw)
    return Account(
        stake_address=found.stake_address,
        active=bool(found.registered) and found.pool_id is not None,
        registered=found.registered,
        active_epoch=certificates.registration_epoch_no,
        controlled_amount=str(found.lovelace + found.rewards),
        rewards_sum=None,
        withdrawals_sum=None,
        reserves_sum=None,
        treasury_sum=None,
        withdrawable_amount=str(found.rewards),
        pool_id=found.pool_id,
        drep_id=None if found.delegate_representative is None else _drep_id(found.delegate_representative),
    )


async def addresses(ask: ChainAsk[AccountPage]) -> list[AccountAddress]:
    """List the addresses of an account."""
    async with ask.snapshot() as db:
        await _known(db, owners.parse_stake(ask.question.stake_address, ask.network), ask.network)
        return (await accounts.list_account_addresses(ask.about(_list(AccountAddresses, ask.question), db))).data


async def assets(ask: ChainAsk[AccountPage]) -> list[Amount]:
    """List the assets that the addresses of an account hold."""
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        await _known(db, raw, ask.network)
        held, _ = await shown.holdings(
            ask, "account", raw, db, limit=asked.count, offset=asked.offset, order=asked.order
        )
    return held


async def unspent(ask: ChainAsk[AccountPage]) -> list[Unspent]:
    """List the unspent outputs of an account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        await _known(db, raw, ask.network)
        return await shown.unspent(ask, "account", raw, db, ask.question)


async def delegations(ask: ChainAsk[AccountPage]) -> list[Delegation]:
    """List the delegations of an account to pools, including past ones."""
    async with ask.snapshot() as db:
        await _known(db, owners.parse_stake(ask.question.stake_address, ask.network), ask.network)
        found = (await accounts.list_account_delegations(ask.about(_list(AccountDelegations, ask.question), db))).data
        by_tx = [each.transaction for each in found if each.transaction is not None]
        blocks = await outputs.blocks_at(db, [each.slot_no for each in by_tx])
        paid = await outputs.paid(db, [each.tx_hash for each in by_tx])
    return [
        Delegation(each.active_epoch_no, None, None, each.pool_id, None, None, None)
        if each.transaction is None
        else Delegation(
            active_epoch=each.active_epoch_no,
            tx_hash=each.transaction.tx_hash,
            amount=str(paid[each.transaction.tx_hash]),
            pool_id=each.pool_id,
            tx_slot=each.transaction.slot_no,
            block_time=int(each.transaction.block_time.timestamp()),
            block_height=blocks[each.transaction.slot_no].block_no,
        )
        for each in found
    ]


async def withdrawals(ask: ChainAsk[AccountPage]) -> list[Withdrawal]:
    """List the withdrawals of rewards from an account."""
    async with ask.snapshot() as db:
        await _known(db, owners.parse_stake(ask.question.stake_address, ask.network), ask.network)
        found = (await accounts.list_account_withdrawals(ask.about(_list(AccountList, ask.question), db))).data
        blocks = await outputs.blocks_at(db, [each.slot_no for each in found])
    return [
        Withdrawal(
            each.tx_hash,
            str(each.lovelace),
            each.slot_no,
            int(each.block_time.timestamp()),
            blocks[each.slot_no].block_no,
        )
        for each in found
    ]


def _drep_id(representative: Representative) -> str:
    """The id of a representative."""
    match representative:
        case Representative("registered", str(digest), origin):
            kind = _OF_A_SCRIPT if origin == "script" else _OF_A_KEY
            return bech32_encode("drep", kind + bytes.fromhex(digest))
        case Representative("abstain"):
            return "drep_always_abstain"
    return "drep_always_no_confidence"


def _list(question: type[ListT], page: AccountPage) -> ListT:
    return question(stake_address=page.stake_address, limit=page.count, offset=page.offset, order=page.order)


async def _known(db: Connection, raw: bytes, network: Network) -> accounts.Account:
    """An account that was ever used or registered, in a snapshot. Raises Refusal for others."""
    found, _ = await accounts.one_with_tip(db, raw, network)
    used = found.transaction_count or found.utxo_count or found.withdrawal_count or found.rewards
    known = used or found.registered or found.delegate_representative
    if not (known or (await _certified.only(db, raw)).certified):
        raise refusals.never_used()
    return found
