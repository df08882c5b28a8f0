"""One client's connection: its position on the chain, and its requests, answered in order.

As in Ogmios, chain synchronisation, queries, transactions and mempool monitoring have independent queues: while a
`nextBlock` waits for a block, or an `acquireMempool` for a change, the other queues are served.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from devnet import monitor, submission
from devnet.monitor import Monitor
from devnet.node import Node
from devnet.refusal import Refusal

CHAIN_METHODS = ("findIntersection", "nextBlock")


class Request(msgspec.Struct):
    """A JSON-RPC 2.0 request; `id` may be any JSON value, and the answer repeats it."""

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
    """Serves one client until its socket closes; `query` answers queries of the network and of the ledger state.

    `cursor` is the index of the last block that the client has, -1 for the origin. After an intersection or a fork, the
    next answer to `nextBlock` is `backward` to `cursor`. `acquired` is the point of the acquired ledger state, as the
    client wrote it.
    """

    def __init__(
        self,
        node: Node,
        query: Callable[["Session", str, msgspec.Raw], Any],
        socket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
    ) -> None:
        self.cursor = -1
        self.acquired: Any = None
        self._node = node
        self._query = query
        self._socket = socket
        self._transport = transport
        self._backward = True
        self._changed = asyncio.Event()
        self._monitor = Monitor(node)
        self._answers: list[tuple[tuple[str, ...], Callable[[Request], Awaitable[bytes]]]] = [
            (CHAIN_METHODS, self._answer_chain_request),
            (submission.METHODS, self._answer_submission),
            (monitor.METHODS, self._answer_monitoring),
            ((), self._answer_query),
        ]
        self._queues: list[asyncio.Queue[Request]] = [asyncio.Queue() for _ in self._answers]

    async def run(self) -> None:
        """Receive requests and answer them until the socket closes."""
        async with asyncio.TaskGroup() as tasks:
            serving = [
                tasks.create_task(self._serve(queue, handle))
                for queue, (_, handle) in zip(self._queues, self._answers, strict=True)
            ]
            async for message in self._socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await self._receive(message.data)
            for task in serving:
                task.cancel()

    def chain_grew(self) -> None:
        self._changed.set()

    def chain_forked(self, ancestor: int) -> None:
        """Of the blocks that the client has, only those up to index `ancestor` are still on the chain."""
        if self.cursor > ancestor:
            self.cursor, self._backward = ancestor, True
        self._changed.set()

    def mempool_changed(self) -> None:
        self._monitor.changed()

    def drop(self) -> None:
        """Abort the connection without a closing frame, as a failing network does."""
        if self._transport is not None:
            self._transport.abort()

    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    async def _receive(self, text: str | bytes) -> None:
        try:
            request = _request.decode(text)
        except msgspec.DecodeError as fault:
            await self._send(_rejection(text, fault))
            return
        self._node.requests[request.method] += 1
        for queue, (methods, _) in zip(self._queues, self._answers, strict=True):
            if request.method in methods or not methods:
                queue.put_nowait(request)
                return

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

    async def _answer_chain_request(self, request: Request) -> bytes:
        if request.method == "findIntersection":
            return request.answer(self._find_intersection(request))
        if self._node.injected and not self._is_closing():
            return self._node.injected.popleft()
        return request.answer(await self._next_block())

    async def _answer_query(self, request: Request) -> bytes:
        return request.answer(msgspec.json.encode(self._query(self, request.method, request.params)))

    async def _answer_submission(self, request: Request) -> bytes:
        return request.answer(msgspec.json.encode(await submission.answer(self._node, request.method, request.params)))

    async def _answer_monitoring(self, request: Request) -> bytes:
        return request.answer(msgspec.json.encode(await self._monitor.answer(request.method, request.params)))

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


def _rejection(text: str | bytes, fault: msgspec.DecodeError) -> bytes:
    """Ogmios' answer to a message that is not a valid request."""
    code, words = -32600, str(fault)
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        code, words = -32700, "must be a well-formed JSON object."
    error = {"code": code, "message": f"Invalid request: {words}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "error": error, "id": None})
