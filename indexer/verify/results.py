"""The results of verify: differences between the index and history."""

from collections.abc import Callable

import msgspec

from shared import address

_REWARD_ACCOUNT = 0b111  # the first bits of a reward account (CIP-19)

MAX_SHOWN = 5
"""The most differences that are shown for one check."""


Progress = Callable[[str, int, int], None]
"""Called as work is done, with the name of the step, the completed amount and the total."""


class NotComplete(Exception):
    """There is nothing to verify: the index is empty or in bulk, or rollbacks have ended every attempt."""


class Difference(msgspec.Struct, frozen=True):
    """A difference: its place, by name or address, and both values; None for a missing value.

    `address` is a payment address or a reward account.
    """

    what: str
    address: bytes | None
    indexed: str | None
    recomputed: str | None

    def __str__(self) -> str:
        whose = "" if self.address is None else f" {_show(self.address)}"
        return f"{self.what}{whose}: indexed {self.indexed}, recomputed {self.recomputed}"


def _show(raw: bytes) -> str:
    if not raw:
        return "without bytes"
    return address.show_stake(raw) if raw[0] >> 5 == _REWARD_ACCOUNT else address.show(raw)


class CheckResult(msgspec.Struct, frozen=True):
    """The first differences that a check found."""

    check: str
    differences: list[Difference]
