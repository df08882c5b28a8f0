"""The results of verify: differences between the index and history."""

import msgspec

from shared import address

MOST_SHOWN = 5
"""How many differences of one check are shown."""


class Difference(msgspec.Struct, frozen=True):
    """A difference: its place, by name or address, and both values; None for a missing value."""

    what: str
    address: bytes | None
    indexed: str | None
    recomputed: str | None

    def __str__(self) -> str:
        whose = "" if self.address is None else f" {address.show(self.address)}"
        return f"{self.what}{whose}: indexed {self.indexed}, recomputed {self.recomputed}"


class CheckResult(msgspec.Struct, frozen=True):
    """The first differences that a check found."""

    check: str
    differences: list[Difference]
