"""Example values for /openapi.json that work when tried, from the first network that is served."""

import asyncio
from functools import partial

import asyncpg
import msgspec
import structlog

from api.chain.epochs import LATEST
from api.chain.pools import show_pool_id
from api.services import Services
from api.sources.chain_servers import ChainServer
from shared import address, sql
from shared.lifecycle import UNREACHABLE
from shared.network import NETWORKS, Network

log = structlog.get_logger()

_TIMEOUT_S = 2.0


class _Oldest(msgspec.Struct, frozen=True):
    tx_hash: bytes | None
    address: bytes | None
    policy_id: bytes | None
    asset_name: bytes | None
    pool_id: bytes | None
    account: bytes | None


_sql = sql.beside(__file__)
_oldest = _sql.query("oldest", _Oldest)


async def path_parameters(services: Services) -> dict[str, str]:
    """Values of path parameters by name; empty if no network is served or the database does not answer."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            for network in NETWORKS:
                oldest = await services.chain_servers.read(network, partial(_read, network=network))
                if oldest is not None:
                    return _shown(oldest)
    except (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.LockNotAvailableError, TimeoutError) as cause:
        log.warning("openapi.without_examples", cause=f"{type(cause).__name__}: {cause}")
    return {}


async def _read(source: ChainServer, network: Network) -> _Oldest | None:
    async with source.connection(network) as db:
        return await _oldest.one(db)


def _shown(oldest: _Oldest) -> dict[str, str]:
    values = {"block": LATEST, "epoch": LATEST}
    if oldest.tx_hash is not None:
        values["hash"] = values["tx_hash"] = oldest.tx_hash.hex()
        values["index"] = "0"
    if oldest.address is not None:
        values["address"] = address.show(oldest.address)
    if oldest.policy_id is not None and oldest.asset_name is not None:
        values["policyId"] = oldest.policy_id.hex()
        values["asset"] = f"{oldest.policy_id.hex()}.{oldest.asset_name.hex()}"
    if oldest.pool_id is not None:
        values["poolId"] = show_pool_id(oldest.pool_id)
    if oldest.account is not None:
        values["stake_address"] = address.show_stake(oldest.account)
    return values
