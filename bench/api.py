"""`python -m bench.api`: the cost of a chain request beyond its statement.

The whole path (`python -m api`: key, limit, parameters, usage, tag, access log) is compared with a bare aiohttp handler
that runs the same statement on the same tables and encodes the same answer, with one worker and with two. Both run at
the same time, configure Python's collector in the same way, and take turns. CPU is that of the serving processes, and
should be at most 1.5 times the bare handler's.

Each turn sends the requests twice: as fast as answers arrive, and at the same pace for both. At full speed the bare
server answers more often, so the processes that it writes to are awake more often, and a write costs it less. The last
column is the CPU of Postgres and Valkey at full speed. ACCESS_LOG=off disables the log.

A second table has what a question costs that is asked again (docs/decisions/0077). In the first one each request has
`Cache-Control: no-cache`, so that it is answered anew.
"""

import asyncio
import math
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, cast
from uuid import UUID

import asyncpg
import msgspec
import psutil
import redis.asyncio
import typer
import uvloop
from aiohttp import web
from multidict import MultiDict
from rich.console import Console
from rich.table import Table

from api import answers
from api.ask import ChainAsk, Notes
from api.commands.processes import freeze_startup_objects
from api.keys import tokens
from api.keys.caller import ApiKey
from api.parameters import read_question
from api.route import Router
from api.routes import ROUTES
from api.services import Services
from api.sources.chain_servers import ChainServer
from bench import databases, machine, pages
from indexer.store import epochs, holders, supplies
from shared import address, database, packed, servers, settings
from shared.network import MAINNET

_GOAL = 1.5
_TRANSACTIONS = 200_000
_KEYS = 50
_CONNECTIONS = 16
_PACE = 1_000.0  # requests per second: fewer than either server can answer
_LISTED = 10_000  # of each: holders, mints, assets of a policy, delegators
_DIFFERENT = 1_000  # questions in turn
_IN_A_BLOCK = 20  # questions between two blocks
_MANY = b"\1" * 28
_ASSET = f"{bytes(28).hex()}.{b'token'.hex()}"
_PATHS = {
    "history, 100": f"/v1/tx/history/{address.show(pages.BUSY)}",
    "detail, 20": f"/v1/tx/address/{address.show(pages.BUSY)}",
    "holders, 100": f"/v1/assets/{_ASSET}/holders",
    "assets of a policy, 100": f"/v1/assets/policy/{_MANY.hex()}",
    "delegators, 100": f"/v1/pools/{bytes(28).hex()}/delegators/list",
    "pool": f"/v1/pools/{bytes(28).hex()}",
    "mints, 100": f"/v1/assets/{_ASSET}/mints",
}


class Turn(msgspec.Struct, frozen=True):
    """Some requests: total seconds, CPU seconds of the server and of its databases, and the seconds of each request.

    `paced_cpu_s` are the CPU seconds of the server for the same number of requests at a given pace.
    """

    wall_s: float
    cpu_s: float
    asked_cpu_s: float
    each_s: list[float]
    paced_cpu_s: float


async def fill(db: asyncpg.Connection) -> list[str]:
    """Insert an address with transactions, an asset with holders, and keys. Returns the keys."""
    await pages.fill(db, _TRANSACTIONS)
    await db.execute(
        "INSERT INTO address (address_no, raw)"
        " SELECT n, '\\x61' || sha224(n::text::bytea) FROM generate_series(4, $1::integer + 3) AS n",
        _LISTED,
    )
    await db.execute(
        "INSERT INTO holder (asset_no, address_no, quantity)"
        " SELECT 1, address_no, address_no * 7 FROM address WHERE address_no > 3"
    )
    await db.execute(
        "INSERT INTO mint (asset_no, seq, tx_id, quantity, named)"
        " SELECT 1, row_number() OVER (ORDER BY tx_id) - 1, tx_id, 7, false"
        " FROM (SELECT tx_id FROM tx ORDER BY tx_id LIMIT $1) minting",
        _LISTED,
    )
    await db.execute("INSERT INTO policy (policy_no, policy_id) VALUES (2, $1)", _MANY)
    await db.execute(
        "INSERT INTO asset (asset_no, policy_no, fingerprint, name, supply, first_tx_id)"
        " SELECT 1 + n, 2, n, ('Collectible #' || n)::bytea, 1, 0 FROM generate_series(1, $1::integer) AS n",
        _LISTED,
    )
    await db.execute(
        "INSERT INTO stake (stake_no, pool_no, active_epoch_no, balance, raw)"
        " SELECT n, 1, 500, n * 1000000::bigint, '\\xe1' || sha224(n::text::bytea)"
        " FROM generate_series(1, $1::integer) AS n",
        _LISTED,
    )
    await db.execute("INSERT INTO pool (pool_no, pool_id) VALUES (1, $1)", bytes(28))
    parameters = packed.PoolParameters(
        bytes(32), 10**11, 170_000_000, "1/50", b"\xe1" + bytes(28), [b"\xe1" + bytes(28)]
    )
    await db.execute(
        "INSERT INTO pool_update (tx_id, pool_no, place, parameters) VALUES (0, 1, 0, $1)",
        packed.pack_pool_parameters(parameters),
    )
    await holders.fill(db)
    await supplies.fill(db)
    await epochs.fill(db)
    keys = await issue_keys(db)
    await db.execute("ANALYZE")
    return keys


