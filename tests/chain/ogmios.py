"""A client of Ogmios, and Ogmios' own schemas of its answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest
import referencing
from referencing.jsonschema import DRAFT7

from devnet.server import NodeServer
from tests.chain.harness import SHARED

Json = dict[str, Any]

SCHEMAS = {(6, 14): SHARED / "ogmios/v6.14", (7, 0): SHARED / "ogmios/v7.0"}
needs_schemas = pytest.mark.skipif(not SCHEMAS[7, 0].exists(), reason="Ogmios' schemas are not beside the checkout")


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
        message = await self.socket.receive(timeout=10)
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


def validator(version: tuple[int, int], answer: str) -> Any:
    """Checks an answer against Ogmios' own schema, with two mistakes corrected."""
    files = ("ogmios.json", "cardano.json")
    documents = {name: msgspec.json.decode((SCHEMAS[version] / name).read_bytes()) for name in files}
    value = documents["cardano.json"]["definitions"]["Value"]
    value["propertyNames"]["pattern"] = "^([0-9a-f]{56}|ada)$"  # the schema requires "ada" and forbids it
    byron = documents["cardano.json"]["definitions"]["Genesis<Byron>"]
    byron["required"].remove("protocolParameters")  # the schema requires this name and forbids it
    byron["properties"]["updatableParameters"] = {"$ref": "cardano.json#/definitions/BootstrapProtocolParameters"}
    registry: Any = referencing.Registry().with_resources(
        (name, DRAFT7.create_resource(content)) for name, content in documents.items()
    )
    return jsonschema.Draft7Validator({"$ref": f"ogmios.json#/properties/{answer}"}, registry=registry)
