"""Bounded caches of the database: numbers of byte strings, and unspent outputs.

They also contain data that is prepared but not committed, so a batch can be prepared while the previous one is written.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import filterfalse
from struct import Struct
from typing import Generic, TypeVar, cast

import msgspec

from indexer.rows import tables
from shared import packed, sql
from shared.address import payment_hash_of, stake_of
from shared.ledger import SCRIPT_KEY_BYTES, AddressNo, ScriptKey, StakeNo, TxId
from shared.packed import OutputKey, Quantities
from shared.sql import Connection

Key = TypeVar("Key")
Value = TypeVar("Value")
No = TypeVar("No", bound=int)
"""The row numbers of one kind."""

UNCOMMITTED_PARTS = 2
"""How many parts of batches may be uncommitted while the next is looked up: one is being written, the other is being
built or is queued.
"""

MAX_OUTPUTS = 500_000
MAX_NUMBERS = 500_000
MAX_ADDRESSES = 500_000
MAX_CREDENTIALS = 100_000


class ResolvedOutput(msgspec.Struct, frozen=True, gc=False):
    """An output with the row numbers of its address, of the credentials of that, and of its assets.

    `tx_id` is that of the transaction that made it at `index`, or of the genesis output. `packed` is packed.pack_output
    of it, and `references` counts its rows in reference_output and script_output. `script_key` is that of the script
    that locks it, None if none does.
    """

    tx_id: TxId
    index: int
    packed: bytes
    lovelace: int
    address_no: AddressNo
    stake_no: StakeNo | None
    credential_no: AddressNo | None
    quantities: Quantities
    references: int
    script_key: ScriptKey | None = None


class Recent(dict[Key, Value]):
    """A dict of at most about `max_entries`. Its user calls `trim`, which forgets the older half."""

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries
        self._older: dict[Key, Value] = {}
        self._parts = 0

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._older[key]
        return value

    def unknown(self, keys: Iterable[Key]) -> set[Key]:
        """The keys that have no entry."""
        return set(filterfalse(self._older.__contains__, filterfalse(self.__contains__, keys)))

    @property
    def is_full(self) -> bool:
        """Whether the newer half is full."""
        return len(self) > self._max_entries // 2

    def get_many(self, keys: list[Key]) -> list[Value]:
        """The value of each key, in the same order."""
        return list(map(self.__getitem__, keys))

    def forget(self, keys: Iterable[Key]) -> None:
        """Forget the entries of these keys. After a rollback, both halves may have one."""
        for key in keys:
            self.pop(key, None)
            self._older.pop(key, None)

    def trim(self) -> None:
        """Forget older entries if the cache is full. Call it once for each part of a batch, before the part's look-ups.

        Entries of the last UNCOMMITTED_PARTS parts are kept, provided that their rows are built.
        """
        self._parts += 1
        if self.is_full and self._parts >= UNCOMMITTED_PARTS:
            self._older, self._parts = dict(self), 0
            self.clear()


class NumberRow(msgspec.Struct, Generic[No], frozen=True):
    """A byte string and its row number."""

    raw: bytes
    number: No


class Numbers(Recent[bytes, No]):
    """The row numbers of byte strings of one kind. A number never changes its meaning while this cache
    lives. If Postgres loses commits, the session ends, and with it the cache (`renumber` in the store).
    """

    def __init__(self, query: "sql.Query[NumberRow[No]]", next_number: No) -> None:
        super().__init__(MAX_NUMBERS)
        self._query, self._next = query, next_number

    async def look_up(self, db: Connection, raws: Iterable[bytes]) -> list[tuple[No, bytes]]:
        """Look up the number of each byte string. Returns (number, byte string) for those that are numbered now."""
        missing = self.unknown(raws)
        if not missing:
            return []
        self.update((row.raw, row.number) for row in await self._query.all(db, list(missing)))
        new = cast("list[tuple[No, bytes]]", list(enumerate(sorted(self.unknown(missing)), start=self._next)))
        self.update((raw, number) for number, raw in new)
        self._next = cast("No", self._next + len(new))
        return new

    def raw_of(self, number: No) -> bytes | None:
        """The byte string of a number, None if it is not cached. It scans the cache: for error messages only."""
        return next((raw for cached in (self, self._older) for raw, known in cached.items() if known == number), None)


AddressNumbers = tuple[AddressNo, StakeNo | None, AddressNo | None]
"""address_no, stake_no and credential_no, the latter two as far as the address has them."""


class AddressRow(msgspec.Struct, frozen=True):
    """An address and its numbers. One without a number is new; `credential_no` is then the address_no of the first with
    its payment credential, if there is one.
    """

    raw: bytes
    number: AddressNo | None
    stake_no: StakeNo | None
    credential_no: AddressNo | None


class Addresses(Recent[bytes, AddressNumbers]):
    """The numbers of each address and of its credentials: one look-up per output."""

    def __init__(self, query: "sql.Query[AddressRow]", next_number: AddressNo, stakes: Numbers[StakeNo]) -> None:
        super().__init__(MAX_ADDRESSES)
        self._query, self._next, self._stakes = query, next_number, stakes
        # The first addresses of payment credentials, which the database may not have yet. Only new addresses need
        # them, while they are looked up, so this cache may forget at any time what is committed.
        self._first = Recent[bytes, AddressNo](MAX_CREDENTIALS)

    async def look_up(
        self, db: Connection, addresses: Collection[bytes], reward_accounts: set[bytes]
    ) -> tuple[list[tables.Address], list[tuple[StakeNo, bytes]]]:
        """Look up the numbers of these addresses with their stake credentials, and of further reward accounts.

        `addresses` are in the order of their first use, in which new ones are numbered. Returns the rows of addresses,
        and (stake_no, reward account), for those that are numbered now.
        """
        self._first.trim()
        missing = self.unknown(addresses)
        first = dict[bytes, AddressNo | None]()
        if missing:
            for row in await self._query.all(db, list(missing)):
                if row.number is None:
                    first[row.raw] = row.credential_no
                else:
                    self[row.raw] = row.number, row.stake_no, row.credential_no
        staked = {raw: stake_of(raw) for raw in addresses if raw in first} if first else {}
        new_stakes = await self._stakes.look_up(db, reward_accounts.union(filter(None, staked.values())))
        new = []
        for raw, stake_address in staked.items():
            stake_no = None if stake_address is None else self._stakes[stake_address]
            credential_no = self._credential_no(raw, first[raw])
            new.append(tables.Address(self._next, stake_no, credential_no, raw))
            self[raw] = self._next, stake_no, credential_no
            self._next = AddressNo(self._next + 1)
        return new, new_stakes

    def forget(self, keys: Iterable[bytes]) -> None:
        """Forget addresses that a rollback has deleted, and that they were the first of their payment credentials."""
        addresses = list(keys)
        super().forget(addresses)
        self._first.forget(payment for raw in addresses if (payment := payment_hash_of(raw)) is not None)

    def _credential_no(self, raw: bytes, in_database: AddressNo | None) -> AddressNo | None:
        """The number of the first address with the same payment credential, if it is not this one, which is new."""
        payment = payment_hash_of(raw)
        if payment is None or in_database is not None:
            return in_database
        if self._first.unknown((payment,)):
            self._first[payment] = self._next
            return None
        return self._first[payment]


class UnspentOutputs(Recent[OutputKey, bytes]):
    """Outputs that no transaction has spent yet.

    NOTE: each is kept as bytes, which are contiguous in memory. An object is spread over ten places, and fetching those
    takes longer than unpacking.
    """

    def __init__(self) -> None:
        super().__init__(MAX_OUTPUTS)

    def find(self, key: OutputKey) -> ResolvedOutput | None:
        """The output, None if it is not cached."""
        data = self.get(key) or self._older.get(key)
        return None if data is None else _unpack(data)

    def add(self, outputs: Mapping[OutputKey, ResolvedOutput]) -> None:
        """Remember outputs."""
        self.update((key, _pack(output)) for key, output in outputs.items())


def _pack(output: ResolvedOutput) -> bytes:
    """The output as in the row of its transaction, followed by the facts that the row lacks."""
    return output.packed + _FACTS.pack(
        output.tx_id,
        output.index,
        output.stake_no or 0,
        output.credential_no or 0,
        output.references,
        output.script_key or b"",
    )


def _unpack(data: bytes) -> ResolvedOutput:
    in_row = data[: -_FACTS.size]
    output = packed.unpack_output(in_row)
    tx_id, index, stake_no, credential_no, references, script_key = _FACTS.unpack_from(data, len(in_row))
    return ResolvedOutput(
        tx_id,
        index,
        in_row,
        output.lovelace,
        output.address_no,
        stake_no or None,
        credential_no or None,
        output.quantities,
        references,
        None if script_key == _NO_SCRIPT else ScriptKey(script_key),
    )


# tx_id, index, stake_no and credential_no (0 for none: numbers begin at 1), references, script_key (zeros for none).
_FACTS = Struct(f">qHIIH{SCRIPT_KEY_BYTES}s")
_NO_SCRIPT = bytes(SCRIPT_KEY_BYTES)