async def issue_keys(db: asyncpg.Connection) -> list[str]:
    """API keys for mainnet with the highest limit."""
    keys = [tokens.new_api_key() for _ in range(_KEYS)]
    await db.execute(
        """
        WITH owner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('bench', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'bench' FROM owner
            RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 10000, $1, hash, '', 'bench' FROM account, unnest($2::bytea[]) AS hash
        """,
        MAINNET.network_id,
        [tokens.hash_of(key) for key in keys],
    )
    return keys


def _serve_bare(listening: socket.socket, url: str) -> None:
    """Answer until killed. The question of each path is made once."""
    router = Router(ROUTES)

    async def main() -> None:
        pool = await database.create_pool(url, MAINNET, max_size=8)
        key = ApiKey(UUID(int=0), MAINNET)

        def handler_of(path: str) -> Any:
            route, parameters = router.find("GET", path)
            question = read_question(route.question, route.fields, parameters, MultiDict())
            # NOTE: these handlers need only a connection, and no other service.
            source = ChainServer(url, {MAINNET.network_id: pool})
            ask = ChainAsk(services=cast(Services, None), question=question, key=key, source=source, notes=Notes())

            async def answer(_request: web.Request) -> web.Response:
                return web.Response(
                    body=answers.encode(await route.handler(ask)), headers={"Content-Type": answers.CONTENT_TYPE}
                )

            return answer

        app = web.Application()
        app.add_routes([web.get(path, handler_of(path)) for path in _PATHS.values()])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        freeze_startup_objects()
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


@asynccontextmanager
async def bare(url: str, workers: int) -> AsyncIterator[tuple[int, list[psutil.Process]]]:
    """The bare handler in `workers` processes on one port."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        made = [get_context("spawn").Process(target=_serve_bare, args=(listening, url)) for _ in range(workers)]
        for process in made:
            process.start()
        try:
            yield listening.getsockname()[1], [psutil.Process(process.pid) for process in made]
        finally:
            for process in made:
                process.kill()
                process.join()


@asynccontextmanager
async def whole(
    url: str, redis_url: str, workers: int, folder: Path
) -> AsyncIterator[tuple[int, list[psutil.Process]]]:
    """`python -m api` with `workers` workers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    environment = {"DATABASE_URL": url, "REDIS_URL": redis_url, "DATA_DIR": str(folder), "LOG_FORMAT": "json"}
    with (folder / "api.log").open("wb") as lines:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "api", "--port", str(port), "--workers", str(workers)),
            env=os.environ | environment,
            stderr=lines,
        )
    try:
        served = psutil.Process(process.pid)
        while len(_listening(served, port)) < 1 or len(served.children()) < (workers if workers > 1 else 0):
            assert process.returncode is None, "the API ended"
            await asyncio.sleep(0.1)
        yield port, [served, *served.children(recursive=True)]
    finally:
        process.terminate()
        await process.wait()


def _listening(process: psutil.Process, port: int) -> list[Any]:
    return [
        connection
        for connection in process.net_connections("tcp")
        if connection.laddr and connection.laddr.port == port
    ]


