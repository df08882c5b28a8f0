"""A connection that reads from Ogmios, over aiohttp's WebSocket as in the indexer (docs/decisions/0003).

A block's frame may exceed the 1 MiB to which the package `ogmios` limits frames, and requests are sent ahead.
"""

import asyncio
from collections import deque
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec

from api.sources.node_addresses import CONNECT_WITHIN_S, NodeAddresses
from api.sources.nodes import NodeAway, NodeRefused
from shared.keepalive import keep_alive

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest answer. A block of 90 kB takes 0.2 to 0.4 MB as JSON, and 3 MB if it is made of the longest parts."""

Result = TypeVar("Result")


class Unreadable(NodeAway):
    """An answer that is not what Ogmios' schema promises."""


class Fault(msgspec.Struct, frozen=True):
    """Ogmios' error answer."""

    code: int
    message: str
    data: Any = None


class _Answer(msgspec.Struct, Generic[Result], frozen=True):
    id: int | None = None
    result: Result | msgspec.UnsetType = msgspec.UNSET
    error: Fault | None = None


class Connection:
    """Connects on the first request, and again after `drop`. Methods raise NodeAway."""

    def __init__(self, addresses: NodeAddresses) -> None:
        self._addresses = addresses
        self._url = ""
        self._session: aiohttp.ClientSession | None = None
        self._ws: aiohttp.ClientWebSocketResponse[bool] | None = None
        self._was_idle = False  # whether it was connected before the reading
        self._asked = 0
        self._awaited: deque[int] = deque()

    @property
    def is_open(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._ws is not None

    async def call(self, method: str, kind: type[Result], **params: object) -> Result:
        """The result of a request. Raises NodeRefused as well."""
        await self.send(method, **params)
        return await self.receive(kind)

    async def send(self, method: str, **params: object) -> None:
        """Send a request; `receive` gives its answer after those of earlier ones."""
        self._asked += 1
        request = {"jsonrpc": "2.0", "method": method, "id": self._asked} | ({"params": params} if params else {})
        try:
            await (await self._connected()).send_str(msgspec.json.encode(request).decode())
        except (OSError, aiohttp.ClientError) as cause:
            raise NodeAway(f"{type(cause).__name__}: {cause}") from cause
        self._awaited.append(self._asked)

    async def receive(self, kind: type[Result]) -> Result:
        """The result of the oldest request without one. Raises NodeRefused as well."""
        assert self._ws is not None, "a request has been sent"
        message = await self._ws.receive()
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            if not self._was_idle:  # Ogmios ends connections that were idle for long: that is no failure of the node
                self._addresses.failed(self._url)
            raise NodeAway(f"the connection ended: {message.type.name.lower()} {message.data or ''}".strip())
        try:
            answer: _Answer[Result] = msgspec.json.decode(message.data, type=_Answer[kind])  # type: ignore[valid-type]
        except msgspec.DecodeError as cause:
            raise Unreadable(f"an answer that can't be read: {cause}") from cause
        if answer.id != self._awaited.popleft():
            raise NodeAway("an answer to another request")
        if answer.error is not None:
            raise NodeRefused(answer.error.code, answer.error.message, answer.error.data)
        if answer.result is msgspec.UNSET:
            raise NodeAway("an answer without a result")
        return answer.result

    async def leave_former_node(self) -> None:
        """Disconnect from a node that is not in use any more. Only between readings: one stays with its node."""
        if self._ws is not None and self._url != self._addresses.in_use:
            await self.drop()
        self._was_idle = self._ws is not None

    def gave_no_answer(self) -> None:
        """Note that the node did not answer in time: the next request goes to another one, if there is one."""
        self._addresses.failed(self._url)

    async def drop(self) -> None:
        """Disconnect, if it is connected: answers may still be on their way."""
        ws, session, self._ws, self._session = self._ws, self._session, None, None
        self._awaited.clear()
        try:
            if ws is not None:
                await ws.close()
        finally:
            if session is not None:
                await session.close()

    async def _connected(self) -> "aiohttp.ClientWebSocketResponse[bool]":
        if self._ws is None:
            if self._session is None:
                self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
            for left in reversed(range(self._addresses.count)):
                self._url = self._addresses.in_use
                try:
                    self._ws = await self._connect(self._session)
                    break
                except (OSError, aiohttp.ClientError, NodeAway):
                    self._addresses.failed(self._url)
                    if not left:
                        raise
            assert self._ws is not None, "a node has an address"
            self._was_idle = False
            keep_alive(self._ws.get_extra_info("socket"))
        return self._ws

    async def _connect(self, session: aiohttp.ClientSession) -> "aiohttp.ClientWebSocketResponse[bool]":
        """Raises OSError, aiohttp.ClientError, NodeAway."""
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S if self._addresses.count > 1 else None):
                return await session.ws_connect(
                    self._url,
                    max_msg_size=MAX_FRAME_BYTES,
                    decode_text=False,
                    timeout=aiohttp.ClientWSTimeout(ws_close=0.0),
                )
        except aiohttp.ClientResponseError as cause:
            # NOTE: aiohttp's message contains the address with its parameters, which may be secret.
            raise NodeAway(f"no WebSocket but HTTP status {cause.status}") from None
