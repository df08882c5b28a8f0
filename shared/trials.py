"""The `check` commands: print the settings in effect, without secrets, and try each server that they name.

A trial prints the facts and the problems of one server.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import asyncpg
import msgspec
import typer

from shared import database, schema, sql
from shared.network import NETWORKS, Network
from shared.setting_forms import masked
from shared.settings import Settings, effective
from shared.version import VERSION

WITHIN_S = 10.0
"""How long one trial may take."""

MAX_CLOCK_DIFFERENCE_S = 2.0
_ROUND_TRIPS = 5


class Trial(msgspec.Struct):
    """The findings at one server: facts by name, and defects, each of which makes the check fail."""

    what: str
    facts: dict[str, str] = {}
    defects: list[str] = []

    async def round_trip(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Note how long an answer takes: the median of several."""
        took_s = []
        for _ in range(_ROUND_TRIPS):
            began = time.perf_counter()
            await ask()
            took_s.append(time.perf_counter() - began)
        self.facts["round trip"] = f"{sorted(took_s)[len(took_s) // 2] * 1000:.2f} ms"

    async def clock(self, read: Callable[[], Awaitable[float]]) -> None:
        """Note how far the server's clock, in seconds since 1970, is from that of this machine."""
        began = time.time()
        there = await read()
        ahead_s = there - (began + time.time()) / 2
        self.facts["clock"] = f"{abs(ahead_s):.3f} s {'ahead of' if ahead_s >= 0 else 'behind'} this machine"
        if abs(ahead_s) > MAX_CLOCK_DIFFERENCE_S:
            self.defects.append(f"the clocks differ by {abs(ahead_s):.1f} s: synchronise both")

    def tip(self, network: Network, slot_no: int) -> None:
        """Note how old the node's last block is."""
        age_s = time.time() - network.slot_time(slot_no).timestamp()
        self.facts["clock"] = f"its tip, slot {slot_no}, is {age_s:,.0f} s old by the clock of this machine"
        if age_s < -MAX_CLOCK_DIFFERENCE_S:
            self.defects.append("its tip lies in the future: synchronise the clocks")


class _Health(msgspec.Struct, frozen=True, rename="camel"):
    version: str | None = None
    network_synchronization: float | None = None


class _Server(msgspec.Struct, frozen=True):
    version: str
    role: str
    database: str
    read_only: bool
    may_create: bool
    connections: int
    most_connections: int


_sql = sql.beside(__file__)
_server = _sql.query("server", _Server)
_schemas_of_others = _sql.values("schemas_of_others", str)


def show_settings(settings: Settings) -> None:
    """Print the version and the settings."""
    typer.echo(f"ledgerline {VERSION}, schema version {schema.VERSION}")
    _show("settings", effective(settings))


async def run(trials: Sequence[tuple[str, Callable[[Trial], Awaitable[None]]]]) -> int:
    """Run the trials one after another, and print each; returns the exit status."""
    failed = 0
    for what, attempt in trials:
        trial = Trial(what)
        try:
            async with asyncio.timeout(WITHIN_S):
                await attempt(trial)
        except TimeoutError:
            trial.defects.append(f"no answer within {WITHIN_S:.0f} s")
        except Exception as cause:  # noqa: BLE001 - any error is a finding for the operator
            trial.defects.append(f"{type(cause).__name__}: {cause}")
        _show(trial.what, trial.facts | {f"DEFECT {n}": text for n, text in enumerate(trial.defects, 1)})
        failed += bool(trial.defects)
    typer.echo(f"\n{failed} of {len(trials)} failed" if failed else f"\nall {len(trials)} passed")
    return 1 if failed else 0


async def postgres(trial: Trial, url: str, *, replica: bool = False) -> None:
    """Try a Postgres: address, version, round trip, clock, rights, schema."""
    trial.facts["address"] = masked(url).strip("'")
    async with _connected(url) as db:
        server = await _server.only(db)
        trial.facts["version"] = server.version
        await trial.round_trip(lambda: db.fetchval("SELECT 1"))
        await trial.clock(lambda: db.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8"))
        trial.facts["connections"] = f"{server.connections} of {server.most_connections}"
        trial.facts["role"] = f"{server.role} in database {server.database}"
        schema_version = await schema.version(db)
        trial.facts["schema"] = f"version {schema_version}" if schema_version else "none yet"
        if replica:
            trial.facts["replica"] = "yes" if server.read_only else "no: it takes writes"
            return
        foreign = await _schemas_of_others.all(db, ["partner", *(network.schema for network in NETWORKS)])
        if server.read_only:
            trial.defects.append("it takes no writes: DATABASE_URL must name the primary")
        if not server.may_create and not schema_version:
            trial.defects.append(
                f"role {server.role} may not create schemas: GRANT CREATE ON DATABASE {server.database}"
            )
        if foreign:
            names = ", ".join(foreign)
            trial.defects.append(f"role {server.role} does not own {names}, so it can't migrate them")
        if schema_version > schema.VERSION:
            trial.defects.append(
                f"its schema is newer than {schema.VERSION}, the newest that this program knows: upgrade the program"
            )


def node_name(network: str, number: int, urls: Sequence[str]) -> str:
    """What the trial of a node is called: with its number, if the network has several."""
    return f"ogmios of {network}" + (f", node {number}" if len(urls) > 1 else "")


async def ogmios(trial: Trial, url: str) -> None:
    """Note the address of Ogmios and what it says of itself over HTTP, unless a proxy hides that."""
    trial.facts["address"] = masked(url).strip("'")
    parts = urlsplit(url)
    scheme, path = parts.scheme.replace("ws", "http", 1), f"{parts.path.rstrip('/')}/health"
    async with (
        aiohttp.ClientSession() as session,
        session.get(urlunsplit((scheme, parts.netloc, path, "", ""))) as response,
    ):
        try:
            health = msgspec.json.decode(await response.read(), type=_Health)
        except msgspec.DecodeError:
            health = _Health()
    trial.facts["version"] = health.version or "unknown: /health is not available"
    if health.network_synchronization is not None:
        trial.facts["synchronised"] = f"{health.network_synchronization:.2%}"


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    db = await database.connect(url)
    try:
        yield db
    finally:
        db.terminate()


def _show(title: str, lines: dict[str, str]) -> None:
    typer.echo(f"\n{title}")
    width = max(map(len, lines), default=0)
    for name, text in lines.items():
        typer.echo(f"  {name:<{width}}  {text}")
