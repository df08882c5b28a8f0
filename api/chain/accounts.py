"""Stake accounts: what their addresses hold, their stake, rewards, delegations and transactions."""

from typing import Annotated, Literal

import msgspec

from api import errors
from api.answers import ChainPage, CursorPaging, Instant, LedgerAnswer, Paging, PlacePaging, Quantity
from api.ask import ChainAsk
from api.chain import owners, transactions, utxos
from api.chain.addresses import show_credential
from api.chain.certificates import LedgerCredential, Representative, show_representative
from api.chain.owners import (
    AFTER,
    FROM_PLACE,
    Holding,
    HoldingList,
    OwnerSummary,
    Place,
    PlaceKind,
    Position,
)
from api.chain.pools import show_pool_id
from api.chain.tip import ListRow, Tip
from api.chain.tip import of_rows as tip_of
from api.chain.transactions import DetailedList, HistoryEntry, ShortList, Transaction
from api.chain.utxos import UnspentList, UnspentOutput
from api.parameters import ListQuestion, Question, Text
from shared import address, sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, slot_of
from shared.network import Network
from shared.sql import Connection

StakeAddress = Annotated[str, Text(address.MAX_STAKE_TEXT_LENGTH, message=errors.invalid_stake_address)]


class AccountQuestion(Question, frozen=True, kw_only=True):
    """A stake account."""

    stake_address: StakeAddress


class AccountList(ListQuestion, frozen=True, kw_only=True):
    """A page of a list of an account."""

    stake_address: StakeAddress


class AccountAddresses(AccountList, frozen=True, kw_only=True):
    """A page of the addresses of an account."""

    cursor: Annotated[str | None, Text(address.MAX_TEXT_LENGTH)] = None


class AccountAssets(HoldingList, frozen=True, kw_only=True):
    """A page of the assets of an account."""

    stake_address: StakeAddress


class AccountDelegations(AccountList, frozen=True, kw_only=True):
    """A page of the delegations of an account."""

    cursor: Annotated[Place | None, PlaceKind()] = None


class AccountOutputs(UnspentList, frozen=True, kw_only=True):
    """A page of the unspent outputs of an account."""

    stake_address: StakeAddress


class AccountTransactions(ShortList, frozen=True, kw_only=True):
    """A page of the short list of an account's transactions."""

    stake_address: StakeAddress


class AccountTransactionsInFull(DetailedList, frozen=True, kw_only=True):
    """A page of the detailed list of an account's transactions."""

    stake_address: StakeAddress


class Account(OwnerSummary, frozen=True):
    """A stake account and what its addresses hold. All counts of an account that was never used are 0.

    `address_count` is the number of its addresses that were ever used. `rewards` is the amount that can be withdrawn,
    as last read from the ledger. `registered` is null if the index begins after the genesis and has seen no certificate
    of the account. `active_epoch_no` is the first epoch in which the delegation to `pool_id` is active.
    `delegate_representative` votes for the account; it is null if the account never delegated its vote, or if the
    representative has retired since.
    """

    stake_address: str
    stake_credential: LedgerCredential
    registered: bool | None
    rewards: Quantity
    pool_id: str | None
    active_epoch_no: int | None
    delegate_representative: Representative | None
    address_count: int
    withdrawal_count: int


class AccountAddress(msgspec.Struct, frozen=True):
    """A payment address of an account."""

    address: str


class Delegation(msgspec.Struct, frozen=True):
    """A delegation to a pool, and the first epoch in which it is active.

    The transaction is null if the delegation is part of the genesis.
    """

    pool_id: str
    active_epoch_no: int
    transaction: Position | None


class AccountWithdrawal(msgspec.Struct, frozen=True):
    """Rewards withdrawn by a transaction."""

    tx_hash: str
    slot_no: int
    block_time: Instant
    lovelace: Quantity


class _AccountRow(msgspec.Struct, frozen=True):
    partial: bool
    last_event: Literal["registration", "deregistration", "delegation"] | None
    rewards: int
    pool_id: bytes | None
    active_epoch_no: int | None
    representative: bytes | None
    address_count: int
    withdrawal_count: int


class _AddressRow(ListRow, frozen=True):
    raw: bytes | None  # null in the row of an empty page


class _DelegationRow(ListRow, frozen=True):
    pool_id: bytes | None  # null, like everything below, in the row of an empty page
    epoch_no: int
    tx_id: int
    place: int
    tx_hash: bytes | None


class _WithdrawalRow(ListRow, frozen=True):
    total: int
    tx_id: int | None  # null, like everything below, in the row of an empty page
    tx_hash: bytes
    lovelace: str


_sql = sql.beside(__file__)
_account = _sql.query("account", _AccountRow)
addresses_pages = {order: _sql.query("addresses", _AddressRow, **direction) for order, direction in AFTER.items()}
delegations_pages = {
    order: _sql.query("delegations", _DelegationRow, **direction) for order, direction in FROM_PLACE.items()
}
withdrawals_page = _sql.query("withdrawals", _WithdrawalRow)


async def get_account(ask: ChainAsk[AccountQuestion]) -> LedgerAnswer[Account]:
    """Get a stake account.

    The answer has its pool and representative, its rewards, what its addresses hold, and its first and last
    transaction.
    """
    raw = owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.snapshot() as db:
        account, tip = await read_with_tip(db, raw, ask.network)
    return LedgerAnswer(data=account, last_updated=tip.last_updated(ask.network))


