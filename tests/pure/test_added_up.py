"""The stakes of epochs that are added up once and kept."""

from typing import Any, cast
from uuid import UUID

import pytest

from api.chain import network
from api.chain.network import _SnapshotRow
from shared.network import PREVIEW
from shared.sql import Connection

DB = cast(Connection, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The epochs that were added up, whose stakes are ten times their numbers; meanwhile, all kept ones are dropped."""
    batches: list[list[int]] = []

    class Snapshots:
        async def all(self, _db: Any, numbers: list[int], _taken_at: list[int]) -> list[_SnapshotRow]:
            return [_SnapshotRow(bytes([number % 256]), UUID(int=1), None) for number in numbers]

    class Stakes:
        async def all(self, _db: Any, numbers: list[int]) -> list[int]:
            batches.append(numbers)
            network._added_up.clear()
            return [number * 10 for number in numbers]

    monkeypatch.setattr(network, "_added_up", {})
    monkeypatch.setattr(network, "_stake_snapshots", Snapshots())
    monkeypatch.setattr(network, "_active_stakes", Stakes())
    return batches


async def test_a_stake_that_is_dropped_while_others_are_added_up_is_answered(asked: list[list[int]]) -> None:
    assert await network.active_stakes(DB, PREVIEW, [1, 2]) == [10, 20]
    assert await network.active_stakes(DB, PREVIEW, [2, 3, 1]) == [20, 30, 10]
    assert await network.active_stakes(DB, PREVIEW, [3]) == [30]
    assert asked == [[1, 2], [3]]


async def test_the_kept_stakes_are_bounded(asked: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_MAX_ADDED_UP", 5)
    assert await network.active_stakes(DB, PREVIEW, list(range(9))) == [number * 10 for number in range(9)]
    assert [epoch_no for epoch_no, _ in network._added_up] == [4, 5, 6, 7, 8]
    assert asked == [list(range(9))]
