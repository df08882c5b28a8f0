"""`/accounts`: a stake account, its addresses, assets and outputs, its transactions, certificates and withdrawals."""

import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import account_history, amounts, outputs, refusals, registrations, rewards, stakes
from api.blockfrost import owners as shown
from api.blockfrost.account_history import AccountTransaction
from api.blockfrost.amounts import Amount
from api.blockfrost.outputs import Unspent
from api.blockfrost.paging import Page
from api.blockfrost.ranges import RangePage
from api.blockfrost.registrations import Registration
from api.blockfrost.rewards import Reward
from api.blockfrost.stakes import ActiveStake
from api.chain import accounts, owners, representatives
from api.chain.accounts import (
    AccountAddress,
    AccountAddresses,
    AccountDelegations,
    AccountList,
    AccountQuestion,
    StakeAddress,
)
from api.chain.pools import show_pool_id
from shared import sql
from shared.ledger import slot_of
from shared.sql import Connection

ListT = TypeVar("ListT", bound=AccountList)
ListedT = TypeVar("ListedT")

_GENESIS_TX = b"Shelley Genesis Staking Tx Hash ".hex()  # configGenesisStakingHash of cardano-db-sync


class AccountPage(Page, frozen=True, kw_only=True):
    """A page of a list of an account."""

    stake_address: StakeAddress


class AccountRange(RangePage, frozen=True, kw_only=True):
    """A page of the transactions of an account."""

    stake_address: StakeAddress


class Account(msgspec.Struct, frozen=True):
    """An account. `controlled_amount` is the lovelace at its addresses plus its rewards.

    `rewards_sum` is what it withdrew and what it can withdraw; `reserves_sum` and `treasury_sum` are the instantaneous
    rewards from these. All sums are null if the index begins after the genesis. `active_epoch` is the epoch of its last
    registration or deregistration, null if no block has one. `pool_id` remains if the pool is retired. `drep_id`
    follows CIP-129, or is a name such as `drep_always_abstain`.
    """

    stake_address: str
    active: bool
    registered: bool | None
    active_epoch: int | None
    controlled_amount: str
    rewards_sum: str | None
    withdrawals_sum: str | None
    reserves_sum: str | None
    treasury_sum: str | None
    withdrawable_amount: str
    pool_id: str | None
    drep_id: str | None


class Delegation(msgspec.Struct, frozen=True):
    """A delegation to a pool. One in the genesis is in a transaction that Blockfrost has made up, at slot 0.

    `amount` is the lovelace in all outputs of the transaction, as with Blockfrost, not the stake.
    """

    active_epoch: int
    tx_hash: str
    amount: str
    pool_id: str
    tx_slot: int
    block_time: int
    block_height: int


class Withdrawal(msgspec.Struct, frozen=True):
    """Rewards withdrawn by a transaction. `block_time` is in seconds since 1970."""

    tx_hash: str
    amount: str
    tx_slot: int
    block_time: int
    block_height: int


class InstantaneousReward(Withdrawal, frozen=True):
    """Lovelace that a transaction moves from the reserves or the treasury to an account."""


class _Moved(msgspec.Struct, frozen=True):
    tx_id: int
    tx_hash: bytes
    lovelace: int


class _Certified(msgspec.Struct, frozen=True):
    known: bool
    registration_epoch_no: int | None
    pool_id: bytes | None
    from_reserves: int
    from_treasury: int
    partial: bool


class _Held(msgspec.Struct, frozen=True):
    policy_id: bytes
    name: bytes
    quantity: str


_sql = sql.beside(__file__)
_certified = _sql.query("certified", _Certified)
_withdrawn = _sql.values("withdrawn", bytes)
_assets = {
    "asc": _sql.query("assets", _Held, first="first", edge="min", order="ASC"),
    "desc": _sql.query("assets", _Held, first="last", edge="max", order="DESC"),
}
_moved = {order: _sql.query("moved", _Moved, order=order.upper()) for order in ("asc", "desc")}
_AT_ONCE, _CHUNKS_AT_ONCE = 5_000, 200  # withdrawals, rows of them
_lovelace_of_entries = struct.Struct(">10xQ").iter_unpack  # its upper two bytes are 0: a withdrawal is a coin