async def ask(port: int, requests: Sequence[bytes], per_s: float = math.inf) -> list[float]:
    """Send requests over some connections, at most `per_s` a second; the time of each."""
    took_s: list[float] = []
    first_s = time.perf_counter()

    async def send(first: int, requests: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, request in enumerate(requests):
            due_s = first_s + (first + number * _CONNECTIONS) / per_s
            if due_s > (began := time.perf_counter()):
                await asyncio.sleep(due_s - began)
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            took_s.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(send(start, requests[start::_CONNECTIONS]) for start in range(_CONNECTIONS)))
    return took_s


def requests_of(paths: Sequence[str], keys: Sequence[str], count: int, header: str = "") -> list[bytes]:
    """Requests with each path and each key in turn, and one more header line."""
    return [
        (
            f"GET {paths[n % len(paths)]} HTTP/1.1\r\nHost: bench\r\n{header}"
            f"Authorization: Bearer {keys[n % len(keys)]}\r\n\r\n"
        ).encode()
        for n in range(count)
    ]


class ServersAsked:
    """The Postgres and the Valkey that the servers query."""

    def __init__(self, db: asyncpg.Connection, redis_url: str) -> None:
        self._db, self._valkey = db, redis.asyncio.Redis.from_url(redis_url, decode_responses=True)

    async def cpu_s(self) -> float:
        """CPU seconds of both so far."""
        of_valkey = await self._valkey.info("cpu")
        return float(
            await databases.all_cpu_s(self._db) + of_valkey["used_cpu_user"] + of_valkey["used_cpu_sys"],
        )

    async def until_limits_are_shared(self) -> None:
        """Wait for at most a minute after a server has ended: until then each request reads its key in Postgres
        (docs/decisions/0021-limits-over-outages.md).
        """
        while any(str(field).startswith("owes:") for field in await self._valkey.hkeys("ledgerline:limits")):
            await asyncio.sleep(1)

    async def close(self) -> None:
        """Disconnect."""
        await self._db.close()
        await self._valkey.aclose()


async def turn(port: int, served: list[psutil.Process], asked: ServersAsked, requests: Sequence[bytes]) -> Turn:
    """Send requests, and measure their cost to the server."""
    asked_before, began, began_cpu = await asked.cpu_s(), time.perf_counter(), _cpu_s(served)
    each_s = await ask(port, requests)
    wall_s, own_s = time.perf_counter() - began, _cpu_s(served) - began_cpu
    asked_s, began_cpu = await asked.cpu_s() - asked_before, _cpu_s(served)
    await ask(port, requests, _PACE)
    return Turn(wall_s, own_s, asked_s, each_s, _cpu_s(served) - began_cpu)


def _cpu_s(served: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in served)


