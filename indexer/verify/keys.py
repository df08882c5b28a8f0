"""The factors of checksums: a key for each row number, and a weight for each tx_id. checksums.sql has the same."""

from collections.abc import Iterable

PRIME = (1 << 31) - 1
_SPREAD = 1_640_531_527


def key_of(number: int) -> int:
    """The key of a row number."""
    number = (number + _SPREAD) % PRIME
    return number * number % PRIME * number % PRIME


def weight_of(tx_id: int) -> int:
    """The weight of a tx_id, which is negative for a genesis output."""
    weight = (tx_id + 1) % PRIME
    return weight * weight % PRIME


def square_of(tx_id: int) -> int:
    """The weight of a tx_id in a history. Exact, and cheaper than weight_of, but SQL would need numeric."""
    tx_id += 1
    return tx_id * tx_id


def sum_of_keys(numbers: Iterable[int]) -> int:
    """The sum of the keys of row numbers. NOTE: a call for each, or a look-up among many, takes longer."""
    return sum([(base := (number + _SPREAD) % PRIME) * base % PRIME * base % PRIME for number in numbers])


class Keys(dict[int, int]):
    """The keys of the row numbers that a part of history names, each computed once.

    NOTE: it is for one part. Looking a key up among those of the whole chain would take longer than computing it.
    """

    def __missing__(self, number: int) -> int:
        key = self[number] = key_of(number)
        return key
