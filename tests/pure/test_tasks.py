"""Background tasks are restarted after any end."""

import asyncio
from itertools import count

import pytest

from shared import tasks
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(tasks, "SOUND_AFTER_S", 0.1)


@pytest.mark.parametrize("fault", [ValueError("a bug"), OSError("an outage"), asyncio.CancelledError(), None])
async def test_a_task_is_restarted_after_any_end(fault: BaseException | None) -> None:
    starts, third = count(1), asyncio.Event()

    async def work() -> None:
        if next(starts) < 3:
            if fault is not None:
                raise fault
            return
        third.set()
        await asyncio.sleep(3_600)

    async with tasks.background("work", work):
        async with asyncio.timeout(PATIENCE_S):
            await third.wait()
        assert [failure.task for failure in tasks.failing()] == ["work"]
        async with asyncio.timeout(PATIENCE_S):
            while tasks.failing():  # until it has run for a while
                await asyncio.sleep(0.01)
    assert tasks.failing() == []


async def test_a_failing_task_is_reported_until_it_runs() -> None:
    starts, third = count(1), asyncio.Event()

    async def work() -> None:
        if next(starts) == 3:
            third.set()
        raise RuntimeError("never")

    async with tasks.background("work", work):
        async with asyncio.timeout(PATIENCE_S):
            await third.wait()
        (failure,) = tasks.failing()
        assert failure.cause == "RuntimeError: never"


async def test_an_exception_of_a_task_does_not_reach_the_block() -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            raise RuntimeError("at its end")

    closed = False
    async with tasks.background("work", work):
        await asyncio.sleep(0)
    closed = True
    assert closed
