"""The stake credential of each address, and which assets are reference tokens: files that all processes of verify map.

A part of history names tens of thousands of addresses and assets. Looking up each in a complete list takes a fraction
of the time of a query for them. The lists grow with the chain, to some 300 MB for mainnet, but processes share them,
and the system may reclaim their memory.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from operator import mul
from pathlib import Path

import asyncpg
import msgspec

from shared import metadata, sql
from shared.ledger import AddressNo, AssetNo, StakeNo

_CHUNK_ADDRESSES = 1 << 20
_ACCOUNTS, _TOKENS = "accounts", "reference-tokens"


class Numbers:
    """The lists of one snapshot.

    The first has for each address_no the stake_no of its stake credential plus 1, or 0 without one: the square root of
    keys.square_of. The second has a byte for each asset_no, 1 for a reference token.
    """

    def __init__(self, folder: Path) -> None:
        self._accounts = memoryview(_mapped(folder / _ACCOUNTS)).cast("i")
        self._tokens = _mapped(folder / _TOKENS)

    def squares_of_accounts(self, touched: Sequence[Collection[AddressNo]]) -> list[int]:
        """For each of some sets of addresses, the sum of square_of over the accounts of its addresses."""
        account_of = self._accounts.__getitem__
        try:
            of_each: list[set[int]] = [set(map(account_of, addresses)) for addresses in touched]
        except IndexError:  # of an address without a row, which other checks report
            last = len(self._accounts)
            of_each = [{account_of(each) for each in addresses if each < last} for addresses in touched]
        return [sum(map(mul, accounts, accounts)) for accounts in of_each]

    def reference_tokens(self, assets: Iterable[int]) -> set[int]:
        """Those of some assets that are reference tokens."""
        tokens, last = self._tokens, len(self._tokens)
        return {asset_no for asset_no in assets if asset_no < last and tokens[asset_no]}


@lru_cache(maxsize=1)
def of(folder: Path) -> Numbers:
    """The lists in a folder."""
    return Numbers(folder)


async def write(db: asyncpg.Connection, folder: Path) -> None:
    """Write the files of the open snapshot to a folder."""
    ends = await _ends.one(db)
    assert ends is not None, "an aggregate has one row"
    with (folder / _ACCOUNTS).open("wb") as file:
        file.truncate((ends.address_nos or 1) * array("i").itemsize)
        for first in range(0, ends.address_nos, _CHUNK_ADDRESSES):
            file.seek(first * array("i").itemsize)
            file.write(await _accounts_from(db, first, min(first + _CHUNK_ADDRESSES, ends.address_nos)))
    with (folder / _TOKENS).open("wb+") as file:
        file.truncate(ends.asset_nos or 1)
        with mmap(file.fileno(), 0) as tokens:
            for found in await _reference_tokens.all(db, metadata.REFERENCE_PREFIX):
                tokens[found.asset_no] = 1


async def _accounts_from(db: asyncpg.Connection, first: int, end: int) -> "array[int]":
    found = await _accounts.one(db, first, end)
    assert found is not None, "an aggregate has one row"
    if not found.address_nos:
        return array("i")
    accounts = array("i", bytes((end - first) * array("i").itemsize))
    for address_no, stake_no in zip(found.address_nos, found.stake_nos, strict=True):
        accounts[address_no - first] = stake_no + 1
    return accounts


def _mapped(path: Path) -> mmap:
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


class _Ends(msgspec.Struct, frozen=True):
    address_nos: int
    asset_nos: int


class _Accounts(msgspec.Struct, frozen=True):
    address_nos: list[AddressNo]
    stake_nos: list[StakeNo]


class _AssetNo(msgspec.Struct, frozen=True):
    asset_no: AssetNo


_sql = sql.beside(__file__)
_ends = _sql.query("ends", _Ends)
_accounts = _sql.query("accounts", _Accounts)
_reference_tokens = _sql.query("reference_tokens", _AssetNo)
