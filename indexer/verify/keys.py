"""The factors of checksums: a key for each row number, and a weight for each tx_id. checksums.sql has the same."""

from collections.abc import Collection
from operator import mul

PRIME = (1 << 31) - 1
_SPREAD = 1_640_531_527


def key_of(number: int) -> int:
    """The key of a row number. Two numbers never have the same key: 5 and PRIME - 1 have no common divisor."""
    number = (number + _SPREAD) % PRIME
    square = number * number % PRIME
    return square * square % PRIME * number % PRIME


def weight_of(tx_id: int) -> int:
    """The weight of a tx_id, which is negative for a genesis output."""
    weight = (tx_id + 1) % PRIME
    return weight * weight % PRIME


def square_of(number: int) -> int:
    """The key of an owner in a history, where the weight of an entry is its tx_id + 1. SQL would need numeric for it.

    Both are exact, so an entry that is missing, added or wrong in one field always shows. They are also faster to
    compute than key_of and weight_of.
    """
    number += 1
    return number * number


def sum_of_squares(numbers: Collection[int]) -> int:
    """The sum of square_of for some numbers. NOTE: without a Python step for each."""
    squares: int = sum(map(mul, numbers, numbers))
    return squares + 2 * sum(numbers) + len(numbers)


class Keys(dict[int, int]):
    """The keys of the row numbers that a part of history names, each computed once.

    NOTE: it is for one part. Looking a key up among those of the whole chain would take longer than computing it.
    """

    def __missing__(self, number: int) -> int:
        key = self[number] = key_of(number)
        return key
