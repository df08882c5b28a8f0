"""Which of a network's nodes to follow: docs/decisions/0080. Pure, given the time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from shared.setting_forms import masked

FAILOVER_AFTER_S = 20.0
"""How long the indexer waits for the node that it has followed before it tries the others."""


class Attempt(msgspec.Struct, frozen=True):
    """The node to try now: its number, which is its place in OGMIOS_URL_… from 1, and its address.

    A `strict` attempt follows it only if its chain is as long as ours and shares almost all of it: there are others.
    """

    number: int
    url: str
    strict: bool


class NodeChoice:
    """Chooses among the nodes of a network. What became of the last attempt is noted before the next one."""

    def __init__(self, urls: Sequence[str], now: Callable[[], float] = time.monotonic) -> None:
        assert urls, "a network has a node"
        self._urls, self._now = urls, now
        self._tried = self._followed = 1
        self._lost_at: float | None = now()
        self._unreachable, self._refused = set[int](), set[int]()

    @property
    def names(self) -> str:
        """The addresses, without secrets."""
        return " or ".join(map(masked, self._urls))

    @property
    def urls(self) -> Sequence[str]:
        """The addresses."""
        return self._urls

    @property
    def followed(self) -> int | None:
        """The number of the node that is followed now, if any."""
        return self._followed if self._lost_at is None else None

    @property
    def has_standby(self) -> bool:
        """Whether there are several nodes."""
        return len(self._urls) > 1

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """While the block runs, no node is tried, so it is not part of FAILOVER_AFTER_S. Otherwise a standby that takes
        over would find its nodes a moment behind the index, and follow the first one back at once.
        """
        began = self._now()
        try:
            yield
        finally:
            if self._lost_at is not None:
                self._lost_at += self._now() - began

    def next(self) -> Attempt:
        """The node to try: for FAILOVER_AFTER_S the last one that was followed, and then all in their order.

        If the chain of none of them will do, the first one is followed as if it were alone.
        """
        is_strict = self.has_standby
        if self._waits or not is_strict:
            self._begin_round()
            self._tried = self._followed
        else:
            left = [number for number in self._numbers if number not in self._unreachable | self._refused]
            if not left:
                left, is_strict = [1], 1 not in self._refused
                self._begin_round()
            self._tried = left[0]
        return Attempt(self._tried, self._urls[self._tried - 1], is_strict)

    def follows(self) -> None:
        """Note that the node is followed."""
        self._followed, self._lost_at = self._tried, None

    def lost(self) -> None:
        """Note that the connection to the node has ended, or that there was none."""
        if self._lost_at is None:
            self._lost_at = self._now()
        else:
            self._unreachable.add(self._tried)

    def refused(self, attempt: Attempt) -> bool:
        """Note that the chain of the node will not do. Returns whether to make another attempt at once."""
        if self._lost_at is None:
            self._lost_at = self._now()
        self._refused.add(self._tried)
        is_round_over = len(self._unreachable | self._refused) == len(self._urls) and 1 not in self._refused
        return attempt.strict and not is_round_over and not self._waits

    @property
    def _numbers(self) -> range:
        return range(1, len(self._urls) + 1)

    @property
    def _waits(self) -> bool:
        """Whether to wait for the node that was followed last."""
        return self._lost_at is None or self._now() - self._lost_at < FAILOVER_AFTER_S

    def _begin_round(self) -> None:
        self._unreachable.clear()
        self._refused.clear()