async def info(ask: ChainAsk[AccountQuestion]) -> Account:
    """Get a stake account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        account, _ = await accounts.read_with_tip(db, raw, ask.network)
        certificates = await _certified.only(db, raw)
        if not certificates.known:
            raise refusals.never_used()
        withdrawn = await _withdrawals_sum(db, raw, account.withdrawal_count) if account.withdrawal_count else 0
    party = account.delegate_representative
    return Account(
        stake_address=account.stake_address,
        active=certificates.pool_id is not None,
        registered=account.registered,
        active_epoch=certificates.registration_epoch_no,
        controlled_amount=str(account.lovelace + account.rewards),
        rewards_sum=None if certificates.partial else str(withdrawn + account.rewards),
        withdrawals_sum=None if certificates.partial else str(withdrawn),
        reserves_sum=None if certificates.partial else str(certificates.from_reserves),
        treasury_sum=None if certificates.partial else str(certificates.from_treasury),
        withdrawable_amount=str(account.rewards),
        pool_id=None if certificates.pool_id is None else show_pool_id(certificates.pool_id),
        drep_id=None if party is None else representatives.show_id(party),
    )


async def addresses(ask: ChainAsk[AccountPage]) -> list[AccountAddress]:
    """List the addresses of an account."""

    async def read(db: Connection) -> list[AccountAddress]:
        return (await accounts.list_account_addresses(ask.about(_list(AccountAddresses, ask.question), db))).data

    return await _of_one_statement(ask, read)


async def assets(ask: ChainAsk[AccountPage]) -> list[Amount]:
    """List the assets that the addresses of an account hold."""
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)

    async def read(db: Connection) -> list[Amount]:
        rows = await _assets[asked.order].all(db, raw, asked.count, asked.offset)
        return [Amount(amounts.unit_of(row.policy_id.hex(), row.name.hex()), row.quantity) for row in rows]

    return await _of_one_statement(ask, read)


async def unspent(ask: ChainAsk[AccountPage]) -> list[Unspent]:
    """List the unspent outputs of an account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        listed = await shown.unspent(ask, "account", raw, db, ask.question)
        return listed or await _none(db, raw)


async def transactions(ask: ChainAsk[AccountRange]) -> list[AccountTransaction]:
    """List the transactions of an account with the addresses in them."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        return await account_history.page(db, raw, ask.question, ask.network) or await _none(db, raw)


async def registered(ask: ChainAsk[AccountPage]) -> list[Registration]:
    """List the registrations and deregistrations of an account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        return await registrations.page(db, raw, ask.question, ask.network) or await _none(db, raw)


async def rewarded(ask: ChainAsk[AccountPage]) -> list[Reward]:
    """List the rewards of an account by epoch."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        return await rewards.page(db, raw, ask.question, ask.network, ask.notes) or await _none(db, raw)


async def history(ask: ChainAsk[AccountPage]) -> list[ActiveStake]:
    """List the stake of an account by epoch."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        return await stakes.history(db, raw, ask.question, ask.notes) or await _none(db, raw)


