"""`python -m tests.campaigns.bounds --minutes 10`: what one key asks costs an API process little, and another key less.

An API process serves a chain with the longest answers that valid transactions can have. One key sends 30
requests at a time for them: whole, compressed, by HEAD, in bulk, below /blockfrost, with bodies of 1 MiB, and without
reading the answers; half of its requests are for pages of 100 ordinary transactions. Another key asks for an ordinary
page again and again. The peak of the process' memory must stay below MAX_MEMORY, and the other key's 99th percentile
below twice its value before, plus one page of the first key.
"""

import asyncio
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import aiohttp
import asyncpg
import msgspec
import psutil
import typer

from shared import database, schema, servers, settings
from shared.network import PREVIEW
from tests import long_answers
from tests.campaigns import world as worlds
from tests.chain.harness import issue_keys
from tests.long_answers import LONG, ORDINARY
from tests.processes.api_process import running

MAX_MEMORY = 400 * 1_000_000
LONG_ONES = 8
PARALLEL = 30
ORDINARY_PAGE = f"/v1/tx/address/{ORDINARY}?limit=20"
WHOLE_PAGE = f"/v1/tx/address/{LONG}?limit=1&offset=170"
"""A page of the first key: one transaction of 14 MB."""

BULK = "/v1/bulk/transactions"
_FACADE = "/blockfrost/api/v0"
_ASK_EVERY_S = 0.02
_UNREAD_S = 3.0
ANSWERED = frozenset(("200", "400", "503"))
"""The statuses of answers to the first key."""


class Request(msgspec.Struct, frozen=True):
    """A request of the first key."""

    method: str
    path: str
    ids: Sequence[str] = ()
    junk_bytes: int = 0
    encoding: str = "identity"
    is_read: bool = True


class Latencies(msgspec.Struct, frozen=True):
    """The seconds of the other key's requests, and the statuses of the first key's answers."""

    quiet_s: list[float]
    loaded_s: list[float]
    page_s: float
    statuses: dict[str, int]

    def __str__(self) -> str:
        quiet, loaded = (percentile(each, 0.99) * 1_000 for each in (self.quiet_s, self.loaded_s))
        return (
            f"99th percentile of the other key: {quiet:.1f} ms quiet ({len(self.quiet_s):,} requests),"
            f" {loaded:.1f} ms under load ({len(self.loaded_s):,}); a page of the first: {self.page_s * 1_000:.0f} ms;"
            f" answers to the first: {self.statuses}"
        )

    @property
    def is_fair(self) -> bool:
        """Whether the other key was delayed by no more than is promised."""
        return percentile(self.loaded_s, 0.99) < 2 * percentile(self.quiet_s, 0.99) + self.page_s


def requests() -> list[Request]:
    """Each kind of request for long answers, and as many for a page of 100 ordinary transactions."""
    hashes = [long_answers.hash_at(number).hex() for number in range(LONG_ONES)]
    paths = [
        f"/v1/tx/hash/{hashes[0]}",
        WHOLE_PAGE,
        f"/v1/tx/address/{LONG}?limit=100&offset=100",
        f"/v1/addresses/{LONG}/utxos?limit=500",
        f"{_FACADE}/txs/{hashes[1]}/utxos",
        f"{_FACADE}/txs/{hashes[1]}",
        f"{_FACADE}/addresses/{LONG}/utxos",
    ]
    bulk = [hashes[:1], hashes[:1] * 100, hashes]
    found = [Request("GET", path, encoding=encoding) for path in paths for encoding in ("identity", "gzip", "zstd")]
    found += [Request("GET", path, is_read=False) for path in paths]
    found += [Request("HEAD", path) for path in paths]
    found += [Request("POST", BULK, ids, encoding="gzip") for ids in bulk]
    found.append(Request("POST", BULK, hashes[:1], junk_bytes=1_000_000))
    return found + [Request("GET", f"/v1/tx/address/{ORDINARY}?limit=100", encoding="gzip")] * len(found)


def load(port: int, key: str, seconds: float, seed: int) -> dict[str, int]:
    """Send the first key's requests, PARALLEL at a time; the number of answers by status."""
    return asyncio.run(_load(port, key, seconds, seed))


async def _load(port: int, key: str, seconds: float, seed: int) -> dict[str, int]:
    statuses: Counter[str] = Counter()
    chance, kinds, ends = random.Random(seed), requests(), time.monotonic() + seconds
    async with _session() as session:

        async def ask() -> None:
            while time.monotonic() < ends:
                unread_s = max(0.0, min(_UNREAD_S, ends - time.monotonic()))
                statuses[await _asked(session, port, key, chance.choice(kinds), unread_s)] += 1

        await asyncio.gather(*(ask() for _ in range(PARALLEL)))
    return dict(statuses)


