"""Entries of tables, which two sides must have alike, and their digests by partition: how verify compares tables.

A table is seen as entries: a pair of numbers, and a quantity. An address and a transaction of its history have the
quantity 1; a holder of an asset has what it holds. The quantities of equal pairs are added up. Each pair has a hash, a
product of keys and weights of its numbers (keys.py), and the digest of a partition is the sum of hashes times
quantities, modulo PRIME, over the pairs whose hashes are in it. The chance that a single wrong entry is missed is about
one in a billion.

Only where digests differ, the same code lists the entries of a few partitions on both sides, to name those that differ
(docs/decisions/0068).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from indexer.verify.keys import PRIME, Ints, Words, ints, key_of, reduced

PARTITIONS = 1 << 12
"""digests.sql has the same number. A partition of a table with a billion entries has a quarter of a million."""
MAX_PARTITIONS = 5
_WORD_BITS = 64

Digest: TypeAlias = Ints
"""A sum for each partition, modulo PRIME."""
Digests: TypeAlias = dict[str, Digest]
"""By table."""
Listed: TypeAlias = "Counter[tuple[int, int]]"
"""Quantities by pair."""


class Entries(msgspec.Struct, frozen=True):
    """Entries in columns. `high` is what exceeds 64 bits of each quantity, if any can."""

    first: Ints
    second: Ints
    hash: Ints
    quantity: Ints | Words
    high: Ints | None = None

    def digest(self) -> Digest:
        """The digest of these entries."""
        quantity = reduced(self.quantity)
        if self.high is not None:
            quantity = (self.high * (2**_WORD_BITS % PRIME) + quantity) % PRIME
        return digest_of(self.hash, self.hash * quantity % PRIME)

    def listed(self, partitions: Collection[int]) -> Listed:
        """The entries in some partitions."""
        chosen = are_in(self.hash, partitions)
        quantities = self.quantity[chosen].tolist()
        if self.high is not None:
            pairs = zip(self.high[chosen].tolist(), quantities, strict=True)
            quantities = [(high << _WORD_BITS) + low for high, low in pairs]
        found: Listed = Counter()
        for first, second, quantity in zip(
            self.first[chosen].tolist(), self.second[chosen].tolist(), quantities, strict=True
        ):
            found[first, second] += quantity
        return found


def of_exact(first: Ints, second: Ints, hashes: Ints, quantities: Sequence[int]) -> Entries:
    """Entries whose quantities may not fit into 64 bits."""
    low = np.fromiter((quantity & (1 << _WORD_BITS) - 1 for quantity in quantities), np.uint64)
    return Entries(first, second, hashes, low, ints(quantity >> _WORD_BITS for quantity in quantities))


def digest_of(hashes: Ints, terms: Ints) -> Digest:
    """The digest of terms, each from 0 to before 2^32, in the partitions of some hashes."""
    sums = nothing()
    np.add.at(sums, hashes & PARTITIONS - 1, terms)
    return sums % PRIME


def are_in(hashes: Ints, partitions: Collection[int]) -> Ints:
    """Which of some hashes are in these partitions, as indexes."""
    return np.flatnonzero(np.isin(hashes & PARTITIONS - 1, list(partitions)))


def nothing() -> Digest:
    """The digest of no entries."""
    return np.zeros(PARTITIONS, np.int64)


def add(total: Digests, part: Mapping[str, Digest]) -> None:
    """Add the digests of more entries to a total."""
    for table, digest in part.items():
        total[table] = (total[table] + digest) % PRIME if table in total else digest


def wrong_partitions(one: Mapping[str, Digest], other: Mapping[str, Digest]) -> dict[str, list[int]]:
    """The first partitions in which the two sides differ, by table. A side without a table has no entry of it."""
    found = {
        table: np.flatnonzero(one.get(table, nothing()) != other.get(table, nothing()))[:MAX_PARTITIONS].tolist()
        for table in sorted(one.keys() | other.keys())
    }
    return {table: partitions for table, partitions in found.items() if partitions}


def add_listed(total: dict[str, Listed], part: Mapping[str, Listed]) -> None:
    """Add listed entries of more transactions to a total."""
    for table, listed in part.items():
        total.setdefault(table, Counter()).update(listed)


def of_accounts(account_no: Ints) -> Entries:
    """The accounts of some addresses, as entries of `address_count`."""
    return Entries(account_no, np.zeros_like(account_no), key_of(account_no), np.ones_like(account_no))
