"""Whether this process is alive, and whether it can answer: what load balancers and supervisors ask."""

import asyncio
from typing import Literal

import asyncpg
import msgspec
import structlog
from redis.exceptions import RedisError

from api import errors
from api.answers import Answer
from api.ask import Nothing, OpenAsk
from api.services import Services
from shared import database, sql
from shared.lifecycle import UNREACHABLE
from shared.network import NETWORKS, Network

log = structlog.get_logger()

_ANSWER_WITHIN_S = 3.0


class Alive(msgspec.Struct, frozen=True):
    """The process runs and answers."""

    status: Literal["alive"] = "alive"


class Standing(msgspec.Struct, frozen=True):
    """How far one network is indexed.

    `phase` is `bulk` until its histories are built: chain endpoints answer 503 until then. `lag_slots` is how far the
    index is behind its node, null while that is unknown. `unlike_pools` is of how many pools the live stake was not the
    node's when they were last compared, which happens once in each epoch; null where they never were.
    """

    network: str
    network_id: int
    phase: Literal["bulk", "live"]
    slot_no: int
    block_no: int
    lag_slots: int | None
    unlike_pools: int | None
    indexer_running: bool


class Ready(msgspec.Struct, frozen=True):
    """Database, queue and at least one network answer; every network that is served has its indexer."""

    networks: list[Standing]
    status: Literal["ready"] = "ready"


class _Standing(msgspec.Struct, frozen=True):
    phase: Literal["bulk", "live"]
    slot_no: int
    block_no: int
    node_slot_no: int | None
    unlike_pools: int | None


_standing = sql.query("standing", _Standing)


async def health(ask: OpenAsk[Nothing]) -> Answer[Alive]:  # noqa: ARG001 - every handler is given what was asked
    """Say that the process is alive."""
    return Answer(data=Alive())


async def ready(ask: OpenAsk[Nothing]) -> Answer[Ready]:
    """Say whether requests can be answered: 503 with the reasons where not."""
    queue, standings = await asyncio.gather(_queue_fault(ask.services), _standings_or_fault(ask.services))
    faults = [] if queue is None else [queue]
    if ask.services.spools.fault is not None:
        faults.append("usage cannot be recorded")
    if isinstance(standings, str):
        raise errors.not_ready("; ".join([standings, *faults]))
    served = [standing for standing in standings if standing.phase == "live"]
    if not served:
        faults.append("no network is available yet")
    faults += [f"no indexer is running for {standing.network}" for standing in served if not standing.indexer_running]
    if faults:
        raise errors.not_ready("; ".join(faults))
    return Answer(data=Ready(standings))


async def standings(services: Services) -> list[Standing]:
    """Every network of which anything is indexed. Raises what the database raises."""
    async with services.partner.acquire() as db:
        writers = await database.writers(db)
    found = []
    for network in NETWORKS:
        async with services.chains.connection(network) as db:
            row = await _standing.one(db)
        if row is not None:
            found.append(_shown(network, row, network.network_id in writers))
    return found


def _shown(network: Network, row: _Standing, indexer_running: bool) -> Standing:
    return Standing(
        network=network.name,
        network_id=network.network_id,
        phase=row.phase,
        slot_no=row.slot_no,
        block_no=row.block_no,
        lag_slots=None if row.node_slot_no is None else max(row.node_slot_no - row.slot_no, 0),
        unlike_pools=row.unlike_pools,
        indexer_running=indexer_running,
    )


async def _standings_or_fault(services: Services) -> list[Standing] | str:
    looking = asyncio.create_task(standings(services))
    looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            return await asyncio.shield(looking)
    except (*UNREACHABLE, asyncpg.InterfaceError, TimeoutError) as cause:
        looking.cancel()  # NOTE: without waiting for its end, which a frozen server may hold up as well
        log.warning("ready.without_database", cause=f"{type(cause).__name__}: {cause}")
        return errors.database_not_available().message


async def _queue_fault(services: Services) -> str | None:
    """None, or that Valkey does not answer: then usage waits on disk, and each process limits rates alone."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            await services.valkey.ping()
    except (RedisError, OSError, TimeoutError) as cause:
        log.warning("ready.without_queue", cause=f"{type(cause).__name__}: {cause}")
        return "queue not available, rates are limited per process"
    return None
