"""The entries of derived tables that Postgres adds up: the other side of what verify compares (entries.py).

expected.py has those that history says they must have.
"""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from indexer.verify.entries import Digest, Digests, nothing
from indexer.verify.moments import Moment, Moments
from shared import sql

Quantities = Mapping[tuple[int, int], str]
"""Quantities by pair, as the database shows them."""
_UNLIKE_ANY = -1


class Stored:
    """The entries of a table."""

    def __init__(self, entries: str) -> None:
        self._digest = _sql.query("digest", _Partition, entries=entries)
        self._listed = _sql.query("listed", _Entry, entries=entries)

    async def digest(self, moment: Moment) -> Digest:
        """The digest of the entries up to the noted block."""
        found = nothing()
        for row in await self._digest.all(moment.db, moment.first_new, moment.next_new):
            found[row.partition] = int(row.digest) if row.digest and row.digest.isdigit() else _UNLIKE_ANY
        return found

    async def listed(self, moment: Moment, partitions: Sequence[int]) -> Quantities:
        """The entries in some partitions up to the noted block."""
        rows = await self._listed.all(moment.db, moment.first_new, moment.next_new, partitions)
        return {(row.first, row.second): row.quantity for row in rows}


async def make_functions(db: asyncpg.Connection) -> None:
    """Create the temporary functions and the view that the statements of verify need."""
    for command in _MAKE:
        await command.run(db)


async def of_changing(moment: Moment) -> Digests:
    """The digests of the tables whose rows change with every block."""
    return {table: await stored.digest(moment) for table, stored in CHANGING.items()}


async def of_growing(moments: Moments) -> Digests:
    """The digests of tables whose rows tell which block added or changed them."""
    found = dict[str, Digest]()
    for table, stored in GROWING.items():
        async with moments.next() as moment:
            found[table] = await stored.digest(moment)
    return found


class _Partition(msgspec.Struct, frozen=True):
    partition: int
    digest: str | None


class _Entry(msgspec.Struct, frozen=True):
    first: int
    second: int
    quantity: str


_sql = sql.beside(__file__)
_MAKE = tuple(_sql.command(name) for name in ("make_key_of", "make_weight_of", "make_left_output"))


def _holders(holder: str, held_no: str, owner_no: str) -> Stored:
    return Stored(_sql.text("holders", holder=holder, held_no=held_no, owner_no=owner_no))


CHANGING = {
    "holder": _holders("holder", "asset_no", "address_no"),
    "policy_holder": _holders("policy_holder", "policy_no", "address_no"),
    "account_holder": _holders("account_holder", "asset_no", "account_no"),
    "credential_holder": _holders("credential_holder", "asset_no", "credential_no"),
    "policy_account_holder": _holders("policy_account_holder", "policy_no", "account_no"),
    "address_sent": _holders("address_sent", "asset_no", "address_no"),
    "account_sent": _holders("account_sent", "asset_no", "stake_no"),
    "credential_sent": _holders("credential_sent", "asset_no", "credential_no"),
    **{table: Stored(_sql.text(table)) for table in ("utxo", "stake", "address_count")},
}
GROWING = {table: Stored(_sql.text(table)) for table in ("mint", "reference_output", "script_output")}
