"""The factors of digests, and arithmetic on columns of numbers: numpy arrays of 64-bit integers.

A digest is the sum of products of a key for each row number, a weight for each tx_id, and quantities, all modulo PRIME
(entries.py). digests.sql computes the same.
"""

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]
"""Which of some rows are meant."""
Number = TypeVar("Number", int, Ints)

PRIME = 2_860_486_313
"""The product of two numbers below it fits into 63 bits. It is not next to a power of two: many quantities are, and
would be alike modulo such a prime.
"""
_SPREAD = 618_033_989


def ints(values: Iterable[int]) -> Ints:
    """A column of integers."""
    return np.fromiter(values, np.int64)


def reduced(quantities: Ints | Words) -> Ints:
    """Quantities modulo PRIME."""
    return (quantities % quantities.dtype.type(PRIME)).astype(np.int64)


def key_of(number: Number) -> Number:
    """The key of a row number, never 0. Two numbers never have the same key: 5 and PRIME - 1 have no common divisor."""
    number = (number + _SPREAD) % PRIME
    square = number * number % PRIME
    return square * square % PRIME * number % PRIME


def weight_of(tx_id: Number) -> Number:
    """The weight of a tx_id, which is negative for a genesis output."""
    weight = (tx_id + 1) % PRIME
    return weight * weight % PRIME


def distinct(values: Ints) -> Ints:
    """The distinct values, all from 0 on, in ascending order. NOTE: np.unique takes several times as long."""
    ascending: Ints = np.sort(values)
    first: Mask = np.diff(ascending, prepend=-1) != 0
    return ascending[first]


def places_in(ascending: Ints, values: Ints) -> tuple[Ints, Mask]:
    """The places of values in a column, and which of the values are in it. The place of another one means nothing."""
    place = np.searchsorted(ascending, values)
    known = place < len(ascending)
    known[known] = ascending[place[known]] == values[known]
    return place, known


def places(counts: Ints) -> Ints:
    """0 as often as the first count says, then 1 as often as the second says, and so on."""
    return np.repeat(np.arange(len(counts)), counts)


def sums_at(values: Ints, place: Ints, count: int) -> Ints:
    """The sum of the values at each place from 0 to before `count`. Places are in ascending order."""
    ends = np.searchsorted(place, np.arange(count + 1))
    total = np.concatenate(([0], np.cumsum(values)))
    return total[ends[1:]] - total[ends[:-1]]


def exact_sums_at(values: Ints, place: Ints, count: int) -> list[int]:
    """The same for values whose sums may not fit into 64 bits."""
    high, low = sums_at(values >> 32, place, count), sums_at(values & 0xFFFFFFFF, place, count)
    return [(upper << 32) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]
