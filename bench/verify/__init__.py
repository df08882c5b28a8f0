"""The time of `verify`.

This is a package, because every process that `verify` starts would import the main module again if it were a module.
"""

import time

from indexer.verify import run
from shared import database
from shared.network import MAINNET


async def timed(url: str, processes: int) -> float:
    """The seconds of a complete verification."""
    db = await database.connect(url, MAINNET)
    began = time.perf_counter()
    _, differences = await run.verify(db, url, MAINNET, lambda *_: None, processes)
    ended = time.perf_counter()
    await db.close()
    assert differences == [], differences
    return ended - began
