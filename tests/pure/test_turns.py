"""Turns of keys at what all share."""

import asyncio
import random

import pytest

from api.errors import Refusal
from api.http import turns
from api.http.turns import Turns
from api.services import ADMIN_CONNECTIONS, ADMIN_TURNS_EACH


class Works:
    """Counts the holders of turns."""

    def __init__(self, most: int) -> None:
        self.turns = Turns("shared", most, 4, "requests")
        self.order: list[str] = []
        self.running: list[str] = []
        self.most: dict[str, int] = {}

    async def work(self, key: str, turns_of_loop: int = 3) -> None:
        async with self.turns.turn(key) as shared:
            assert shared == "shared"
            self.order.append(key)
            self.running.append(key)
            self.most[key] = max(self.most.get(key, 0), self.running.count(key))
            for _ in range(turns_of_loop):
                await asyncio.sleep(0)
            self.running.remove(key)


async def test_a_key_has_four_turns_at_a_time_and_keys_take_turns() -> None:
    works = Works(6)
    await asyncio.gather(
        *(works.work("a") for _ in range(40)),
        *(works.work("b") for _ in range(8)),
        *(works.work("c") for _ in range(2)),
    )
    assert works.most["a"] == 4
    assert works.order.count("a") == 40
    assert max(index for index, key in enumerate(works.order) if key == "c") < 14
    assert max(index for index, key in enumerate(works.order) if key == "b") < 24


async def test_a_request_waits_a_bounded_time_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.05)
    shared = Turns("shared", 1, 1, "requests")
    async with shared.turn("a"):
        with pytest.raises(Refusal) as refused:
            async with shared.turn("b"):
                pass
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "10"})
    async with shared.turn("b"):
        pass


async def test_turns_are_returned_however_a_waiting_request_ends() -> None:
    works, chance = Works(3), random.Random(1)
    for _ in range(200):
        working = [asyncio.create_task(works.work(chance.choice("abc"), chance.randrange(4))) for _ in range(12)]
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        for task in chance.sample(working, 6):
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        works.running.clear()
    assert works.turns._free == 3
    assert not works.turns._waiting
    assert not works.turns._taken


def test_no_admin_key_has_all_connections() -> None:
    assert ADMIN_TURNS_EACH < ADMIN_CONNECTIONS
