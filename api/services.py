"""What requests are answered with: pools, Valkey, keys, the usage spool. Opened once per process, closed in reverse."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import asyncpg
import msgspec
import structlog
from prometheus_client import Gauge

from api import batches, registry
from api import valkey as valkeys
from api.caller import Callers
from api.registry import Registry
from api.usage import Spools
from api.valkey import Valkey
from shared import database
from shared.lifecycle import WAITED_FOR, wait_for
from shared.network import NETWORKS, Network
from shared.servers import Servers
from shared.settings import Settings

log = structlog.get_logger()

_connections = Gauge(
    "ledgerline_connections", "Connections to Postgres.", ["pool", "state"], multiprocess_mode="livesum"
)
_COUNT_EVERY_S = 5.0

# Postgres grants 100 connections by default: two API processes, the indexers and the worker fit into them.
CHAIN_CONNECTIONS = 8
PARTNER_CONNECTIONS = 8


class Chains:
    """Read connections to each network's chain, taken from the replicas in turn."""

    def __init__(self, replicas: Mapping[int, Sequence[asyncpg.Pool]]) -> None:
        self._replicas = replicas
        self._turn = itertools.count()

    def connection(self, network: Network) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """A connection to one replica; one that can't be reached is passed over for the next.

        Raises what the last replica raised where none can be reached.
        """
        pools = self._replicas[network.network_id]
        return self._of_any(network, pools) if len(pools) > 1 else pools[0].acquire()

    @asynccontextmanager
    async def _of_any(self, network: Network, pools: Sequence[asyncpg.Pool]) -> AsyncIterator[asyncpg.Connection]:
        first = next(self._turn)
        for attempt in range(len(pools)):
            pool = pools[(first + attempt) % len(pools)]
            try:
                connection = await pool.acquire()
            except (OSError, asyncpg.PostgresError) as cause:
                log.warning("replica.unreachable", network=network.name, cause=str(cause))
                if attempt == len(pools) - 1:
                    raise
            else:
                try:
                    yield connection
                finally:
                    await pool.release(connection)
                return


class Services(msgspec.Struct, frozen=True):
    """Everything a handler may need besides the request."""

    settings: Settings
    servers: Servers
    partner: asyncpg.Pool
    chains: Chains
    valkey: Valkey
    callers: Callers
    spools: Spools
    registry: Registry


@asynccontextmanager
async def opened(settings: Settings, servers: Servers, stop: asyncio.Event) -> AsyncIterator[Services]:
    """Connect to the servers, each as soon as it answers. Raises Stopped where `stop` is set before that."""
    async with AsyncExitStack() as stack:
        pools: list[tuple[str, asyncpg.Pool]] = []

        async def pool(url: str, network: Network | None, most: int) -> asyncpg.Pool:
            made = await wait_for("postgres", lambda: database.create_pool(url, network, most=most), stop, WAITED_FOR)
            stack.push_async_callback(made.close)
            pools.append(("partner" if network is None else network.name, made))
            return made

        partner = await pool(servers.database_url, None, PARTNER_CONNECTIONS)
        replicas = {
            network.network_id: [await pool(url, network, CHAIN_CONNECTIONS) for url in servers.read_database_urls]
            for network in NETWORKS
        }
        valkey = await stack.enter_async_context(valkeys.opened(servers.redis_url))
        await wait_for("valkey", valkey.ping, stop, WAITED_FOR)
        counting = asyncio.create_task(_count_connections(pools))
        stack.callback(counting.cancel)
        yield Services(
            settings=settings,
            servers=servers,
            partner=partner,
            chains=Chains(replicas),
            valkey=valkey,
            callers=Callers(partner, valkey, settings.bootstrap_admin_key),
            spools=await stack.enter_async_context(batches.spooling(settings.data_dir, servers.redis_url, partner)),
            registry=await stack.enter_async_context(registry.opened(settings.token_registry_url)),
        )


async def _count_connections(pools: Sequence[tuple[str, asyncpg.Pool]]) -> None:
    """Tell the metrics how many connections there are, for ever; the replicas of a network are one pool there."""
    while True:
        for name in {name for name, _ in pools}:
            same = [pool for other, pool in pools if other == name]
            idle = sum(pool.get_idle_size() for pool in same)
            _connections.labels(name, "idle").set(idle)
            _connections.labels(name, "used").set(sum(pool.get_size() for pool in same) - idle)
        await asyncio.sleep(_COUNT_EVERY_S)
