"""A substitute token registry, and an entry of it."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from shared.metadata import Metadata
from tests.chain.written import POLICY
from tests.ports import free_port

COIN = b"Coin"
ASSET = bytes.fromhex(POLICY) + COIN
SUBJECT = ASSET.hex()
LOGO = "iVBORw0KGgo="


def entry(subject: str = SUBJECT, **values: Any) -> dict[str, Any]:
    """An entry of CIP-26 with these properties."""
    attested = {name: {"sequenceNumber": 0, "value": value, "signatures": []} for name, value in values.items()}
    return {"subject": subject, "policy": "82018201", **attested}


WHOLE = entry(name="Coin", ticker="CN", description="A coin", decimals=6, url="https://example.org", logo=LOGO)
AS_METADATA = Metadata(
    name="Coin",
    ticker="CN",
    description="A coin",
    decimals=6,
    image=f"data:image/png;base64,{LOGO}",
    url="https://example.org",
    logo=LOGO,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Served:
    """A registry on a free port that gives the answers set by a test, and counts its requests."""

    def __init__(self) -> None:
        self.port = free_port()
        self.asked: Counter[str] = Counter()
        self.handler: Handler = self.says(WHOLE)

    @property
    def url(self) -> str:
        """Its address as TOKEN_REGISTRY_URL."""
        return f"http://127.0.0.1:{self.port}/metadata/{{subject}}"

    def says(self, body: Any, status: int = 200) -> Handler:
        """A handler that answers every request with this."""

        async def answer(_: web.Request) -> web.Response:
            return web.json_response(body, status=status)

        return answer

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked[request.path] += 1
        return await self.handler(request)

    async def run(self) -> web.AppRunner:
        """Start it; the caller cleans the runner up."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        return runner


@asynccontextmanager
async def serving_registry() -> AsyncIterator[Served]:
    """One that runs until the block ends."""
    served = Served()
    runner = await served.run()
    yield served
    await runner.cleanup()
