"""The control port of a devnet: HTTP calls that make the chain grow, fork or stall, for partners' tests.

POST /grow?blocks=3                 make blocks now
POST /fork?depth=3&forget=true      replace the last blocks with a longer fork; `forget` drops their transactions
POST /stall, POST /resume           stop making blocks by the clock, and start again
GET /                               the state, which every call returns
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from aiohttp import web

from devnet.generator import Generated
from devnet.node import Node

MAX_BLOCKS = 1_000
MAX_FORK_DEPTH = 100
FORK_DEPTH = 3
_SEEDS = count(1_000_000)


class Pace:
    """Whether the chain grows by the clock."""

    def __init__(self) -> None:
        self.stalled = False


def fork(node: Node, depth: int, *, forget: bool = False) -> None:
    """Replace the last blocks with a fork that is one block longer or, if the chain is recorded, play them again."""
    ancestor = max(len(node.blocks) - 1 - depth, -1)
    if isinstance(node.chain, Generated):
        node.switch(node.chain.fork(ancestor, next(_SEEDS), depth + 1), forget=forget)
    else:
        node.fork(ancestor, node.blocks[ancestor + 1 :], forget=forget)


@asynccontextmanager
async def listening(node: Node, pace: Pace, host: str, port: int) -> AsyncIterator[str]:
    """Listen until the end of the `with` block, and yield the address; `port` 0 takes any free port."""
    app = web.Application()
    app.add_routes([web.get("/", _answering(node, pace, _nothing))])
    for name, act in (("grow", _grow), ("fork", _fork), ("stall", _stall), ("resume", _resume)):
        app.add_routes([web.post(f"/{name}", _answering(node, pace, act))])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, reuse_address=True).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


Act = Callable[[Node, Pace, web.Request], None]


def _answering(node: Node, pace: Pace, act: Act) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        try:
            act(node, pace, request)
        except ValueError as wrong:
            return web.json_response({"error": str(wrong)}, status=400)
        return web.json_response(_state(node, pace))

    return handler


def _state(node: Node, pace: Pace) -> dict[str, Any]:
    tip = node.tip
    return {
        "tip": None if tip is None else {"slot": tip.slot, "id": tip.id, "height": tip.height},
        "stalled": pace.stalled,
        "mempool": list(node.mempool.waiting),
    }


def _nothing(_node: Node, _pace: Pace, _request: web.Request) -> None:
    """Only report the state."""


def _grow(node: Node, _pace: Pace, request: web.Request) -> None:
    node.grow(_number(request, "blocks", 1, MAX_BLOCKS))


def _fork(node: Node, _pace: Pace, request: web.Request) -> None:
    forget = request.query.get("forget", "false")
    if forget not in ("true", "false"):
        raise ValueError("forget must be true or false")
    fork(node, _number(request, "depth", FORK_DEPTH, MAX_FORK_DEPTH), forget=forget == "true")


def _stall(_node: Node, pace: Pace, _request: web.Request) -> None:
    pace.stalled = True


def _resume(_node: Node, pace: Pace, _request: web.Request) -> None:
    pace.stalled = False


def _number(request: web.Request, name: str, default: int, maximum: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 6 or not 1 <= int(text) <= maximum:
        raise ValueError(f"{name} must be between 1 and {maximum}")
    return int(text)
