"""Sends requests: keys, retries after 429 and 503, errors, pages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import httpx

from ledgerline_client import types
from ledgerline_client.exchange import (
    MAX_TRIES,
    NOT_SENT,
    STREAM,
    UNANSWERED,
    EventReader,
    Key,
    LedgerlineError,
    LineCutter,
    Requests,
    Values,
    answer_of,
    may_repeat,
    next_place,
)


class AsyncHttp(Requests):
    """An asynchronous connection to a service; a context manager that closes it."""

    def __init__(
        self, url: str, *, api_key: str | None = None, admin_key: str | None = None, timeout_s: float = 35.0
    ) -> None:
        super().__init__(url, api_key=api_key, admin_key=admin_key)
        self._http = httpx.AsyncClient(timeout=timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        in_path: Values,
        query: Values,
        body: Values | None,
        *,
        key: Key,
        json: bool,
        idempotency_key: str | None = None,
    ) -> Any:
        """The answer to one operation. Raises LedgerlineError, or httpx.TransportError without an answer."""
        request = self.request_of(method, path, in_path, query, body, key, idempotency_key)
        repeatable = method == "GET" or idempotency_key is not None
        return answer_of(await self._response(request, repeatable=repeatable), json)

    async def lines(self, path: str, in_path: Values, query: Values, *, key: Key) -> AsyncIterator[str]:
        """The lines of a download as they arrive, each with its line end.

        Raises LedgerlineError, or httpx.TransportError if the answer is incomplete, even after some lines.
        """
        request = self.request_of("GET", path, in_path, query, None, key, None)
        async with aclosing(await self._response(request, repeatable=True, streamed=True)) as response:
            if response.status_code >= 400:
                await response.aread()
                raise LedgerlineError(response)
            cutter = LineCutter()
            async for part in response.aiter_bytes():
                for line in cutter.cut(part):
                    yield line
            for line in cutter.rest():
                yield line

    async def subscribe(
        self, subscription_id: str, *, after: int | None = None, after_block: str | None = None
    ) -> AsyncIterator[types.ToldEvent]:
        """Every event of a subscription as it happens, without end, whatever interrupts the connection.

        It begins after an event or a block or, without either, with the first event that is kept. Store the `number` of
        an event in the same commit as what follows from it, and continue after it when your program starts again.

        Raises LedgerlineError when the key or the subscription has ended, with the code `events_not_kept` if `after` is
        too far back, and with `block_not_followed` if the log has no position for the block.
        """
        reader = EventReader(after, after_block)
        while True:
            refused = None
            try:
                async for line in self.lines(STREAM, {"id": subscription_id}, reader.place, key="api_key"):
                    event = reader.read(line)
                    if event is not None:
                        yield event
            except httpx.TransportError:
                pass  # the next stream begins where this one has ended
            except LedgerlineError as error:
                refused = error
            await asyncio.sleep(reader.pause_s(refused))

    async def _response(self, request: dict[str, Any], *, repeatable: bool, streamed: bool = False) -> httpx.Response:
        """The first response that is not worth a retry. If `streamed`, its content is not read yet."""
        retried = UNANSWERED if repeatable else NOT_SENT
        for tries in range(MAX_TRIES):
            last = tries == MAX_TRIES - 1
            response = None
            try:
                response = await self._http.send(self._http.build_request(**request), stream=streamed)
            except retried:
                if last:
                    raise
            if response is not None:
                if last or not may_repeat(repeatable, response):
                    return response
                await response.aclose()
            await asyncio.sleep(self.pause_s(response, tries))
        raise AssertionError("the last try returns or raises")

    async def pages(
        self, path: str, in_path: Values, query: Values, *, key: Key, inside: str = ""
    ) -> AsyncIterator[Any]:
        """Every item of a list, page by page. The list is `data`, or the field `inside` of it."""
        place: dict[str, Any] | None = {}
        while place is not None:
            page = await self.call("GET", path, in_path, {**query, **place}, None, key=key, json=True)
            for item in page["data"][inside] if inside else page["data"]:
                yield item
            place = next_place(page, place)
