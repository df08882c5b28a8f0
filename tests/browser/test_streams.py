"""The browser's own EventSource follows a subscription through restarts, outages and refusals of the API."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from api import errors
from api.events import stream, subscriptions
from tests.api.client import serving
from tests.api.conftest import issue_key, key
from tests.api.relays import relaying
from tests.api.test_subscriptions import Telling, telling

if TYPE_CHECKING:
    import pytest
    from playwright.async_api import Browser

__all__ = ["issue_key", "key", "telling"]

FOLLOW = """url => {
    window.seen = [];
    window.source = new EventSource(url);
    for (const name of ["apply", "undo", "reset", "refused"]) {
        source.addEventListener(name, event => seen.push(JSON.parse(event.data).number ?? name));
    }
}"""


async def test_an_event_source_follows_through_restarts_and_refusals(
    telling: Telling, environment: Mapping[str, str], browser: "Browser", monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.setattr(stream, "_RETRY_LATER_MS", (100, 200))
    blocks = await telling.subscribe({"kind": "block"})
    ticket = (await telling.call("POST", f"/{blocks}/tickets")).body["data"]["ticket"]
    async with relaying() as relay:
        relay.target = telling.api.port
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{relay.port}/health")
        await page.evaluate(FOLLOW, f"/v1/subscriptions/{blocks}/events/stream?ticket={ticket}")
        await telling.append(20)
        await page.wait_for_function("seen.includes(1)")
        async with serving(environment) as other:
            relay.target = other.port
            relay.cut()
            await telling.append(30)
            await page.wait_for_function("seen.includes(2)")
        # Its process has ended. Now nothing listens, then a process that can't read the log.
        relay.target = None
        await telling.append(40)
        await asyncio.sleep(1)
        read = subscriptions.read_events

        async def away(*_: Any) -> Any:
            raise errors.database_not_available()

        monkeypatch.setattr(stream, "read_events", away)
        relay.target = telling.api.port
        await page.wait_for_function("seen.includes('refused')")
        monkeypatch.setattr(stream, "read_events", read)
        await page.wait_for_function("seen.includes(3)")
        seen = [each for each in await page.evaluate("seen") if each != "refused"]
        assert seen == [1, 2, 3]
        await telling.call("DELETE", f"/{blocks}")
        await page.wait_for_function("seen.at(-1) === 'refused'")
        assert await page.evaluate("source.readyState") == 0, "it would connect again in an hour"
