"""A client of Ogmios, and answers in the form of its two major versions."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import islice
from typing import Any

import aiohttp
import msgspec

from devnet.server import NodeServer
from tests.chain.harness import blocks_of, recorded
from tests.chain.shapes import Shapes
from tests.patience import PATIENCE_S

Json = dict[str, Any]

VERSIONS = ((6, 14), (7, 0))
RECORDINGS = {
    6: ("mainnet-byron-from-genesis", "mainnet-allegra", "preview-pools", "preview-tokens"),
    7: ("preprod-babbage", "mainnet-conway"),
}
"""Recorded by Ogmios of each major version."""


def answers(version: tuple[int, int]) -> list[Json]:
    """The answers in tests/vectors, to `nextBlock`, `findIntersection`, `acquireLedgerState` and each query."""
    lines = recorded(f"answers-ogmios-{version[0]}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def recorded_answers(version: tuple[int, int], most: int) -> Iterator[Json]:
    """Answers to `nextBlock` with the first recorded blocks of each file."""
    for name in RECORDINGS[version[0]]:
        for block in islice(blocks_of(recorded(f"{name}.jsonl.xz")), most):
            yield forward(block, {"slot": 1, "id": "ab" * 32, "height": block["height"]})


def forward(block: Json, tip: Json) -> Json:
    """The answer to `nextBlock` that has this block."""
    return {"jsonrpc": "2.0", "method": "nextBlock", "result": {"direction": "forward", "block": block, "tip": tip}}


def strange(version: tuple[int, int], told: Iterable[Json]) -> dict[str, list[str]]:
    """By method, the differences of these answers' shapes from those of Ogmios.

    Every field and type must be one of recorded blocks or of the answers in tests/vectors, and none may be missing.
    NOTE: if a new answer differs, add one in Ogmios' form to tests/vectors/answers-ogmios-*.jsonl. The campaign
    `ogmios_files` compares both with Ogmios' schemas.
    """
    known = _known_shapes(version)
    differing = {method: shapes.strange(known[method]) for method, shapes in _shapes(told).items()}
    return {method: lines for method, lines in differing.items() if lines}


@cache
def _known_shapes(version: tuple[int, int]) -> defaultdict[str, Shapes]:
    return _shapes((*answers(version), *recorded_answers(version, most=80)))


def _shapes(told: Iterable[Json]) -> defaultdict[str, Shapes]:
    """By method, the shapes of answers, without what belongs to the question."""
    shapes: defaultdict[str, Shapes] = defaultdict(Shapes)
    for answer in told:
        shapes[answer["method"]].meet({name: part for name, part in answer.items() if name != "id"}, "answer")
    return shapes


class OgmiosClient:
    """A client: `ask` waits for the answer, `send` does not."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.asked = 0

    async def send(self, method: str, **params: Any) -> int:
        self.asked += 1
        request: Json = {"jsonrpc": "2.0", "method": method, "id": self.asked}
        await self.socket.send_json(request | ({"params": params} if params else {}))
        return self.asked

    async def receive(self) -> Json:
        message = await self.socket.receive(timeout=PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        answer: Json = msgspec.json.decode(message.data)
        return answer

    async def ask(self, method: str, **params: Any) -> Any:
        id_ = await self.send(method, **params)
        answer = await self.receive()
        assert answer["id"] == id_
        return answer["error"] if "error" in answer else answer["result"]


@asynccontextmanager
async def client(node: NodeServer) -> AsyncIterator[OgmiosClient]:
    async with aiohttp.ClientSession() as session, session.ws_connect(node.url, max_msg_size=0) as socket:
        yield OgmiosClient(socket)