async def read_with_tip(db: Connection, raw: bytes, network: Network) -> tuple[Account, Tip]:
    """An account, all zeros if it was never used, and the tip, in a snapshot. Raises Refusal if nothing is indexed."""
    summary, tip = await owners.summary(db, "account", raw, network)
    row = await _account.one(db, raw)
    assert row is not None, "the summary has found the network"
    account = Account(
        address.show_stake(raw),
        show_credential(address.credential_of(raw)),
        None if row.last_event is None and row.partial else row.last_event in ("registration", "delegation"),
        row.rewards,
        None if row.pool_id is None else show_pool_id(row.pool_id),
        row.active_epoch_no,
        None if row.representative is None else show_representative(row.representative),
        row.address_count,
        row.withdrawal_count,
        **msgspec.structs.asdict(summary),
    )
    return account, tip


async def list_account_addresses(ask: ChainAsk[AccountAddresses]) -> ChainPage[AccountAddress, PlacePaging]:
    """List the addresses of a stake account that were ever used, in the order of their first use.

    A fork may undo the first use of the address that a cursor names. It then comes after all that are used.
    """
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)
    passed = None if asked.cursor is None else _passed(asked.cursor, raw, ask.network)
    async with ask.connection() as db:
        rows = await addresses_pages[asked.order].all(db, raw, asked.limit, asked.offset, passed)
    last_updated = tip_of(rows).last_updated(ask.network)
    raws = [row.raw for row in rows[: asked.limit] if row.raw is not None]
    data = [AccountAddress(text) for text in address.show_all(raws)]
    return ChainPage(
        data=data,
        pagination=owners.paging(asked, rows, lambda: data[-1].address),
        last_updated=last_updated,
    )


async def list_account_utxos(ask: ChainAsk[AccountOutputs]) -> ChainPage[UnspentOutput, PlacePaging]:
    """List the unspent outputs of a stake account.

    With `asset`, only outputs that hold it are listed.
    """
    return await utxos.unspent(ask, "account", owners.parse_stake(ask.question.stake_address, ask.network))


async def list_account_assets(ask: ChainAsk[AccountAssets]) -> ChainPage[Holding, PlacePaging]:
    """List the assets in the unspent outputs of a stake account."""
    return await owners.holdings(ask, "account", owners.parse_stake(ask.question.stake_address, ask.network))


async def list_account_transaction_history(ask: ChainAsk[AccountTransactions]) -> ChainPage[HistoryEntry, CursorPaging]:
    """List the transactions of a stake account.

    A transaction is listed if it spends from an address of the account or pays to one.
    """
    return await transactions.history_of(ask, "account", owners.parse_stake(ask.question.stake_address, ask.network))


async def list_account_transactions(ask: ChainAsk[AccountTransactionsInFull]) -> ChainPage[Transaction, CursorPaging]:
    """List the transactions of a stake account with their inputs and outputs."""
    return await transactions.detailed_of(ask, "account", owners.parse_stake(ask.question.stake_address, ask.network))


async def list_account_delegations(ask: ChainAsk[AccountDelegations]) -> ChainPage[Delegation, PlacePaging]:
    """List the delegations of a stake account to pools, including past ones."""
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)
    async with ask.connection() as db:
        start = owners.start_after(asked.cursor, asked.order)
        rows = await delegations_pages[asked.order].all(db, raw, asked.limit, asked.offset, *start)

    def cursor() -> str:
        last = rows[asked.limit - 1]
        return owners.show_place(last.tx_id, last.place)

    return ChainPage(
        data=[
            Delegation(
                show_pool_id(row.pool_id),
                row.epoch_no + ACTIVE_AFTER_EPOCHS,
                owners.position(row.tx_id, row.tx_hash, ask.network),
            )
            for row in rows[: asked.limit]
            if row.pool_id is not None
        ],
        pagination=owners.paging(asked, rows, cursor),
        last_updated=tip_of(rows).last_updated(ask.network),
    )


async def list_account_withdrawals(ask: ChainAsk[AccountList]) -> ChainPage[AccountWithdrawal, Paging]:
    """List the withdrawals of rewards from a stake account."""
    asked, raw = ask.question, owners.parse_stake(ask.question.stake_address, ask.network)
    newest_first = asked.order == "desc"
    async with ask.connection() as db:
        rows = await withdrawals_page.all(db, raw, asked.limit, asked.offset, newest_first)
    tip = tip_of(rows)
    withdrawals = [_shown(row, row.tx_id, ask.network) for row in rows if row.tx_id is not None]
    total = rows[0].total
    return ChainPage(
        data=withdrawals[::-1] if newest_first else withdrawals,
        pagination=Paging(asked.limit, asked.offset, total, has_more=asked.offset + asked.limit < total),
        last_updated=tip.last_updated(ask.network),
    )


def _passed(cursor: str, account: bytes, network: Network) -> bytes:
    """The address of the account that a cursor names."""
    try:
        raw = address.parse(cursor, network)
    except (address.ForeignAddress, address.InvalidAddress) as cause:
        raise owners.wrong_cursor() from cause
    if address.stake_of(raw) != account:
        raise owners.wrong_cursor()
    return raw


def _shown(row: _WithdrawalRow, tx_id: int, network: Network) -> AccountWithdrawal:
    slot_no = slot_of(tx_id)
    return AccountWithdrawal(row.tx_hash.hex(), slot_no, network.slot_time(slot_no), int(row.lovelace))
