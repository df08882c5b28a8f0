"""One reading serves all who ask for it."""

import asyncio

import pytest

from api.sources.shared_reading import SharedReadings


async def test_callers_share_a_reading_and_its_error() -> None:
    readings, gate = 0, asyncio.Event()

    async def read() -> int:
        nonlocal readings
        readings += 1
        await gate.wait()
        if readings == 2:
            raise ConnectionError
        return readings

    kept = SharedReadings(60.0)
    first, gone = asyncio.create_task(kept.get("a", read)), asyncio.create_task(kept.get("a", read))
    await asyncio.sleep(0)
    gone.cancel()
    gate.set()
    assert (await first, await kept.get("a", read), readings) == (1, 1, 1)
    brief = SharedReadings(-1.0)
    with pytest.raises(ConnectionError):
        await brief.get("a", read)
    assert await brief.get("a", read) == 3
    assert (await kept.get("b", read), await kept.get("a", read)) == (4, 1)
