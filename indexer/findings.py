"""What verify finds: where the index is not as history says."""

import msgspec

from shared import address

MOST_SHOWN = 5
"""How many differences of one check are told."""


class Difference(msgspec.Struct, frozen=True):
    """What is not as history says: where, by name or address, and both figures; None where there is none."""

    what: str
    address: bytes | None
    indexed: str | None
    recomputed: str | None

    def __str__(self) -> str:
        whose = "" if self.address is None else f" {address.show(self.address)}"
        return f"{self.what}{whose}: indexed {self.indexed}, recomputed {self.recomputed}"


class Finding(msgspec.Struct, frozen=True):
    """The first differences that a check found."""

    check: str
    differences: list[Difference]
