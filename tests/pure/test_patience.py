"""The clock of the tests leaves out what a busy machine takes, and nothing else."""

import time
from collections.abc import Iterator

import pytest

from tests import patience


def test_a_wait_for_something_else_than_a_core_counts() -> None:
    took = patience.OwnTime()
    time.sleep(0.2)
    assert took.seconds > 0.15


def test_waits_for_a_core_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a process that began later, and of one that has ended."""
    looks: Iterator[dict[str, float]] = iter([{"1": 5.0}, {"1": 5.5, "2": 2.0}, {"1": 6.0}])
    monkeypatch.setattr(patience, "_queued_s", lambda _: next(looks))
    monkeypatch.setattr(time, "monotonic", iter([100.0, 104.0, 110.0]).__next__)
    took = patience.OwnTime()
    assert took.seconds == 4.0 - 2.5
    assert took.seconds == 10.0 - 3.0
