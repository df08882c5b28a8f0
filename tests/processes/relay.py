"""A relay in front of a server, which a test can close or freeze."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.ports import free_port

T = TypeVar("T")


class TcpRelay:
    """Passes bytes to the server of a URL while open; refuses and drops connections while closed. It begins closed."""

    def __init__(self) -> None:
        self.port = free_port()
        self._target = ("", 0)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def in_front_of(self, url: str) -> str:
        """The same URL through this relay."""
        parts = urlsplit(url)
        assert parts.hostname is not None and parts.port is not None, url
        self._target = (parts.hostname, parts.port)
        return parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{self.port}")).geturl()

    def open(self) -> None:
        self._run(self._open())

    def close(self) -> None:
        self._run(self._close())

    def freeze(self) -> None:
        """Forward nothing until `thaw`; connections stay open."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def thaw(self) -> None:
        """Forward everything that was held back."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def end(self) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, action: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result(10)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.1)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to_there = await asyncio.open_connection(*self._target)
        except ConnectionError:  # the server is away
            writer.close()
            return
        self._writers |= {writer, to_there}
        await asyncio.gather(self._pass(reader, to_there), self._pass(there, writer))
        self._writers -= {writer, to_there}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while received := await reader.read(65536):
                await self._flowing.wait()
                writer.write(received)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            await self._flowing.wait()
            writer.close()
