"""Which webhooks are sent to at the same time, so that slow endpoints delay nobody else.

A webhook is quick once its last attempt has succeeded soon. Quick ones and the others have slots of their own, and each
partner has a part of both.
"""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

import msgspec

QUICK, QUICK_EACH = 1_024, 512
"""The most quick webhooks that are sent to at the same time: of all partners, and of each."""

SLOW, SLOW_EACH = 256, 32
"""The same of webhooks that are slow, or not known to be quick."""

QUICK_WITHIN_S = 1.0
_MOST_KNOWN = 100_000


class _Slot(msgspec.Struct, frozen=True):
    partner: UUID
    is_quick: bool


class Slots:
    """The slots that are taken, by the number of the subscription."""

    def __init__(self) -> None:
        self._taken: dict[int, _Slot] = {}
        self._count: Counter[_Slot | bool] = Counter()
        self._quick: set[int] = set()

    @property
    def taken(self) -> Collection[int]:
        """The subscriptions whose webhooks are being sent to."""
        return self._taken.keys()

    def are_full(self) -> bool:
        """Whether no other webhook gets a slot now."""
        return self._count[True] >= QUICK and self._count[False] >= SLOW

    def take(self, subscription_no: int, partner: UUID) -> bool:
        """Take a slot for a webhook of a partner; False if there is none now."""
        slot = _Slot(partner, subscription_no in self._quick)
        most, most_each = (QUICK, QUICK_EACH) if slot.is_quick else (SLOW, SLOW_EACH)
        if self._count[slot.is_quick] >= most or self._count[slot] >= most_each:
            return False
        self._taken[subscription_no] = slot
        self._count.update((slot, slot.is_quick))
        return True

    def free(self, subscription_no: int) -> None:
        """Free the slot of a webhook."""
        slot = self._taken.pop(subscription_no)
        self._count[slot.is_quick] -= 1
        self._count[slot] -= 1
        if not self._count[slot]:
            del self._count[slot]

    def judge(self, subscription_no: int, *, delivered: bool, took_s: float) -> None:
        """Note how the last attempt of a webhook went."""
        if not delivered or took_s > QUICK_WITHIN_S:
            self._quick.discard(subscription_no)
        elif len(self._quick) < _MOST_KNOWN:
            self._quick.add(subscription_no)
