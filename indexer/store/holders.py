"""Holders in the database. Everything here runs inside a commit of its caller.

Long lists of holders are counted in buckets (buckets.sql).
"""

from collections import Counter
from collections.abc import Iterable

import asyncpg
import msgspec

from indexer.rows.amounts import Amounts
from indexer.store.buckets import Buckets
from shared import sql
from shared.ledger import AddressNo, AssetNo


async def move(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Move quantities, and count the buckets that holders leave and enter."""
    of_accounts, of_credentials = Counter[tuple[AssetNo, int]](), Counter[tuple[AssetNo, AddressNo]]()
    for (asset_no, address_no), quantity in amounts.holders.items():
        of_accounts[asset_no, amounts.accounts[address_no]] += quantity
        if address_no in amounts.credentials:
            of_credentials[asset_no, amounts.credentials[address_no]] += quantity
    await _ADDRESSES.move(db, amounts.holders.items())
    await _ACCOUNTS.move(db, of_accounts.items())
    # Quantities are passed as text because they may exceed bigint.
    moves = [(*key, str(quantity)) for key, quantity in sorted(of_credentials.items()) if quantity]
    if moves:
        await _move_credential_holders.run(db, *sql.columns(moves))


async def fill(db: asyncpg.Connection) -> None:
    """Count every bucket, at the end of bulk."""
    for holders in (_ADDRESSES, _ACCOUNTS):
        await holders.fill(db)


class _HolderChange(msgspec.Struct, frozen=True):
    """The quantity of an asset or policy that an owner, an address or account, received (above 0) or spent, and the
    quantity that the owner holds after it.
    """

    of_policy: bool
    held_no: int
    owner: int
    quantity: str
    after: str


class _Holders:
    """The holders of assets and of policies by address or by account."""

    def __init__(self, holder: str, owner_no: str) -> None:
        self._move = _sql.query("move_holders", _HolderChange, holder=holder, owner_no=owner_no)
        of_both = [BUCKETS[holder], BUCKETS[f"policy_{holder}"]]
        self._move_buckets = [buckets.move(_sql.text("places")) for buckets in of_both]
        self._fill_buckets = [buckets.fill() for buckets in of_both]

    async def move(self, db: asyncpg.Connection, moved: Iterable[tuple[tuple[AssetNo, int], int]]) -> None:
        """Move quantities, each given by asset_no and owner, and count the buckets that holders leave and enter."""
        # Quantities are passed as text because they may exceed bigint.
        moves = [(*key, str(quantity)) for key, quantity in sorted(moved) if quantity]
        if not moves:
            return
        of_long_lists = await self._move.all(db, *sql.columns(moves))
        for of_policy, move_buckets in enumerate(self._move_buckets):
            rows = [
                (row.held_no, row.owner, row.quantity, row.after) for row in of_long_lists if row.of_policy == of_policy
            ]
            if rows:
                await move_buckets.run(db, *sql.columns(rows))

    async def fill(self, db: asyncpg.Connection) -> None:
        """Count every bucket."""
        for fill_buckets in self._fill_buckets:
            await fill_buckets.run(db)


def _buckets(holder: str, held_no: str, owner_no: str) -> Buckets:
    return Buckets(
        f"{holder}_bucket",
        key=held_no,
        rank="lowest_quantity",
        tie=f"lowest_{owner_no}",
        rows=_sql.text("listed", holder=holder, held_no=held_no, owner_no=owner_no),
        sums={"holders": "count(*)"},
        lowest="0",
        lowest_tie="0",
        highest="'Infinity'",
    )


_sql = sql.beside(__file__)
BUCKETS = {
    "holder": _buckets("holder", "asset_no", "address_no"),
    "policy_holder": _buckets("policy_holder", "policy_no", "address_no"),
    "account_holder": _buckets("account_holder", "asset_no", "account_no"),
    "policy_account_holder": _buckets("policy_account_holder", "policy_no", "account_no"),
}
"""By the table of the holders in the lists."""
_move_credential_holders = _sql.command("move_credential_holders")
_ADDRESSES = _Holders("holder", "address_no")
_ACCOUNTS = _Holders("account_holder", "account_no")
