"""The command `devnet` serves a chain, grows and forks it, and ends in good order."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp

from tests.chain.ogmios import OgmiosClient
from tests.patience import PATIENCE_S


async def test_the_command_serves_grows_forks_and_stops_on_sigterm(tmp_path: Path) -> None:
    command = ["serve", "--port", "0", "--blocks", "30", "--pace", "50", "--fork-every", "5", "--ogmios", "7"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "devnet",
        *command,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(url.replace("ws", "http") + "/health") as response:
                health = await response.json()
                assert (health["network"], health["version"]) == ("preview", "v7.0.0")
            async with session.ws_connect(url) as socket:
                ogmios = OgmiosClient(socket)
                await ogmios.ask("nextBlock")  # to the origin
                forks = 0
                while forks < 2:  # a slow reader meets none before it has reached the tip
                    forks += (await ogmios.ask("nextBlock"))["direction"] == "backward"
    finally:
        process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
