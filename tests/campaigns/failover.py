"""`python -m tests.campaigns.failover --rounds 10`: a switchover and a crash of the primary in each round, under load.

Postgres is three servers under Patroni. An indexer follows the devnet, two API hosts answer, an aggregator adds up
usage. At the end it prints the losses: accounts whose creation was confirmed, answered requests that are not in the
usage table, and differences that `verify` finds. In synchronous mode any loss fails the campaign. Needs root, and
Debian's patroni, etcd-server, etcd-client and postgresql-15.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import aiohttp
import asyncpg
import msgspec
import typer

from tests.api.own_valkey import OwnValkey
from tests.campaigns import patroni
from tests.chain.harness import Process, environment, issue_keys, until
from tests.ports import free_port

BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
NOBODY = "addr_test1vrm9x2zsux7va6w892g38tvchnzahvcd9tykqf3ygnmwtaqyfg52x"
PAUSE_S = 0.02  # between two requests of a caller: the load is modest
CALLERS = 4
BETWEEN_FAULTS_S = 5.0
SETTLES_WITHIN_S = 120.0


class CallersSaw(msgspec.Struct):
    """The callers' observations."""

    made: list[str] = []  # external ids of accounts
    statuses: Counter[str] = msgspec.field(default_factory=Counter)  # by path and status
    counted: int = 0  # answers to authenticated requests
    broken: int = 0  # connections that ended without an answer: possibly counted
    tips_back: int = 0  # answers with an older tip than the previous answer's, except for rolled back blocks
    refused_since: float | None = None
    outages_s: list[float] = []  # of accounts: from the first refusal to the next success


class Site(msgspec.Struct, frozen=True):
    """All running processes."""

    cluster: patroni.Cluster
    ports: list[int]
    processes: list[Process]
    settings: dict[str, str]


def main(rounds: Annotated[int, typer.Option()] = 10, synchronous: Annotated[bool, typer.Option()] = True) -> None:
    """Run the campaign."""
    with patroni.cluster(synchronous=synchronous) as cluster, tempfile.TemporaryDirectory() as folder:
        valkey = OwnValkey(Path(folder) / "valkey")
        valkey.start()
        processes: list[Process] = []
        try:
            site = _start(cluster, valkey.url, Path(folder), processes)
            seen = asyncio.run(_campaign(site, rounds))
            lost = asyncio.run(_lost(site, seen))
        finally:
            for process in processes:
                process.kill()
            valkey.kill()
        tracebacks = _tracebacks(Path(folder))
    mode = "synchronous" if synchronous else "asynchronous"
    print(f"{rounds} switchovers and {rounds} crashes, {mode} commit")
    print(f"answers: {dict(sorted(seen.statuses.items()))}, connections broken: {seen.broken}")
    waits = ", ".join(f"{wait_s:.1f}" for wait_s in seen.outages_s)
    median = statistics.median(seen.outages_s or [0])
    print(f"writes refused for (s): {waits}; median {median:.1f}")
    print(f"tracebacks in logs: {len(tracebacks)}, internal errors: {_internal_errors(seen)}", *tracebacks, sep="\n")
    for what, figure in lost.items():
        print(f"{what}: {figure}")
    failed = _internal_errors(seen) or (synchronous and any(lost.values()))
    raise typer.Exit(1 if failed else 0)


def _tracebacks(folder: Path) -> list[str]:
    """Each traceback in the logs of our processes, with the name of the log and the lines before it."""
    found = []
    for path in sorted(folder.glob("*.log")):
        lines = path.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines):
            if "Traceback" in line:
                found.append("\n".join((f"{path.name}:", *lines[max(number - 3, 0) : number + 60])))
    return found


def _start(cluster: patroni.Cluster, redis_url: str, folder: Path, processes: list[Process]) -> Site:
    node_port, ports = free_port(), [free_port(), free_port()]
    settings = {
        "DATABASE_URL": cluster.url,
        "READ_DATABASE_URL": cluster.url,
        "REDIS_URL": redis_url,
        "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY,
        "DATA_DIR": str(folder / "indexer"),
    }

    def start(name: str, *command: str, **more: str) -> Process:
        processes.append(Process(list(command), settings | more, folder / f"{name}.log"))
        return processes[-1]

    start("node", "devnet", "serve", "--port", str(node_port), "--blocks", "300", "--pace", "2", "--fork-every", "25")
    start("indexer", "indexer", "run", "--network", "preview", "--ogmios-url", f"ws://127.0.0.1:{node_port}")
    for number, port in enumerate(ports):
        start(f"api-{number}", "api", "--port", str(port), DATA_DIR=str(folder / f"api-{number}"))
    start("aggregator", "dramatiq", "api.worker", "-p", "1", "-t", "2")
    return Site(cluster, ports, processes, settings)


