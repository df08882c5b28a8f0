"""`python -m tests.campaigns.asked_again --seconds 600`: clients ask again while the chain forks and servers fail.

64 clients ask a few questions over and over. Meanwhile blocks arrive and forks replace them, replicas lag behind, or
the primary is killed. No answer may have an older tip than one that a client had received before its request began, and
each answer must equal all others of its question and tip, also those to `Cache-Control: no-cache`. A short version is
in `tests/processes/test_replicas.py`, whose servers this uses.
"""

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import aiohttp
import msgspec
import pytest
import typer

from api.blockfrost.shape import ROOT
from shared.ledger import tx_id_of
from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.payments import ALICE, pays

SECONDS = "ASKED_AGAIN_S"
CLIENTS = 64
_ANEW = 0.2  # of the requests
_HISTORY = f"/v1/tx/history/{ALICE}?limit=50"
_PATHS = (_HISTORY, f"{_HISTORY}&offset=1", f"{ROOT}/addresses/{ALICE}/transactions?order=desc", f"{ROOT}/nothing")


class Saw(msgspec.Struct):
    """What the clients have received."""

    newest: int = -1  # the number of the newest commit in an answer
    answers: Counter[str] = msgspec.field(default_factory=Counter)
    bodies: dict[tuple[str, int], Any] = msgspec.field(default_factory=dict)


class Writer:
    """Writes blocks that each pay Alice, and forks. Commits are numbered by the payment in the last block."""

    def __init__(self, chain: Chain, slot_no: int) -> None:
        """`slot_no` is that of the only block."""
        self._chain, self._slots, self._used, self._made = chain, [slot_no], {slot_no}, 0
        self.commits: dict[str, int] = {pays(f"at {slot_no}", ALICE).hash.hex(): 0}

    async def block(self) -> None:
        """One more block."""
        async with self._chain._db.transaction():
            await self._append()

    async def fork(self) -> None:
        """Replace some of the last blocks by one or more others; the first block stays."""
        if len(self._slots) == 1:
            await self.block()
            return
        undone = random.randint(1, min(3, len(self._slots) - 1))
        kept, db, chain = len(self._slots) - undone, self._chain._db, self._chain
        async with db.transaction():
            await db.execute("DELETE FROM tx WHERE tx_id >= $1", tx_id_of(self._slots[kept], 0))
            await db.execute("DELETE FROM block WHERE slot_no >= $1", self._slots[kept])
            await db.execute("DELETE FROM address_tx WHERE chunk > $1", (kept - 1) >> 6)
            entries = 8 * (kept - ((kept - 1) >> 6 << 6))
            cut = "UPDATE address_tx SET tx_ids = substr(tx_ids, 1, $2) WHERE chunk = $1"
            await db.execute(cut, (kept - 1) >> 6, entries)
            chain._lengths[0] = kept
            chain._blocks -= undone
            del self._slots[kept:]
            for _ in range(random.randint(1, 3)):
                await self._append()

    async def _append(self) -> None:
        slot_no = self._slots[-1] + random.randint(1, 9)
        while slot_no in self._used:  # a block's hash is that of its slot
            slot_no += 1
        self._used.add(slot_no)
        self._made += 1
        payment = pays(f"{slot_no} of {self._made}", ALICE)
        self.commits[payment.hash.hex()] = self._made
        await self._chain.append(slot_no, payment)
        self._slots.append(slot_no)


async def run(
    clients: Sequence[Client],
    keys: Sequence[str],
    writer: Writer,
    disturb: Callable[[], Awaitable[None]],
    seconds: float,
) -> Saw:
    """Ask and disturb for some seconds. Asserts what the module says of the answers."""
    saw, until = Saw(), time.monotonic() + seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        asking = [
            asyncio.create_task(_ask(session, clients[n % len(clients)], keys[n % len(keys)], writer, saw, until))
            for n in range(CLIENTS)
        ]
        while time.monotonic() < until:
            await disturb()
            await asyncio.sleep(random.uniform(0.01, 0.1))
        await asyncio.gather(*asking)
    return saw


async def _ask(
    session: aiohttp.ClientSession, client: Client, key: str, writer: Writer, saw: Saw, until: float
) -> None:
    while time.monotonic() < until:
        path, headers = random.choice(_PATHS), {"Authorization": f"Bearer {key}"}
        is_anew = random.random() < _ANEW
        if is_anew:
            headers["Cache-Control"] = "no-cache"
        newest = saw.newest
        async with session.get(f"http://127.0.0.1:{client.port}{path}", headers=headers) as response:
            status, body = response.status, await response.json(content_type=None)
        saw.answers[f"{status}{' anew' if is_anew else ''}"] += 1
        if path == _PATHS[-1] or status == 503:
            assert status in (400, 503), (status, body)
            continue
        assert status == 200, (status, body)
        commit = _commit_of(path, body, writer)
        if commit is None:
            continue
        assert commit >= newest, f"{path}: commit {commit} after {newest}"
        saw.newest = max(saw.newest, commit)
        assert saw.bodies.setdefault((path, commit), body) == body, f"{path}: other contents of commit {commit}"


def _commit_of(path: str, body: Any, writer: Writer) -> int | None:
    """The number of the commit that an answer shows; None if it is a page that does not show the last payment."""
    if path == _HISTORY:
        return writer.commits[body["data"][0]["tx_hash"]]
    return writer.commits[body[0]["tx_hash"]] if path.startswith(ROOT) else None


def main(seconds: Annotated[float, typer.Option(help="Seconds of each part.")] = 600) -> None:
    """Run each part for a longer time than the tests do."""
    os.environ[SECONDS] = str(seconds)
    sys.exit(pytest.main(["tests/processes/test_replicas.py", "-k", "asked_again", "-q", "-n0", "-s"]))


if __name__ == "__main__":
    typer.run(main)
