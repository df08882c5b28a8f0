"""The example that credits deposits: exactly once over forks, kills and restarts, and undone with their blocks."""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.api.test_subscriptions import ALICE, BOB, Telling, telling
from tests.chain.written import ADA, hash_of, pays, person, tx
from tests.patience import PATIENCE_S

__all__ = ["telling"]

EXCHANGE = person("exchange")
EXAMPLE = Path(__file__).parents[2] / "clients/python/examples/credit_deposits.py"


class Books:
    """The example as a process, and what it has booked."""

    def __init__(self, telling: Telling, folder: Path) -> None:
        self.path = folder / "deposits.db"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(EXAMPLE.parents[1]),
            "URL": f"http://127.0.0.1:{telling.api.port}",
            "API_KEY": telling.key,
            "BOOKS": str(self.path),
            "CONFIRMATIONS": "0",
        }

    async def start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), ALICE, BOB, env=self.environment)

    def read(self, statement: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as books:
            return books.execute(statement).fetchall()

    async def until(self, number: int, program: asyncio.subprocess.Process) -> list[tuple[object, ...]]:
        """The deposits after an event."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.path.exists() or not self.has_read(number):
                assert program.returncode is None, "the example has ended"
                await asyncio.sleep(0.05)
        return self.read("SELECT address, tx_hash, lovelace FROM deposit ORDER BY number")

    def has_read(self, number: int) -> bool:
        try:
            return self.read("SELECT number FROM reading") == [(number,)]
        except sqlite3.OperationalError:
            return False  # it has just begun


async def test_deposits_are_credited_once_and_undone_with_their_blocks(telling: Telling, tmp_path: Path) -> None:
    books = Books(telling, tmp_path)
    program = await books.start()
    await books.until(0, program)
    await telling.told()
    await telling.append(20, tx("a", pays(ALICE)), tx("b", pays(BOB)))
    await telling.append(30, tx("sweep", pays(ALICE), pays(EXCHANGE), spends=(("a", 0),)))
    assert await books.until(3, program) == [(ALICE, hash_of("a"), 2 * ADA), (BOB, hash_of("b"), 2 * ADA)]
    program.send_signal(signal.SIGKILL)
    await program.wait()
    await telling.append(40, tx("c", pays(BOB)))
    await telling.back_to(20)
    await telling.append(35, tx("d", pays(ALICE)))
    program = await books.start()
    kept = [(ALICE, hash_of("a"), 2 * ADA), (BOB, hash_of("b"), 2 * ADA), (ALICE, hash_of("d"), 2 * ADA)]
    assert await books.until(7, program) == kept
    program.send_signal(signal.SIGKILL)
    await program.wait()
    listed = (await telling.call("GET")).body["data"]
    assert len(listed) == 1
