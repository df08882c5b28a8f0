"""The factors of checksums, and arithmetic on columns of numbers: numpy arrays of 64-bit integers.

A checksum is the sum of products of a key for each row number, a weight for each tx_id, and quantities. All are taken
modulo PRIME, so that products fit into 64 bits. checksums.sql computes the same.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
"""Quantities, and sums that are taken modulo 2**64."""
Mask: TypeAlias = npt.NDArray[np.bool_]
"""Which of some rows are meant."""
Number = TypeVar("Number", int, Ints)
Column = TypeVar("Column", Ints, Words)

PRIME = (1 << 31) - 1
_SPREAD = 1_640_531_527


def ints(values: Iterable[int]) -> Ints:
    """A column of integers."""
    return np.fromiter(values, np.int64)


def words(values: Iterable[int]) -> Words:
    """A column of integers from 0 to 2**64 - 1."""
    return np.fromiter(values, np.uint64)


def reduced(quantities: Words) -> Ints:
    """Quantities modulo PRIME."""
    return (quantities % np.uint64(PRIME)).astype(np.int64)


def key_of(number: Number) -> Number:
    """The key of a row number. Two numbers never have the same key: 5 and PRIME - 1 have no common divisor."""
    number = (number + _SPREAD) % PRIME
    square = number * number % PRIME
    return square * square % PRIME * number % PRIME


def odd(key: Number) -> Number:
    """An odd factor for a sum modulo 2**64: a product with it changes with every quantity below 2**64."""
    return 2 * key + 1


def weight_of(tx_id: Number) -> Number:
    """The weight of a tx_id, which is negative for a genesis output."""
    weight = (tx_id + 1) % PRIME
    return weight * weight % PRIME


def distinct(values: Ints) -> Ints:
    """The distinct values, in ascending order. NOTE: np.unique takes several times as long."""
    ascending: Ints = np.sort(values)
    return ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))[: len(ascending)]]


def places_in(ascending: Ints, values: Ints) -> tuple[Ints, Mask]:
    """The places of values in a column, and which of the values are in it. The place of another one means nothing."""
    place = np.searchsorted(ascending, values)
    known = place < len(ascending)
    known[known] = ascending[place[known]] == values[known]
    return place, known


def places(counts: Sequence[int]) -> Ints:
    """0 as often as the first count says, then 1 as often as the second says, and so on."""
    return np.repeat(np.arange(len(counts)), ints(counts))


def sums_at(values: Column, place: Ints, count: int) -> Column:
    """The sum of the values at each place from 0 to before `count`, modulo 2**64. Places are in ascending order."""
    ends = np.searchsorted(place, np.arange(count + 1))
    total = np.concatenate((np.zeros(1, values.dtype), np.cumsum(values)))
    return total[ends[1:]] - total[ends[:-1]]
