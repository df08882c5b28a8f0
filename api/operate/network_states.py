"""The state of each network (its index, its indexer, its node), read for readiness, metrics and pages.

Heartbeats are read from the primary, indexes from a server that answers chain requests. All functions raise the errors
of an unreachable database.
"""

from api.services import Services
from api.sources.chain_servers import ChainServer
from shared import leader, network_state
from shared.leader import LastHeartbeat
from shared.network import NETWORKS, Network
from shared.network_state import Comparison, IndexState, NetworkState, RollbackDepth


async def network_states(services: Services) -> list[NetworkState]:
    """Every network that is known, including retired ones. The cost does not grow with the chain."""
    heartbeats = await _heartbeats(services)
    indexes = [(network, await _index(services, network)) for network in NETWORKS]
    states = [_state(services, network, index, heartbeats) for network, index in indexes]
    return [state for state in states if state.known]


async def read(services: Services, network: Network) -> NetworkState:
    """One network, whether it is indexed or not."""
    heartbeats = await _heartbeats(services)
    return _state(services, network, await _index(services, network), heartbeats)


async def rollbacks(services: Services, network: Network) -> list[RollbackDepth]:
    """The node's rollbacks of a network by depth, since its index began."""

    async def read_rollbacks(source: ChainServer) -> list[RollbackDepth]:
        async with source.connection(network) as db:
            return await network_state.rollbacks(db)

    return await services.chain_servers.read(network, read_rollbacks)


async def comparisons(services: Services, network: Network) -> list[Comparison]:
    """The last comparison of a network with its node's ledger, by kind; nothing before the first one."""

    async def read_comparisons(source: ChainServer) -> list[Comparison]:
        async with source.connection(network) as db:
            return await network_state.comparisons(db)

    return await services.chain_servers.read(network, read_comparisons)


def _state(
    services: Services, network: Network, index: IndexState | None, heartbeats: dict[int, LastHeartbeat]
) -> NetworkState:
    return network_state.derive(
        network,
        index,
        heartbeats[network.network_id],
        services.settings.ready_lag_s,
        refuses_splits=services.chain_splits.refuses,
    )


async def _heartbeats(services: Services) -> dict[int, LastHeartbeat]:
    async with services.key_pool.acquire() as db:
        return await leader.last_heartbeats(db)


async def _index(services: Services, network: Network) -> IndexState | None:
    async def read_index(source: ChainServer) -> IndexState | None:
        async with source.connection(network) as db:
            return await network_state.index_state(db)

    return await services.chain_servers.read(network, read_index)