async def delegations(ask: ChainAsk[AccountPage]) -> list[Delegation]:
    """List the delegations of an account to pools, including past ones."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        listed = (await accounts.list_account_delegations(ask.about(_list(AccountDelegations, ask.question), db))).data
        if not listed:
            return await _none(db, raw)
        by_tx = [delegation.transaction for delegation in listed if delegation.transaction is not None]
        blocks = await outputs.blocks_at(db, [transaction.slot_no for transaction in by_tx])
        paid = await outputs.paid(db, [transaction.tx_hash for transaction in by_tx])
    genesis_time = int(ask.network.start_time.timestamp())
    return [
        Delegation(delegation.active_epoch_no, _GENESIS_TX, "0", delegation.pool_id, 0, genesis_time, 0)
        if delegation.transaction is None
        else Delegation(
            active_epoch=delegation.active_epoch_no,
            tx_hash=delegation.transaction.tx_hash,
            amount=str(paid[delegation.transaction.tx_hash]),
            pool_id=delegation.pool_id,
            tx_slot=delegation.transaction.slot_no,
            block_time=int(delegation.transaction.block_time.timestamp()),
            block_height=blocks[delegation.transaction.slot_no].block_no,
        )
        for delegation in listed
    ]


async def withdrawals(ask: ChainAsk[AccountPage]) -> list[Withdrawal]:
    """List the withdrawals of rewards from an account."""
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        listed = (await accounts.list_account_withdrawals(ask.about(_list(AccountList, ask.question), db))).data
        if not listed:
            return await _none(db, raw)
        blocks = await outputs.blocks_at(db, [withdrawal.slot_no for withdrawal in listed])
    return [
        Withdrawal(
            withdrawal.tx_hash,
            str(withdrawal.lovelace),
            withdrawal.slot_no,
            int(withdrawal.block_time.timestamp()),
            blocks[withdrawal.slot_no].block_no,
        )
        for withdrawal in listed
    ]


async def instantaneous_rewards(ask: ChainAsk[AccountPage]) -> list[InstantaneousReward]:
    """List the instantaneous rewards of an account, which ended with Babbage."""
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        rows = await _moved[asked.order].all(db, raw, asked.count, asked.offset)
        if not rows:
            return await _none(db, raw)
        blocks = await outputs.blocks_at(db, [slot_of(row.tx_id) for row in rows])
    return [
        InstantaneousReward(
            row.tx_hash.hex(),
            str(row.lovelace),
            slot_of(row.tx_id),
            int(ask.network.slot_time(slot_of(row.tx_id)).timestamp()),
            blocks[slot_of(row.tx_id)].block_no,
        )
        for row in rows
    ]


async def _withdrawals_sum(db: Connection, raw: bytes, count: int) -> int:
    """The lovelace that an account has withdrawn in `count` withdrawals, in a snapshot.

    NOTE: it reads all withdrawals, 18 bytes for each; many in parts, between which the process answers others. Scripts
    that withdraw 0 in each transaction have hundreds of thousands.
    """
    if count <= _AT_ONCE:
        return _sum(await _withdrawn.all(db, raw))
    withdrawn = 0
    async for part in _withdrawn.parts(db, raw, rows=_CHUNKS_AT_ONCE):
        withdrawn += _sum(part)
    return withdrawn


def _sum(chunks: Iterable[bytes]) -> int:
    return sum(lovelace for entries in chunks for (lovelace,) in _lovelace_of_entries(entries))


def _list(question: type[ListT], page: AccountPage) -> ListT:
    return question(stake_address=page.stake_address, limit=page.count, offset=page.offset, order=page.order)


async def _of_one_statement(
    ask: ChainAsk[AccountPage], read: Callable[[Connection], Awaitable[list[ListedT]]]
) -> list[ListedT]:
    """A page that one statement reads, so that it is a snapshot. Raises Refusal 404 if the account was never used."""
    async with ask.connection() as db:
        listed = await read(db)
    if listed:
        return listed
    async with ask.snapshot() as db:
        return await read(db) or await _none(db, owners.parse_stake(ask.question.stake_address, ask.network))


async def _none(db: Connection, raw: bytes) -> list[Any]:
    """An empty page, in its snapshot. Raises Refusal 404 if the account was never used or registered, and 503."""
    await refuse_unknown(db, raw)
    return []


async def refuse_unknown(db: Connection, raw: bytes) -> None:
    """Raise Refusal 404 if an account was never used or registered, and 503."""
    certificates = await _certified.one(db, raw)
    if certificates is None:
        raise errors.network_not_available()
    if not certificates.known:
        raise refusals.never_used()