async def _asked_again(url: str, redis_url: str, keys: Sequence[str], count: int, rounds: int, folder: Path) -> Table:
    """What questions cost that are asked again, with one worker."""
    table = Table("", "question", "API us", "Postgres and Valkey us", "of the first time", title="asked again")
    for column in table.columns[2:]:
        column.justify = "right"
    db = await database.connect(url, MAINNET)
    asked = ServersAsked(await asyncpg.connect(url), redis_url)
    async with whole(url, redis_url, 1, folder) as (port, served):
        await ask(port, requests_of([next(iter(_PATHS.values()))], keys, len(keys)))
        await asked.until_limits_are_shared()
        for name, path in _PATHS.items():
            many = [f"{path}?n={number}" for number in range(_DIFFERENT)]
            kinds: dict[str, list[list[bytes]]] = {
                "first time": [requests_of([path], keys, count, "Cache-Control: no-cache\r\n")],
                "again, one key": [requests_of([path], keys[:1], count)],
                "again, other keys": [requests_of([path], keys, count)],
                "after each block": [requests_of(many[:_IN_A_BLOCK], keys, _IN_A_BLOCK)] * (count // _IN_A_BLOCK),
                f"{_DIFFERENT:,} different ones": [requests_of(many, keys, max(count, _DIFFERENT))],
            }
            costs: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
            for _ in range(rounds + 1):
                for kind, groups in kinds.items():
                    own, others = _cpu_s(served), await asked.cpu_s()
                    for requests in groups:
                        if len(groups) > 1:
                            await db.execute("UPDATE tip SET block_hash = sha256(block_hash)")
                        await ask(port, requests)
                    sent = sum(map(len, groups))
                    spent = _cpu_s(served) - own, await asked.cpu_s() - others
                    costs[kind].append((spent[0] / sent * 1e6, spent[1] / sent * 1e6))
            medians = {
                kind: [statistics.median(column) for column in zip(*spent[1:], strict=True)]
                for kind, spent in costs.items()
            }
            first = sum(medians["first time"])
            for kind, (own_us, others_us) in medians.items():
                share = (own_us + others_us) / first
                table.add_row(
                    name if kind == "first time" else "", kind, f"{own_us:,.0f}", f"{others_us:,.0f}", f"{share:.2f}"
                )
    await asked.close()
    await db.close()
    return table


async def _compare(
    url: str, redis_url: str, workers: int, keys: Sequence[str], count: int, rounds: int, folder: Path
) -> Table:
    table = Table(
        *("", "path", "requests/s", "p50 ms", "p99 ms", "CPU us", "of bare"),
        *(f"CPU us, {_PACE:,.0f}/s", "of bare", "Postgres and Valkey us"),
        title=f"workers: {workers}; goal: {_GOAL} times the bare CPU",
    )
    for column in table.columns[2:]:
        column.justify = "right"
    asked = ServersAsked(await asyncpg.connect(url), redis_url)
    async with bare(url, workers) as plain, whole(url, redis_url, workers, folder) as full:
        both = {"bare": plain, "whole": full}
        await ask(full[0], requests_of([next(iter(_PATHS.values()))], keys, len(keys)))
        await asked.until_limits_are_shared()
        for name, path in _PATHS.items():
            # NOTE: answered anew, as by the bare handler, which keeps nothing.
            requests = requests_of([path], keys, count, "Cache-Control: no-cache\r\n")
            turns: dict[str, list[Turn]] = {kind: [] for kind in both}
            for _ in range(rounds + 1):
                for kind, (port, served) in both.items():
                    turns[kind].append(await turn(port, served, asked, requests))
            # The first turn of each is a warm-up.
            table.add_row(name, "bare", *_figures(turns["bare"], count, None))
            table.add_row("", "whole", *_figures(turns["whole"], count, turns["bare"]))
    await asked.close()
    return table


def _figures(turns: Sequence[Turn], count: int, bare_turns: Sequence[Turn] | None) -> list[str]:
    """The columns of a row after its name. CPU is per request, and also a multiple of the bare handler's."""
    each_ms = sorted(took * 1e3 for turn in turns for took in turn.each_s)

    def cpu(of: Callable[[Turn], float]) -> list[str]:
        own_s = statistics.median(map(of, turns))
        share = "" if bare_turns is None else f"{own_s / statistics.median(map(of, bare_turns)):.2f}"
        return [f"{own_s / count * 1e6:,.0f}", share]

    return [
        f"{count / statistics.median(turn.wall_s for turn in turns):,.0f}",
        f"{each_ms[len(each_ms) // 2]:.1f}",
        f"{each_ms[len(each_ms) * 99 // 100]:.1f}",
        *cpu(lambda turn: turn.cpu_s),
        *cpu(lambda turn: turn.paced_cpu_s),
        f"{statistics.median(turn.asked_cpu_s for turn in turns) / count * 1e6:,.0f}",
    ]


async def _measure(count: int, rounds: int, workers: Sequence[int]) -> None:
    console = Console()
    async with servers.running(settings.read()) as running, databases.fresh(running.database_url) as url:
        console.print(machine.describe(await machine.postgres_version(url)))
        db = await database.connect(url, MAINNET)
        keys = await fill(db)
        await db.close()
        with TemporaryDirectory(prefix="bench_") as folder:
            for number in workers:
                console.print(await _compare(url, running.redis_url, number, keys, count, rounds, Path(folder)))
            console.print(await _asked_again(url, running.redis_url, keys, count, rounds, Path(folder)))


def main(
    count: Annotated[int, typer.Option("--requests", min=100, help="Requests in each turn.")] = 2_000,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each server.")] = 5,
    workers: Annotated[list[int] | None, typer.Option(min=1, help="Serving processes; default: 1, then 2.")] = None,
) -> None:
    """Measure the whole path of a chain request against a bare handler."""
    asyncio.run(_measure(count, rounds, workers or (1, 2)))


if __name__ == "__main__":
    typer.run(main)
