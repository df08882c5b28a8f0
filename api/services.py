"""The services that handlers use: pools, Valkey, keys, the usage spool. Opened once per process, closed in reverse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
import msgspec
import structlog
from prometheus_client import Gauge

from api.http.bodies import Room
from api.http.turns import FairPool, Turns
from api.keys import valkey as valkeys
from api.keys.caller import Callers
from api.keys.valkey import ValkeyClient
from api.node_bytes.readers import NodeReaders
from api.repeats.kept import KeptAnswers
from api.sources import chain_servers, chain_splits, event_heads, node_addresses, registry, retention
from api.sources.chain_servers import ChainServers
from api.sources.chain_splits import ChainSplits
from api.sources.event_heads import EventHeads
from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import Nodes
from api.sources.registry import Registry
from api.sources.shared_reading import SharedReadings
from api.usage import queue as usage_queue
from api.usage import spool_host
from api.usage.backlog import Backlog
from api.usage.spool import Spools
from shared import database, tasks
from shared.lifecycle import WAITED_FOR, wait_for
from shared.network import NETWORKS
from shared.servers import Servers
from shared.settings import Settings

log = structlog.get_logger()

_connections = Gauge(
    "ledgerline_connections", "Connections to Postgres.", ["pool", "state"], multiprocess_mode="livesum"
)
_COUNT_EVERY_S = 5.0

# Postgres grants 100 connections by default: enough for two API processes, the indexers and the usage aggregator. A
# pool for each kind of work keeps a slow kind from blocking the others (docs/decisions/0022).
KEY_CONNECTIONS = 3
ADMIN_CONNECTIONS, ADMIN_TURNS_EACH = 6, 4
QUEUE_CONNECTIONS = 1
RETENTION_CONNECTIONS = 1  # a deletion may be slow, and usage must not wait for it
SUBMISSION_CONNECTIONS = len(NETWORKS)  # a node takes one transaction at a time
EVENTS_CONNECTIONS, EVENTS_TURNS_EACH = 4, 2

ADMIN_ANSWER_WITHIN_S = 10.0
"""The time limit of an admin key's statement. The slowest are sums of usage over many credentials and months."""

SUBMISSION_STATEMENT_WITHIN_S = 10.0
"""The time limit of a statement for a submission. The slowest waits for another one with the same idempotency key."""

EVENTS_STATEMENT_WITHIN_S = 10.0
"""The time limit of a statement about subscriptions. The slowest adds as many subjects as a body holds."""

KEPT_S = 1.0
"""How long the readings of open endpoints are kept."""

MAX_EXPORTS = 2
"""Each holds one of a network's connections (CONNECTIONS in chain_servers.py) for some seconds; the other connections
answer requests.
"""

MAX_DOWNLOADS, MAX_DOWNLOADS_EACH = 8, 2
"""The most downloads in progress, per process and per credential. Each holds a file in DATA_DIR until it is sent."""


class Services(msgspec.Struct, frozen=True):
    """Everything that a handler may use besides the request."""

    settings: Settings
    key_pool: FairPool  # for authentication, and for `shared_readings`, which are short and few
    admin_pool: Turns[asyncpg.Pool]
    chain_servers: ChainServers
    chain_splits: ChainSplits
    nodes: Nodes
    node_readers: NodeReaders
    submission_pool: asyncpg.Pool
    events_pool: Turns[asyncpg.Pool]
    event_heads: EventHeads
    streams: Turns[None]  # of events
    valkey: ValkeyClient
    callers: Callers
    spools: Spools
    usage_backlog: Backlog
    registry: Registry
    shared_readings: SharedReadings  # of open endpoints
    downloads: Turns[Path]  # in DATA_DIR
    room: Room  # for long answers
    kept_answers: KeptAnswers
    export_slots: asyncio.Semaphore  # one for each whole list that may be read at a time
    count_connections: Callable[[], None]


