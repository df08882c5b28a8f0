"""One client's connection: its place on the chain, its requests in the order they came, their answers in that order.

As in Ogmios the chain's requests and the ledger's are two rows of their own: a query is answered while a `nextBlock`
waits for a block.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import WSMsgType, web

from devnet.refusal import Refusal

if TYPE_CHECKING:
    from devnet.server import Server

CHAIN_METHODS = ("findIntersection", "nextBlock")


class Request(msgspec.Struct):
    """JSON-RPC 2.0; `id` may be any JSON and comes back as it was sent."""

    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: msgspec.Raw = msgspec.Raw(b"null")

    def answer(self, result: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","method":"%b","result":%b,"id":%b}' % (self.method.encode(), result, self.id)

    def refusal(self, error: Refusal) -> bytes:
        content = msgspec.json.encode(error.content())
        return b'{"jsonrpc":"2.0","method":"%b","error":%b,"id":%b}' % (self.method.encode(), content, self.id)


class _Intersection(msgspec.Struct):
    points: list[Any] = []


_request = msgspec.json.Decoder(Request)
_intersection = msgspec.json.Decoder(_Intersection)


class Session:
    """Follows the chain of `node` for one client until the socket closes.

    `cursor` is the index of the last block that the client was sent, -1 for the origin. After an intersection or a
    fork the next answer is `backward` to it.
    """

    def __init__(self, node: "Server", socket: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.cursor = -1
        self.acquired: Any = None  # the point, as the client named it
        self._node = node
        self._socket = socket
        self._transport = transport
        self._backward = True
        self._changed = asyncio.Event()
        self._chain_requests: asyncio.Queue[Request] = asyncio.Queue()
        self._queries: asyncio.Queue[Request] = asyncio.Queue()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            rows = [
                tasks.create_task(self._serve(self._chain_requests, self._chain)),
                tasks.create_task(self._serve(self._queries, self._query)),
            ]
            async for message in self._socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await self._receive(message.data)
            for row in rows:
                row.cancel()

    def chain_grew(self) -> None:
        self._changed.set()

    def chain_forked(self, ancestor: int) -> None:
        """Only blocks up to index `ancestor` are left of those this client may have seen."""
        if self.cursor > ancestor:
            self.cursor, self._backward = ancestor, True
        self._changed.set()

    def drop(self) -> None:
        """End the connection without a closing frame, as a network does."""
        if self._transport is not None:
            self._transport.abort()

    async def _receive(self, text: str | bytes) -> None:
        try:
            request = _request.decode(text)
        except msgspec.DecodeError as fault:
            await self._send(_fault(text, fault))
            return
        self._node.requests[request.method] += 1
        row = self._chain_requests if request.method in CHAIN_METHODS else self._queries
        row.put_nowait(request)

    async def _serve(self, requests: asyncio.Queue[Request], handle: Callable[[Request], Awaitable[bytes]]) -> None:
        while True:
            request = await requests.get()
            try:
                answer = await handle(request)
            except Refusal as refusal:
                answer = request.refusal(refusal)
            except msgspec.DecodeError as fault:
                answer = request.refusal(Refusal(-32602, f"Invalid request: {fault}"))
            if self._node.delay_s:
                await asyncio.sleep(self._node.delay_s)
            await self._send(answer)

    async def _send(self, answer: bytes) -> None:
        try:
            await self._socket.send_frame(answer, WSMsgType.TEXT)
        except ConnectionError:
            self.drop()

    async def _chain(self, request: Request) -> bytes:
        if request.method == "findIntersection":
            return request.answer(self._find_intersection(request))
        if self._node.injected:
            return self._node.injected.popleft()
        return request.answer(await self._next_block())

    async def _query(self, request: Request) -> bytes:
        return request.answer(msgspec.json.encode(self._node.query(self, request.method, request.params)))

    def _find_intersection(self, request: Request) -> bytes:
        points = _intersection.decode(request.params).points
        for point in points:
            index = self._node.index_of(point)
            if index is not None:
                self.cursor, self._backward = index, True
                return b'{"intersection":%b,"tip":%b}' % (msgspec.json.encode(point), self._node.tip_json)
        raise Refusal(1000, "No intersection found.", {"tip": msgspec.Raw(self._node.tip_json)})

    async def _next_block(self) -> bytes:
        node = self._node
        while not self._backward and self.cursor + 1 >= len(node.frames):
            self._changed.clear()
            await self._changed.wait()
        if self._backward:
            self._backward = False
            return b'{"direction":"backward","point":%b,"tip":%b}' % (node.point_json(self.cursor), node.tip_json)
        self.cursor += 1
        return b'{"direction":"forward","block":%b,"tip":%b}' % (node.frames[self.cursor], node.tip_json)


def _fault(text: str | bytes, fault: msgspec.DecodeError) -> bytes:
    """What Ogmios says to a message that is no request."""
    code, words = -32600, str(fault)
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        code, words = -32700, "must be a well-formed JSON object."
    error = {"code": code, "message": f"Invalid request: {words}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "error": error, "id": None})
