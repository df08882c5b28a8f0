"""Values for /openapi.json that work when tried, taken from the first network that is served."""

import asyncio

import asyncpg
import msgspec
import structlog

from api.services import Services
from shared import address, packed, sql
from shared.encoding import bech32_encode
from shared.lifecycle import UNREACHABLE
from shared.network import NETWORKS

log = structlog.get_logger()

_ANSWER_WITHIN_S = 2.0


class _Oldest(msgspec.Struct, frozen=True):
    tx_hash: bytes | None
    outputs: bytes | None
    policy_id: bytes | None
    asset_name: bytes | None
    pool_id: bytes | None


_oldest = sql.query("oldest", _Oldest)


async def known(services: Services) -> dict[str, str]:
    """Values of path parameters by name; none where nothing is served or the database does not answer."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            for network in NETWORKS:
                async with services.chains.connection(network) as db:
                    oldest = await _oldest.one(db)
                if oldest is not None:
                    return _shown(oldest)
    except (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.LockNotAvailableError, TimeoutError) as cause:
        log.warning("openapi.without_examples", cause=f"{type(cause).__name__}: {cause}")
    return {}


def _shown(oldest: _Oldest) -> dict[str, str]:
    values = {}
    if oldest.tx_hash is not None and oldest.outputs is not None:
        values["hash"] = oldest.tx_hash.hex()
        _, outputs = packed.unpack_outputs(oldest.outputs)
        if outputs:
            values["address"] = address.show(outputs[0].address)
    if oldest.policy_id is not None and oldest.asset_name is not None:
        values["policyId"] = oldest.policy_id.hex()
        values["asset"] = f"{oldest.policy_id.hex()}.{oldest.asset_name.hex()}"
    if oldest.pool_id is not None:
        values["poolId"] = bech32_encode("pool", oldest.pool_id)
    return values
