"""Long lists of an owner, for `bench.pages`: unspent outputs with an asset, assets, addresses and delegations."""

from collections.abc import Callable, Sequence
from hashlib import sha224
from typing import Any

import asyncpg
import msgspec

from api.chain import accounts, owners, utxos
from shared import sql
from shared.ledger import tx_id_of

ENTRIES = 300_000
"""The number of entries in each list."""

_POLICY, _ACCOUNT, _CREDENTIAL = bytes([2]) * 28, b"\xe1" + bytes(28), bytes(28)
_FILL: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("INSERT INTO policy (policy_no, policy_id) VALUES (2, $1)", (_POLICY,)),
    ("INSERT INTO stake (stake_no, raw) VALUES (1, $1)", (_ACCOUNT,)),
    (
        "INSERT INTO asset (asset_no, policy_no, fingerprint, name, first_tx_id)"
        " SELECT 1 + n, 2, n, int4send(n), 0 FROM generate_series(1, $1::integer) AS n",
        (ENTRIES,),
    ),
    (
        "INSERT INTO holder (asset_no, address_no, quantity)"
        " SELECT 1 + n, 1, 5 FROM generate_series(1, $1::integer) AS n",
        (ENTRIES,),
    ),
    ("INSERT INTO utxo_bucket VALUES (1, -9223372036854775808, 0, $1::integer, 0)", (ENTRIES,)),
    ("INSERT INTO utxo_asset SELECT 1, 1, tx_id, 1 FROM tx ORDER BY tx_id OFFSET 1 LIMIT $1", (ENTRIES,)),
    (
        "INSERT INTO address (address_no, stake_no, raw)"
        " SELECT 10 + n, 1, '\\x01' || sha224(int4send(n)) || $2::bytea FROM generate_series(1, $1::integer) AS n",
        (ENTRIES, _CREDENTIAL),
    ),
    ("INSERT INTO address_tx SELECT 10 + n, 0, int8send(n) FROM generate_series(1, $1::integer) AS n", (ENTRIES,)),
    (
        "INSERT INTO stake_event (tx_id, stake_no, pool_no, epoch_no, place, kind)"
        " SELECT tx_id, 1, 1, 0, 0, 'delegation' FROM tx ORDER BY tx_id OFFSET 1 LIMIT $1",
        (ENTRIES,),
    ),
)


class OwnerList(msgspec.Struct, frozen=True):
    """A list, oldest first: its statement, its owner, the cursor of its nth entry, the statement's other arguments."""

    name: str
    statement: sql.Query[Any]
    owner: bytes
    cursor: Callable[[int], tuple[object, ...]]
    rest: tuple[object, ...] = ()

    async def page(self, db: asyncpg.Connection, limit: int, depth: int, *, by_cursor: bool) -> Sequence[Any]:
        """The page after `depth` entries."""
        at_cursor = by_cursor and depth > 0
        cursor = self.cursor(depth) if at_cursor else (None,) * len(self.cursor(1))
        return await self.statement.all(db, self.owner, limit, 0 if at_cursor else depth, *cursor, *self.rest)


def lists(busy: bytes) -> tuple[OwnerList, ...]:
    """The lists of a filled database, in which the busy address of `bench.pages` owns everything."""
    return (
        OwnerList(
            "unspent outputs with an asset",
            utxos.unspent_of_asset_pages["address", "asc"],
            busy,
            lambda n: (tx_id_of(n // 20 * 20, n % 20), 2),
            (bytes(28), b"token"),
        ),
        OwnerList("assets", owners.holdings_pages["address", "asc"], busy, lambda n: (_POLICY, n.to_bytes(4))),
        OwnerList(
            "addresses of an account",
            accounts.addresses_pages["asc"],
            _ACCOUNT,
            lambda n: (b"\x01" + sha224(n.to_bytes(4)).digest() + _CREDENTIAL,),
        ),
        OwnerList(
            "delegations of an account",
            accounts.delegations_pages["asc"],
            _ACCOUNT,
            lambda n: (tx_id_of(n // 20 * 20, n % 20), 1),
        ),
    )


async def fill(db: asyncpg.Connection) -> None:
    """Add the lists to the database of `bench.pages`."""
    for statement, arguments in _FILL:
        await db.execute(statement, *arguments)
    await db.execute("VACUUM ANALYZE")