async def _campaign(site: Site, rounds: int) -> CallersSaw:
    """Faults, with load from beginning to end."""
    seen, stop = CallersSaw(), asyncio.Event()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(40)) as session:
        await _until("the API serves preview", lambda: _is_ready(session, site.ports[0]))
        keys = await issue_keys(_leader_url(site.cluster), "preview", CALLERS)
        admin_key = await _admin_key(session, site.ports[0])
        load = [
            asyncio.create_task(_read(session, site.ports[number % 2], key, seen, stop))
            for number, key in enumerate(keys)
        ]
        load.append(asyncio.create_task(_write(session, site.ports, admin_key, seen, stop)))
        for number in range(rounds):
            for fault in (_switch_over, _crash):
                await asyncio.sleep(BETWEEN_FAULTS_S)
                began = time.monotonic()
                await asyncio.to_thread(fault, site.cluster)
                print(f"round {number + 1}: {fault.__name__[1:]}, whole again after {time.monotonic() - began:.1f} s")
                for task in load:
                    if task.done():
                        task.result()
        await asyncio.sleep(BETWEEN_FAULTS_S)
        stop.set()
        await asyncio.gather(*load)
    return seen


def _switch_over(cluster: patroni.Cluster) -> None:
    cluster.switch_over()
    cluster.is_whole()


def _crash(cluster: patroni.Cluster) -> None:
    leader = cluster.is_whole()
    leader.crash()
    until("another leader", cluster.leader, patroni.FAILS_OVER_WITHIN_S, every_s=0.2)
    leader.start()
    cluster.is_whole()


async def _read(session: aiohttp.ClientSession, port: int, key: str, seen: CallersSaw, stop: asyncio.Event) -> None:
    """Query one API host repeatedly, and check its tips."""
    newest = 0
    while not stop.is_set():
        await asyncio.sleep(PAUSE_S)
        try:
            status, headers, body = await _ask(session, "GET", port, f"/v1/tx/history/{NOBODY}", key)
        except (aiohttp.ClientError, TimeoutError):
            seen.broken += 1
            continue
        seen.statuses[f"chain {status}"] += 1
        seen.counted += "RateLimit-Limit" in headers
        if status == 200:
            slot_no = body["last_updated"]["slot_no"]
            seen.tips_back += slot_no < newest
            newest = slot_no


async def _write(
    session: aiohttp.ClientSession, ports: list[int], admin_key: str, seen: CallersSaw, stop: asyncio.Event
) -> None:
    """Create accounts with unique names, on both API hosts in turn."""
    while not stop.is_set():
        await asyncio.sleep(PAUSE_S)
        name = uuid4().hex
        port = ports[len(seen.made) % 2]
        try:
            status, *_ = await _ask(
                session, "POST", port, "/v1/admin/users", admin_key, {"name": "x", "external_id": name}
            )
        except (aiohttp.ClientError, TimeoutError):
            seen.broken += 1
            continue
        seen.statuses[f"admin {status}"] += 1
        if status == 201:
            seen.made.append(name)
            if seen.refused_since is not None:
                seen.outages_s.append(time.monotonic() - seen.refused_since)
                seen.refused_since = None
        elif seen.refused_since is None:
            seen.refused_since = time.monotonic()


async def _lost(site: Site, seen: CallersSaw) -> dict[str, int]:
    """Everything that was confirmed to callers and is missing from the database."""
    db = await asyncpg.connect(await asyncio.to_thread(_leader_url, site.cluster))

    async def counted() -> int:
        return int(await db.fetchval("SELECT coalesce(sum(successful + failed), 0) FROM partner.usage"))

    async def has_all() -> bool:
        return await counted() >= seen.counted

    with suppress(AssertionError):
        await _until("the usage is in the table", has_all)
    there = {row[0] for row in await db.fetch("SELECT external_id FROM partner.user_account")}
    in_table = await counted()
    await db.close()
    verify = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "indexer",
        "verify",
        "--network",
        "preview",
        env=environment(site.settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await verify.communicate()
    if verify.returncode:
        print(said.decode())
    print(f"accounts made: {len(seen.made)}, requests answered: {seen.counted}, in the table: {in_table}")
    print(f"tips that went back, which forks of the devnet do too: {seen.tips_back}")
    return {
        "accounts lost": len(set(seen.made) - there),
        "requests not counted": max(seen.counted - in_table, 0),
        "requests counted twice": max(in_table - seen.counted - seen.broken, 0),
        "verify failed": int(bool(verify.returncode)),
    }


def _leader_url(cluster: patroni.Cluster) -> str:
    leader = cluster.is_whole()
    return cluster.urls[cluster.members.index(leader)]


def _internal_errors(seen: CallersSaw) -> int:
    return sum(count for what, count in seen.statuses.items() if what.endswith("500"))


async def _admin_key(session: aiohttp.ClientSession, port: int) -> str:
    status, _, body = await _ask(
        session, "POST", port, "/v1/admin/admin-keys", BOOTSTRAP_KEY, {"entity_name": "campaign"}
    )
    assert status == 201, body
    key: str = body["data"]["key"]
    return key


async def _ask(
    session: aiohttp.ClientSession, method: str, port: int, path: str, key: str, body: object = None
) -> tuple[int, Any, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    async with session.request(method, f"http://127.0.0.1:{port}{path}", headers=headers, json=body) as answer:
        return answer.status, answer.headers, await answer.json(content_type=None)


async def _is_ready(session: aiohttp.ClientSession, port: int) -> bool:
    with suppress(aiohttp.ClientError):
        async with session.get(f"http://127.0.0.1:{port}/ready") as answer:
            return answer.status == 200
    return False


async def _until(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + SETTLES_WITHIN_S
    while not await holds():
        assert time.monotonic() < deadline, f"{what}: not within {SETTLES_WITHIN_S} s"
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    typer.run(main)