async def at_once(port: int, key: str, kinds: Sequence[Request]) -> list[str]:
    """The statuses of requests that are sent at the same time."""
    async with _session() as session:
        return await asyncio.gather(*(_asked(session, port, key, each, _UNREAD_S) for each in kinds))


def _session() -> aiohttp.ClientSession:
    timeout, connector = aiohttp.ClientTimeout(total=60), aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(timeout=timeout, connector=connector, auto_decompress=False)


async def _asked(session: aiohttp.ClientSession, port: int, key: str, request: Request, unread_s: float) -> str:
    """The status of a request, or the name of an error. One that is not read is closed after `unread_s`."""
    headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": request.encoding}
    junk = "[" + "{}," * (request.junk_bytes // 3) + "{}]"
    body = f'{{"ids": {json.dumps(list(request.ids))}, "junk": {junk}}}' if request.ids else None
    url = f"http://127.0.0.1:{port}{request.path}"
    try:
        async with session.request(request.method, url, data=body, headers=headers) as answer:
            if request.is_read:
                async for _ in answer.content.iter_chunked(1 << 16):
                    pass
            else:
                await asyncio.sleep(unread_s)
                answer.close()
            return str(answer.status)
    except (aiohttp.ClientError, TimeoutError) as cause:
        return type(cause).__name__


async def timed(session: aiohttp.ClientSession, port: int, key: str, path: str) -> float:
    """The seconds of one request, which must succeed."""
    began = time.perf_counter()
    async with session.get(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {key}"}) as answer:
        await answer.read()
        assert answer.status == 200, f"{path} was answered with {answer.status}"
    return time.perf_counter() - began


async def latencies(port: int, keys: Sequence[str], quiet_s: float, loaded_s: float) -> Latencies:
    """Measure the other key, first alone, then under load."""
    first, other = keys
    async with aiohttp.ClientSession() as session:

        async def ask(until: asyncio.Task[object]) -> list[float]:
            found = []
            while not until.done():
                found.append(await timed(session, port, other, ORDINARY_PAGE))
                await asyncio.sleep(_ASK_EVERY_S)
            return found

        for _ in range(20):
            await timed(session, port, other, ORDINARY_PAGE)
        page_s = statistics.median([await timed(session, port, first, WHOLE_PAGE) for _ in range(3)])
        quiet = await ask(asyncio.create_task(asyncio.sleep(quiet_s)))
        with get_context("spawn").Pool(1) as pool:
            working = asyncio.create_task(asyncio.to_thread(pool.apply, load, (port, first, loaded_s, 1)))
            loaded = await ask(working)
            return Latencies(quiet, loaded, page_s, await working)


def percentile(figures: Sequence[float], share: float) -> float:
    """The figure below which this share of all figures is."""
    return sorted(figures)[int(len(figures) * share)]


def peak_bytes(pid: int) -> int:
    """The highest resident memory of a process and its children so far, the largest of them."""
    pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    texts = [Path(f"/proc/{each}/status").read_text() for each in pids]
    return max(int(text.partition("VmHWM:")[2].split()[0]) for text in texts) * 1024


async def run(folder: Path, minutes: float) -> bool:
    """Run the campaign; returns whether everything stayed within its bounds."""
    found = settings.read({"DATA_DIR": str(folder / "servers")})
    async with servers.running(found) as running_servers:
        url = running_servers.database_url
        db = await asyncpg.connect(url)
        await schema.migrate(db)
        await db.close()
        db = await database.connect(url, PREVIEW)
        await long_answers.fill(db, LONG_ONES)
        await db.close()
        keys = await issue_keys(url, PREVIEW.name, 2)
        environment = {
            "DATABASE_URL": url,
            "REDIS_URL": running_servers.redis_url,
            "DATA_DIR": str(folder),
            "LOG_FORMAT": "json",
        }
        with running(environment, folder) as (api, port):
            await until_answered(port)
            seen = await latencies(port, keys, min(30.0, minutes * 10), minutes * 60)
            peak = peak_bytes(api.popen.pid)
    print(seen)
    print(f"the process' memory reached {peak / 1e6:.0f} MB, of at most {MAX_MEMORY / 1e6:.0f}")
    return peak < MAX_MEMORY and seen.is_fair and seen.statuses.keys() <= ANSWERED


async def until_answered(port: int) -> None:
    """Wait until the API answers."""
    async with aiohttp.ClientSession() as session:
        for _ in range(600):
            try:
                async with session.get(f"http://127.0.0.1:{port}/health"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
    raise AssertionError("the API does not answer")


def main(minutes: Annotated[float, typer.Option(min=0.05, help="Length of the load.")] = 10) -> None:
    """Load one API process from two keys; exit status 1 if a bound does not hold."""
    worlds.run_in_own_folder(
        "bounds", lambda folder: asyncio.run(run(folder, minutes)), "Every bound holds.", "A bound does not hold."
    )


if __name__ == "__main__":
    typer.run(main)
