"""Replies that are not those of a Valkey."""

import asyncio

import pytest

from api.keys import valkey as valkeys
from api.keys.valkey import packed
from tests.patience import PATIENCE_S

ECHO = packed(b"ECHO", b"hello")


@pytest.mark.parametrize("nonsense", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+OK\r\n" * 100])
def test_invalid_replies_are_an_error(nonsense: bytes) -> None:
    """The same for more replies than commands: no caller may get another's."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"*"):
                writer.write(b"+OK\r\n")
            if b"ECHO" in line:
                writer.write(nonsense)

    async def talked_to() -> None:
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with valkeys.opened(f"redis://127.0.0.1:{port}/0?protocol=2") as valkey:
                await valkey.ping()
                await valkey.ask(ECHO)
                assert valkey._link is not None
                async with asyncio.timeout(PATIENCE_S):
                    while not valkey._link.lost:
                        await asyncio.sleep(0.01)

    asyncio.run(talked_to())
