"""Ogmios in front of a node: JSON-RPC over WebSocket, and `/health` over HTTP."""

from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from devnet import queries
from devnet.blocks import Chain
from devnet.dialect import Dialect
from devnet.node import Node
from devnet.session import Session


class NodeServer(Node):
    """A node that listens: a context manager, which frees its port at the end.

    `port` 0 takes any free port; `url` names it.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        dialect: Dialect | None = None,
        syncing: bool = False,
    ) -> None:
        super().__init__(chain, dialect, syncing=syncing)
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"ws://{self._host}:{self._port}"

    def query(self, session: Session, method: str, params: msgspec.Raw) -> Any:
        """The result of a method that `Session` does not answer itself. Raises Refusal."""
        match method:
            case "acquireLedgerState":
                session.acquired = queries.acquirable(self, params)
                return {"acquired": "ledgerState", "point": session.acquired}
            case "releaseLedgerState":
                session.acquired = None
                return {"released": "ledgerState"}
            case _:
                return queries.answer(self, session.acquired, method, params)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes([web.get("/", self._socket), web.get("/health", self._health)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        self.drop_connections()
        await self._runner.cleanup()

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=0, compress=False)
        if not socket.can_prepare(request).ok:
            return web.Response(text="Ogmios speaks WebSocket here.", status=404)
        await socket.prepare(request)
        session = Session(self, self.query, socket, request.transport)
        self.clients.add(session)
        try:
            await session.run()
        finally:
            self.clients.discard(session)
        return socket

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(queries.health(self))
