"""A connection to Postgres that does not come about."""

import asyncio
import socket

import pytest

from shared import database


async def test_connect_timeout_ends_an_attempt() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/l?connect_timeout=1&sslmode=disable"
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        with pytest.raises(TimeoutError):
            await database.connect(url)
        assert loop.time() - began_at < database.CONNECT_WITHIN_S
