"""A reader of server-sent events, by the HTML standard, section 9.2.6."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from tests.patience import PATIENCE_S


class Sent(msgspec.Struct, frozen=True):
    """An event; `last_id` is what its reader would connect again with."""

    name: str
    data: Any
    last_id: str


class Stream:
    """An open stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer, self.retry_ms, self.last_id = answer, 0, ""
        self._events = self._read()

    async def next(self) -> Sent:
        """The next event. Raises StopAsyncIteration at the end of the stream."""
        return await asyncio.wait_for(anext(self._events), PATIENCE_S)

    async def until(self, wanted: Callable[[Sent], bool]) -> list[Sent]:
        """The events up to one."""
        seen = [await self.next()]
        while not wanted(seen[-1]):
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[Sent]:
        """All further events, up to the end of the stream."""
        return [event async for event in self._events]

    async def _read(self) -> AsyncIterator[Sent]:
        name, data, last_id = "", list[str](), ""
        async for line in self.answer.content:
            text = line.decode().removesuffix("\n")
            field, _, value = text.partition(": ")
            match field:
                case "":
                    self.last_id = last_id
                    if data:
                        yield Sent(name or "message", msgspec.json.decode("\n".join(data)), last_id)
                    name, data = "", []
                case "event":
                    name = value
                case "data":
                    data.append(value)
                case "id":
                    last_id = value
                case "retry":
                    self.retry_ms = int(value)
                case _:
                    raise AssertionError(text)


@asynccontextmanager
async def reading(port: int, subscription: str, **options: Any) -> AsyncIterator[Stream]:
    """A stream of a subscription: with `key`, or with what is in the `query`, and with further `headers`."""
    headers = {"Accept": "text/event-stream", **options.get("headers", {})}
    if "key" in options:
        headers["Authorization"] = f"Bearer {options['key']}"
    url = f"http://127.0.0.1:{port}/v1/subscriptions/{subscription}/events/stream"
    unlimited = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=unlimited, read_bufsize=1 << 22) as session,
        session.get(url, headers=headers, params=options.get("query", {})) as answer,
    ):
        yield Stream(answer)
