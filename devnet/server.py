"""A node with Ogmios in front of it: plays a chain over WebSocket, lets it grow, fork and fail as told."""

from collections import Counter, deque
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from devnet import queries
from devnet.blocks import Block, Chain
from devnet.dialect import Dialect
from devnet.history import History
from devnet.ledger import Ledger
from devnet.session import Session


class Server:
    """Serves `chain` as the Ogmios that `dialect` describes; a context manager, so that its port is free after it.

    `port` 0 takes a free one: `url` knows it. Everything that changes the chain is a plain call and reaches waiting
    clients at once. For tests: `requests` counts what was asked by method, `delay_s` holds back each answer, and
    `injected` holds raw answers which the next `nextBlock` requests get instead of theirs.
    """

    def __init__(self, chain: Chain, *, host: str = "127.0.0.1", port: int = 0, dialect: Dialect | None = None) -> None:
        self.chain = chain
        self.dialect = dialect or Dialect()
        self.blocks: list[Block] = []
        self.frames: list[bytes] = []
        self.tip_json = b'"origin"'
        self.requests: Counter[str] = Counter()
        self.delay_s = 0.0
        self.injected: deque[bytes] = deque()
        self._host, self._port = host, port
        self._index: dict[str, int] = {}
        self._sessions: set[Session] = set()
        self._runner: web.AppRunner | None = None
        self._history = History(chain.network, chain.genesis, self.blocks)
        self.extend(chain.blocks)

    @property
    def url(self) -> str:
        return f"ws://{self._host}:{self._port}"

    @property
    def tip(self) -> Block | None:
        return self.blocks[-1] if self.blocks else None

    @property
    def connections(self) -> int:
        return len(self._sessions)

    def extend(self, blocks: list[Block]) -> None:
        """Append blocks; the first must follow the tip."""
        for block in blocks:
            assert not self.blocks or block.ancestor == self.blocks[-1].id, f"block {block.point} does not follow"
            self._index[block.id] = len(self.blocks)
            self.blocks.append(block)
            self.frames.append(self.dialect.block(block.content))
        self._tell_tip()
        for session in self._sessions:
            session.chain_grew()

    def grow(self, count: int = 1) -> int:
        """Let the chain make more blocks; how many it had left to give."""
        fresh = self.chain.grow(count)
        self.extend(fresh)
        return len(fresh)

    def fork(self, ancestor: int, blocks: list[Block]) -> None:
        """Drop every block above the one at index `ancestor` (-1 for all) and append others in their place."""
        for block in self.blocks[ancestor + 1 :]:
            del self._index[block.id]
        del self.blocks[ancestor + 1 :], self.frames[ancestor + 1 :]
        self._history.forget(ancestor + 1)
        for session in self._sessions:
            session.chain_forked(ancestor)
        self.extend(blocks)

    def switch(self, chain: Chain) -> int:
        """Play another chain from here on; the index of the last block that both have, -1 for none."""
        shared = 0
        for ours, theirs in zip(self.blocks, chain.blocks, strict=False):
            if ours.id != theirs.id:
                break
            shared += 1
        self.chain = chain
        self.fork(shared - 1, chain.blocks[shared:])
        return shared - 1

    def inject(self, answer: bytes) -> None:
        """Give the next `nextBlock` request this answer, whatever it is."""
        self.injected.append(answer)

    def drop_connections(self) -> None:
        for session in list(self._sessions):
            session.drop()

    def index_of(self, point: Any) -> int | None:
        """The index of the block at a point, -1 for the origin, None where it isn't on this chain."""
        match point:
            case "origin":
                return -1
            case {"slot": slot, "id": id_}:
                index = self._index.get(id_)
                return index if index is not None and self.blocks[index].slot == slot else None
            case _:
                return None

    def point_json(self, index: int) -> bytes:
        if index < 0:
            return b'"origin"'
        block = self.blocks[index]
        return b'{"slot":%d,"id":"%b"}' % (block.slot, block.id.encode())

    def ledger_after(self, index: int) -> Ledger:
        """What the node knows of its ledger after the block at an index; to be read at once."""
        return self._history.after(index)

    def query(self, session: Session, method: str, params: msgspec.Raw) -> Any:
        """The answer to anything that doesn't move along the chain."""
        return queries.answer(self, session, method, params)

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

    def _tell_tip(self) -> None:
        if tip := self.tip:
            self.tip_json = b'{"slot":%d,"id":"%b","height":%d}' % (tip.slot, tip.id.encode(), tip.height)
        else:
            self.tip_json = b'"origin"'

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=0, compress=False)
        if not socket.can_prepare(request).ok:
            return web.Response(text="Ogmios speaks WebSocket here.", status=404)
        await socket.prepare(request)
        session = Session(self, socket, request.transport)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
        return socket

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(queries.health(self))
