"""The names of row numbers in packed rows, as answers show them: the text of addresses and assets.

Until the index changes its numbering, a number always stands for the same name, so names are cached. One statement
looks up the missing names of a page.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from shared import address, packed, sql
from shared.ledger import AddressNo, AssetNo
from shared.sql import Connection

Answer = TypeVar("Answer")
Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_ADDRESSES = 60_000
MAX_ASSETS = 30_000
_MAX_READINGS = 3
_NUMBERINGS = 8  # of all networks, also on replicas that lag


class AssetName(msgspec.Struct, frozen=True):
    """An asset as answers name it, in hex; `full` is `<policy_id>.<asset_name>`."""

    policy_id: str
    name: str
    full: str


class Renumbered(Exception):
    """The numbering of the index differs from that of the rows: read them again."""


class _Recent(Generic[Key, Value]):
    """A cache of at most `max_entries`: when half of them are new, the other half is dropped."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._new: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        name = self._new.get(key)
        if name is None:
            name = self._old.get(key)
            if name is not None:
                self.add(key, name)
        return name

    def add(self, key: Key, value: Value) -> None:
        if len(self._new) >= self._max_entries // 2:
            self._old, self._new = self._new, {}
        self._new[key] = value


class _Cache:
    """The cached names of one numbering."""

    def __init__(self, numbering: UUID) -> None:
        self.numbering = numbering
        self.addresses = _Recent[AddressNo, str](MAX_ADDRESSES)
        self.assets = _Recent[AssetNo, AssetName](MAX_ASSETS)


class Names(msgspec.Struct, frozen=True):
    """The names of the numbers in some rows."""

    addresses: dict[AddressNo, str]
    assets: dict[AssetNo, AssetName]


async def until_consistent(read: Callable[[], Awaitable[Answer]]) -> Answer:
    """The result of `read`, which is repeated if the numbering changes between reading rows and names."""
    for _ in range(_MAX_READINGS - 1):
        with suppress(Renumbered):
            return await read()
    return await read()


async def resolve(
    db: Connection, numbering: UUID, outputs: Iterable[packed.Output], assets: Iterable[AssetNo] = ()
) -> Names:
    """The names of the numbers in outputs, and of further assets, all read under this numbering.

    Raises Renumbered.
    """
    cache = _cache_of(numbering)
    names = Names({}, {})
    missing_addresses, missing_assets = set[AddressNo](), set[AssetNo]()
    wanted = set(assets)
    for output in outputs:
        address_no = output.address_no
        if address_no not in names.addresses:
            shown = cache.addresses.get(address_no)
            if shown is None:
                missing_addresses.add(address_no)
            else:
                names.addresses[address_no] = shown
        if output.quantities:
            wanted.update(output.quantities)
    for asset_no in wanted:
        asset = cache.assets.get(asset_no)
        if asset is None:
            missing_assets.add(asset_no)
        else:
            names.assets[asset_no] = asset
    if missing_addresses or missing_assets:
        await _look_up(db, cache, names, missing_addresses, missing_assets)
    return names


async def addresses_of(db: Connection, numbering: UUID, numbers: Iterable[AddressNo]) -> dict[AddressNo, str]:
    """The addresses of numbers, read under this numbering. Raises Renumbered."""
    return (await resolve(db, numbering, [packed.Output(number, 0) for number in numbers])).addresses


async def _look_up(
    db: Connection, cache: _Cache, names: Names, addresses: set[AddressNo], assets: set[AssetNo]
) -> None:
    for row in await _names.all(db, list(addresses), list(assets), cache.numbering):
        if row.raw is not None:
            address_no = AddressNo(row.number)
            names.addresses[address_no] = shown = address.show(row.raw)
            cache.addresses.add(address_no, shown)
        elif row.policy_id is not None and row.asset_name is not None:
            asset_no, policy_id, name = AssetNo(row.number), row.policy_id.hex(), row.asset_name.hex()
            names.assets[asset_no] = asset = AssetName(policy_id, name, f"{policy_id}.{name}")
            cache.assets.add(asset_no, asset)
    if not (addresses <= names.addresses.keys() and assets <= names.assets.keys()):
        raise Renumbered


_cache_of = lru_cache(_NUMBERINGS)(_Cache)


class _NameRow(msgspec.Struct, frozen=True):
    number: int
    raw: bytes | None
    policy_id: bytes | None
    asset_name: bytes | None


_sql = sql.beside(__file__)
_names = _sql.query("names", _NameRow)
