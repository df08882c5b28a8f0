"""The credentials of each address, the policy of each asset, which assets are reference tokens, and which owners have
long histories: files that all processes of verify map.

A part of history names tens of thousands of addresses and assets. Looking up each in a complete list takes a fraction
of the time of a query for them. The lists grow with the chain, to some 350 MB for mainnet, but processes share them,
and the system may reclaim their memory.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from indexer.verify.keys import Ints, Mask, places_in
from indexer.verify.moments import Moment
from shared import metadata, sql
from shared.ledger import AddressNo

_CHUNK_NUMBERS = 1 << 20
_ACCOUNTS, _CREDENTIALS = "accounts", "credentials"
_POLICIES, _TOKENS = "policies", "reference-tokens"
_LONG_ADDRESSES, _LONG_ACCOUNTS = "long-addresses", "long-accounts"


class Numbers:
    """The lists of one snapshot.

    The first has for each address_no the stake_no of its stake credential plus 1, or 0 without one, the second its
    credential_no plus 1, or 0. The third has for each asset_no its policy_no. The fourth has a byte for each asset_no,
    1 for a reference token. The last two are the owners of long histories, in ascending order after -1.
    """

    def __init__(self, folder: Path) -> None:
        self._accounts = np.memmap(folder / _ACCOUNTS, np.int32, "r")
        self._credentials = np.memmap(folder / _CREDENTIALS, np.int32, "r")
        self._policies = np.memmap(folder / _POLICIES, np.int32, "r")
        self._tokens = np.memmap(folder / _TOKENS, np.uint8, "r")
        self._long_addresses = np.memmap(folder / _LONG_ADDRESSES, np.int64, "r")
        self._long_accounts = np.memmap(folder / _LONG_ACCOUNTS, np.int64, "r")

    def account_nos(self, address_no: Ints) -> Ints:
        """The accounts of some addresses, -1 for one that has none or no row. Other checks report the latter."""
        return _at(self._accounts, address_no) - 1

    def credential_nos(self, address_no: Ints) -> Ints:
        """The credential_no of some addresses, -1 for one that has none or no row."""
        return _at(self._credentials, address_no) - 1

    def policy_nos(self, asset_no: Ints) -> Ints:
        """The policies of some assets, 0 for one that has no row, which other checks report."""
        return _at(self._policies, asset_no)

    def are_reference_tokens(self, asset_no: Ints) -> Mask:
        """Which of some assets are reference tokens."""
        found: Mask = _at(self._tokens, asset_no) == 1
        return found

    def are_long_addresses(self, address_no: Ints) -> Mask:
        """Which of some addresses have long histories."""
        return places_in(self._long_addresses, address_no)[1]

    def are_long_accounts(self, stake_no: Ints) -> Mask:
        """Which of some accounts have long histories; -1 stands for none."""
        return places_in(self._long_accounts, stake_no)[1] & (stake_no >= 0)


@lru_cache(maxsize=1)
def in_folder(folder: Path) -> Numbers:
    """The lists in a folder."""
    return Numbers(folder)


async def write(moment: Moment, folder: Path) -> None:
    """Write the files of a snapshot to a folder. Whether a history is long is told without new transactions."""
    db = moment.db
    ends = await _ends.only(db)
    accounts = np.memmap(folder / _ACCOUNTS, np.int32, "w+", shape=ends.address_nos or 1)
    credentials = np.memmap(folder / _CREDENTIALS, np.int32, "w+", shape=ends.address_nos or 1)
    for first in range(0, ends.address_nos, _CHUNK_NUMBERS):
        last = min(first + _CHUNK_NUMBERS, ends.address_nos)
        for numbers, column in ((accounts, "stake_no"), (credentials, "credential_no")):
            found = await _of_addresses[column].only(db, first, last)
            if found.address_nos:
                numbers[found.address_nos] = np.array(found.numbers) + 1
    policies = np.memmap(folder / _POLICIES, np.int32, "w+", shape=ends.asset_nos or 1)
    for first in range(0, ends.asset_nos, _CHUNK_NUMBERS):
        of_assets = await _policies.only(db, first, min(first + _CHUNK_NUMBERS, ends.asset_nos))
        policies[of_assets.asset_nos] = of_assets.policy_nos
    tokens = np.memmap(folder / _TOKENS, np.uint8, "w+", shape=ends.asset_nos or 1)
    tokens[await _reference_tokens.all(db, metadata.REFERENCE_PREFIX)] = 1
    for name, query in _LONG.items():
        owners = [-1, *await query.all(db, moment.first_new)]
        np.memmap(folder / name, np.int64, "w+", shape=len(owners))[:] = owners


def _at(values: npt.NDArray[Any], number: Ints) -> Ints:
    """The values at these places, 0 beyond the last."""
    listed = number < len(values)
    return np.where(listed, values[np.where(listed, number, 0)], 0).astype(np.int64)


class _Ends(msgspec.Struct, frozen=True):
    address_nos: int
    asset_nos: int


class _OfAddresses(msgspec.Struct, frozen=True):
    address_nos: list[AddressNo]
    numbers: list[int]


class _Policies(msgspec.Struct, frozen=True):
    asset_nos: list[int]
    policy_nos: list[int]


_sql = sql.beside(__file__)
_ends = _sql.query("ends", _Ends)
_of_addresses = {
    column: _sql.query("of_addresses", _OfAddresses, column=column) for column in ("stake_no", "credential_no")
}
_policies = _sql.query("policies", _Policies)
_reference_tokens = _sql.values("reference_tokens", int)
_LONG = {
    _LONG_ADDRESSES: _sql.values("long_histories", int, history="address_tx", owner_no="address_no"),
    _LONG_ACCOUNTS: _sql.values("long_histories", int, history="account_tx", owner_no="stake_no"),
}