@asynccontextmanager
async def opened(
    settings: Settings, servers: Servers, endpoints: Mapping[int, str], stop: asyncio.Event
) -> AsyncIterator[Services]:
    """Connect to the servers, waiting for each. Raises Stopped if `stop` is set meanwhile. `endpoints` are the names of
    endpoints, for usage, by the number that they have in a spool.
    """
    async with AsyncExitStack() as stack:
        pools = _Pools(servers.database_url, stop, stack)
        key_pool = await pools.open("keys", KEY_CONNECTIONS)
        keys = FairPool(key_pool, KEY_CONNECTIONS)
        admin = await pools.open("admin", ADMIN_CONNECTIONS, within_s=ADMIN_ANSWER_WITHIN_S)
        queue = await pools.open("queue", QUEUE_CONNECTIONS)
        pruning = await pools.open("retention", RETENTION_CONNECTIONS)
        submissions = await pools.open("submissions", SUBMISSION_CONNECTIONS, within_s=SUBMISSION_STATEMENT_WITHIN_S)
        events = await pools.open("events", EVENTS_CONNECTIONS, within_s=EVENTS_STATEMENT_WITHIN_S)
        opened_servers = await stack.enter_async_context(
            chain_servers.opened(
                servers.database_url,
                servers.read_database_urls,
                settings.replica_lag_s,
                [key_pool, admin, queue, pruning, submissions, events],
                pools.add,
            )
        )
        valkey = await stack.enter_async_context(valkeys.opened(servers.redis_url))
        await wait_for("valkey", valkey.ping, stop, WAITED_FOR)
        callers = Callers(keys, valkey, settings.bootstrap_admin_key)
        await stack.enter_async_context(tasks.background("connections", pools.count_forever))
        await stack.enter_async_context(tasks.background("heartbeats", callers.beat))
        await stack.enter_async_context(tasks.background("retention", lambda: retention.run(pruning, settings)))
        spools = await stack.enter_async_context(
            usage_queue.spooling(settings.data_dir, servers.redis_url, queue, endpoints)
        )
        await stack.enter_async_context(tasks.background("spool host", lambda: spool_host.watch(spools.folder)))
        nodes, node_readers = await _nodes(settings, keys, stack)
        splits = chain_splits.opened(keys, refuses=settings.on_split == "refuse")
        yield Services(
            settings=settings,
            key_pool=keys,
            admin_pool=Turns(admin, ADMIN_CONNECTIONS, ADMIN_TURNS_EACH, "admin requests"),
            chain_servers=opened_servers,
            chain_splits=await stack.enter_async_context(splits),
            nodes=nodes,
            node_readers=node_readers,
            submission_pool=submissions,
            events_pool=Turns(events, EVENTS_CONNECTIONS, EVENTS_TURNS_EACH, "requests"),
            streams=Turns(None, settings.events_streams, settings.events_streams_each, "streams"),
            event_heads=await stack.enter_async_context(event_heads.opened(events, stop)),
            valkey=valkey,
            callers=callers,
            spools=spools,
            usage_backlog=Backlog(spools.folder, queue, usage_queue.Queue(servers.redis_url)),
            shared_readings=SharedReadings(KEPT_S),
            downloads=Turns(settings.data_dir, MAX_DOWNLOADS, MAX_DOWNLOADS_EACH, "downloads"),
            room=Room.in_folder(settings.data_dir),
            kept_answers=KeptAnswers(),
            export_slots=asyncio.Semaphore(MAX_EXPORTS),
            count_connections=pools.count,
            registry=await stack.enter_async_context(registry.opened(settings.token_registry_url)),
        )


async def _nodes(settings: Settings, keys: FairPool, stack: AsyncExitStack) -> tuple[Nodes, NodeReaders]:
    """The connections to nodes, for transactions and to read from. They are closed with `stack`."""
    addresses = {name: NodeAddresses(urls) for name, urls in settings.ogmios_urls.items()}
    if any(each.count > 1 for each in addresses.values()):
        watch = partial(node_addresses.follow_the_indexers, keys, addresses)
        await stack.enter_async_context(tasks.background("node addresses", watch))
    nodes, readers = Nodes.at(addresses), NodeReaders.at(addresses)
    stack.callback(nodes.close)
    stack.push_async_callback(readers.close)
    return nodes, readers


class _Pools:
    """The pools of connections to Postgres, by the name that metrics give their use. They are closed with `stack`."""

    def __init__(self, database_url: str, stop: asyncio.Event, stack: AsyncExitStack) -> None:
        self._database_url, self._stop, self._stack = database_url, stop, stack
        self._pools: list[tuple[str, asyncpg.Pool]] = []

    async def open(self, name: str, most: int, within_s: float | None = None) -> asyncpg.Pool:
        """Open a pool of the primary, waiting for the server. Raises Stopped."""

        def create() -> Awaitable[asyncpg.Pool]:
            return database.create_pool(self._database_url, None, max_size=most, within_s=within_s)

        pool = await wait_for("postgres", create, self._stop, WAITED_FOR)
        self._stack.push_async_callback(_close, pool)
        self.add(name, pool)
        return pool

    def add(self, name: str, pool: asyncpg.Pool) -> None:
        """Count the connections of a pool that something else closes."""
        self._pools.append((name, pool))

    def count(self) -> None:
        """Set the gauges of connections; a network's pools, one for each server, are counted together."""
        for name in {name for name, _ in self._pools}:
            same = [pool for other, pool in self._pools if other == name]
            idle = sum(pool.get_idle_size() for pool in same)
            _connections.labels(name, "idle").set(idle)
            _connections.labels(name, "used").set(sum(pool.get_size() for pool in same) - idle)

    async def count_forever(self) -> None:
        """Publish this process' connections for scrapes of other processes. Its own scrape counts them again."""
        while True:
            self.count()
            await asyncio.sleep(_COUNT_EVERY_S)


async def _close(pool: asyncpg.Pool) -> None:
    """Close a pool; an error must not keep the others from being closed."""
    try:
        await pool.close()
    except Exception as cause:  # noqa: BLE001 - the process ends, and its connections with it
        log.warning("pool.not_closed", cause=f"{type(cause).__name__}: {cause}")
