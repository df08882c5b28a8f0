"""What addresses and accounts with long histories have spent, and what is spent from other addresses of payment
credentials than their first. Everything here runs inside a commit of its caller.

Blocks add to the rows of an owner whose history stays long, and a rollback subtracts. When a history becomes long, what
its transactions spend is added up once; when a rollback makes it short again, its rows are deleted. The other addresses
of a payment credential have no history that contains all that they spend, so their rows are kept from the first on.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import asyncpg
import msgspec

from indexer.rows.amounts import Amounts, SentBy
from indexer.store.histories import Lengths, LongHistories
from shared import packed, sql
from shared.ledger import LOVELACE_NO, AddressNo

_TRANSACTIONS_AT_ONCE = 16
"""Few, since the inputs of one transaction may take megabytes: 243 of them with 880 assets each fit into one."""


async def move(db: asyncpg.Connection, amounts: Amounts, lengths: Lengths) -> None:
    """Move what is spent from addresses and accounts; their histories have been changed, and have these lengths."""
    addresses, accounts = lengths.addresses, lengths.accounts
    sent = amounts.sent(addresses.kept, accounts.kept)
    await _ADDRESSES.move(db, sent.addresses, addresses)
    await _ACCOUNTS.move(db, sent.accounts, accounts)
    await _change(_move_credentials, db, sent.credentials)


class _Owners:
    """Addresses or accounts: the table of what they have spent, the column of their number, and their history."""

    def __init__(self, sent: str, owner_no: str, history: str, *, are_accounts: bool) -> None:
        self._are_accounts = are_accounts
        self._move = _sql.command("move_sent", sent=sent, owner_no=owner_no)
        self._transactions = _sql.query("transactions", _Transaction, owner_no=owner_no, history=history)

    async def move(self, db: asyncpg.Connection, sent: SentBy, long: LongHistories) -> None:
        """Add what is spent from the owners whose histories stay long, and all of those whose histories become so."""
        if long.begun:
            sent.update(await self._added_up(db, long.begun))
        await _change(self._move, db, sent, long.ended)

    async def _added_up(self, db: asyncpg.Connection, owners: Collection[int]) -> SentBy:
        """What all transactions of some owners have spent from them."""
        found: SentBy = Counter()
        async for part in self._transactions.parts(db, list(owners), rows=_TRANSACTIONS_AT_ONCE):
            accounts = await self._accounts(db, part)
            for owner, source in _spent(part):
                if owner == (accounts.get(source.address_no) if self._are_accounts else source.address_no):
                    found[owner, LOVELACE_NO] += source.lovelace
                    for asset_no, quantity in source.quantities.items():
                        found[owner, asset_no] += quantity
        return found

    async def _accounts(self, db: asyncpg.Connection, part: "Sequence[_Transaction]") -> dict[AddressNo, int]:
        """The accounts of the addresses that transactions spend from; empty if the owners are addresses."""
        if not self._are_accounts:
            return {}
        among = {source.address_no for _, source in _spent(part)}
        return {row.address_no: row.stake_no for row in await _accounts.all(db, list(among))}


async def _change(move: sql.Command, db: asyncpg.Connection, sent: SentBy, ended: Collection[int] = ()) -> None:
    """Add to the rows of some owners, and delete those of others."""
    # Quantities are passed as text because they may exceed bigint.
    rows = [(*key, str(quantity)) for key, quantity in sorted(sent.items()) if quantity]
    if rows or ended:
        await move.run(db, list(ended), *sql.columns(rows, empty=3))


def _spent(part: "Sequence[_Transaction]") -> Iterator[tuple[int, packed.Output]]:
    """The owners of transactions, and the outputs that each spends, without those from before the first indexed block.

    NOTE: one at a time, since together they may take gigabytes.
    """
    for tx in part:
        for each in packed.each_input(tx.inputs):
            if each.source is not None:
                yield tx.owner, each.source


class _Account(msgspec.Struct, frozen=True):
    address_no: AddressNo
    stake_no: int


class _Transaction(msgspec.Struct, frozen=True):
    owner: int
    inputs: bytes


_sql = sql.beside(__file__)
_accounts = _sql.query("accounts", _Account)
_move_credentials = _sql.command("move_sent", sent="credential_sent", owner_no="credential_no")
_ADDRESSES = _Owners("address_sent", "address_no", "address_tx", are_accounts=False)
_ACCOUNTS = _Owners("account_sent", "stake_no", "account_tx", are_accounts=True)
