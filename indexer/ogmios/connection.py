"""The connection to Ogmios: the intersection, and the messages after it in order, with many requests in flight.

It speaks Ogmios' JSON-RPC over aiohttp's WebSocket instead of through the `ogmios` package (docs/decisions/0003).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import msgspec

from indexer.ogmios import frames
from shared.keepalive import keep_alive
from shared.ledger import Point

IN_FLIGHT = 100
CONNECT_WITHIN_S = 10.0
# A ledger query about all pools may take a node a minute or two; after this time it will not answer.
ANSWER_WITHIN_S = 300.0
_NO_GOODBYE = aiohttp.ClientWSTimeout(ws_close=0.0)
_NEXT_BLOCK = '{"jsonrpc":"2.0","method":"nextBlock","id":"nextBlock"}'


class Refused(Exception):
    """Ogmios answered with an error, or with an answer to a different request."""


class RollForward(msgspec.Struct, frozen=True, gc=False):
    """A block to add to the chain, and the tip of the node."""

    block: frames.Block
    tip: frames.NodePoint


class RollBackward(msgspec.Struct, frozen=True):
    """The point to go back to, None for the origin, and the tip of the node."""

    point: Point | None
    tip: frames.NodePoint | None


Message = RollForward | RollBackward


class Ogmios:
    """One connection. After its loss, calls raise OSError or aiohttp.ClientError."""

    def __init__(
        self, session: aiohttp.ClientSession, ws: "aiohttp.ClientWebSocketResponse[bool]", answer_within_s: float
    ) -> None:
        self._session, self._ws, self._answer_within_s = session, ws, answer_within_s

    async def close(self) -> None:
        """Close the connection without a closing handshake: answers may still be on their way."""
        try:
            await self._ws.close()
        finally:
            await self._session.close()

    async def call(self, method: str, kind: type[Any], **params: object) -> Any:
        """The result of a call as `kind`. Raises Refused if Ogmios answers with an error."""
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": method}
        try:
            async with asyncio.timeout(self._answer_within_s):
                await self._ws.send_str(msgspec.json.encode(request).decode())
                frame = await self._receive()
        except TimeoutError:
            raise TimeoutError(f"no answer to {method} within {self._answer_within_s:.0f} s") from None
        answer = frames.read_result(frame, method, kind)
        if isinstance(answer, frames.Fault):
            raise _refused(method, answer)
        return answer

    async def intersect(self, points: list[Point]) -> tuple[Point | None, frames.NodePoint | None]:
        """The first of our points that is in the node's chain (None: only the origin is), and the node's tip."""
        wanted: list[object] = [{"slot": point.slot_no, "id": point.block_hash.hex()} for point in points]
        answer = await self.call("findIntersection", frames.Intersection, points=[*wanted, "origin"])
        return _point(answer.intersection), _tip(answer.tip)

    async def messages(self) -> AsyncGenerator[Message, None]:
        """The messages after the intersection, without end. At the node's tip this waits for the next block.

        Raises Refused and frames.Unreadable.
        """
        async for frame in self.raw_frames():
            yield _message(_read(frame))

    async def raw_blocks(self) -> AsyncIterator[tuple[int | None, bytes] | None]:
        """The slot (None for an epoch boundary block) and the JSON of each block after the intersection, without end.

        None is a rollback, such as Ogmios' first answer after an intersection. Raises Refused and frames.Unreadable.
        """
        async for frame in self.raw_frames():
            block = _read(frame).block
            yield None if block is None else (block.slot, frames.raw_block(frame))

    async def raw_frames(self) -> AsyncIterator[bytes]:
        """The answers to `nextBlock` as they arrive, with between IN_FLIGHT / 2 and IN_FLIGHT requests under way."""
        in_flight = 0
        while True:
            if in_flight <= IN_FLIGHT // 2:
                for _ in range(IN_FLIGHT - in_flight):
                    await self._ws.send_str(_NEXT_BLOCK)
                in_flight = IN_FLIGHT
            yield await self._receive()
            in_flight -= 1

    async def _receive(self) -> bytes:
        message = await self._ws.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            return message.data.encode() if isinstance(message.data, str) else message.data
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        raise ConnectionResetError(f"the connection ended: {message.type.name.lower()} {message.extra or ''}".strip())


Connect = Callable[[], Awaitable[Ogmios]]
"""Opens a connection to one node, as `connect` does to any."""


async def connect(url: str, *, within_s: float = CONNECT_WITHIN_S, answer_within_s: float = ANSWER_WITHIN_S) -> Ogmios:
    """Connect to the Ogmios at `url` in `within_s`; a call fails after `answer_within_s`.

    Raises OSError or aiohttp.ClientError.
    """
    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
    try:
        async with asyncio.timeout(within_s):
            # NOTE: no limit on frame size (a block of 90 kB takes 1 MB or more); text stays bytes for the decoder.
            ws = await session.ws_connect(url, max_msg_size=0, decode_text=False, timeout=_NO_GOODBYE)
    except BaseException as cause:
        await session.close()
        if isinstance(cause, TimeoutError):
            raise TimeoutError(f"no WebSocket within {within_s:.0f} s") from None
        if isinstance(cause, aiohttp.ClientResponseError):
            # NOTE: aiohttp's message contains the address with its parameters, which may be secret.
            raise ConnectionError(f"no WebSocket but HTTP status {cause.status}: {cause.message}") from None
        raise
    # An answer at the tip may take arbitrarily long.
    keep_alive(ws.get_extra_info("socket"))
    return Ogmios(session, ws, answer_within_s)


def _read(frame: bytes) -> frames.NextBlock:
    """An answer to `nextBlock`. Raises Refused and frames.Unreadable."""
    answer = frames.read(frame)
    if isinstance(answer, frames.Fault):
        raise _refused("nextBlock", answer)
    return answer


def _refused(method: str, fault: frames.Fault) -> Refused:
    return Refused(f"{method}: {fault.message} (code {fault.code})")


def _message(answer: frames.NextBlock) -> Message:
    if answer.block is None:
        assert answer.point is not None, "frames.read has checked"
        return RollBackward(_point(answer.point), _tip(answer.tip))
    tip = _tip(answer.tip)
    if tip is None:
        raise frames.Unreadable("a block forward with the origin as tip")
    return RollForward(answer.block, tip)


def _tip(tip: frames.NodePoint | str) -> frames.NodePoint | None:
    return tip if isinstance(tip, frames.NodePoint) else None


def _point(point: frames.NodePoint | str) -> Point | None:
    return point.point if isinstance(point, frames.NodePoint) else None
