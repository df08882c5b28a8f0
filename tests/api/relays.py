"""An address in front of an API that is restarted: to its callers, the API is away in between."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Passes connections on to the port `target`, and closes them while that is None."""

    def __init__(self) -> None:
        self.port, self.target = 0, None
        self._ends: set[asyncio.StreamWriter] = set()

    target: int | None

    def cut(self) -> None:
        """Break off all connections."""
        for end in self._ends:
            end.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on."""
        with suppress(OSError):
            if self.target is not None:
                there, to = await asyncio.open_connection("127.0.0.1", self.target)
                self._ends |= {writer, to}
                await asyncio.gather(_pass(reader, to), _pass(there, writer))
                to.close()
                self._ends -= {writer, to}
        writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    writer.transport.abort() if reader.exception() else writer.close()


@asynccontextmanager
async def relaying() -> AsyncIterator[Relay]:
    """A relay, which has no target yet."""
    relay = Relay()
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    yield relay
    relay.cut()
    server.close()
