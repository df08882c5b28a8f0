"""Liveness and readiness of this process, for load balancers and service managers."""

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from typing import Annotated, Literal, TypeVar

import asyncpg
import msgspec
import structlog
from redis.exceptions import RedisError

from api import errors, network_states
from api.answers import Answer
from api.ask import Nothing, OpenAsk
from api.parameters import Question, Text
from api.services import Services
from api.usage import spool_host
from shared import network_state, schema, tasks
from shared.lifecycle import UNREACHABLE
from shared.network import by_name
from shared.network_state import NetworkState

log = structlog.get_logger()
Found = TypeVar("Found")

_ANSWER_WITHIN_S = 3.0
_LONGEST_NAME = 100
_NOT_COUNTED = "usage cannot be recorded"

USAGE_QUEUED_WITHIN_S = 15.0
"""How long usage may stay unqueued before `/ready` reports it."""


class Alive(msgspec.Struct, frozen=True):
    """The process is running."""

    status: Literal["alive"] = "alive"


class Ready(msgspec.Struct, frozen=True):
    """Chain requests are answered and counted. `degraded` means that something else does not work; see `reasons`."""

    status: Literal["ready", "degraded"]
    reasons: list[str]
    networks: list[NetworkState]


class NetworkReady(msgspec.Struct, frozen=True):
    """Chain requests of this network are answered from a recent block. `degraded` means that something is wrong."""

    status: Literal["ready", "degraded"]
    reasons: list[str]
    network: NetworkState


class OneNetwork(Question, frozen=True, kw_only=True):
    """A network by its name."""

    network: Annotated[str, Text(_LONGEST_NAME)]


async def health(ask: OpenAsk[Nothing]) -> Answer[Alive]:  # noqa: ARG001 - every handler takes the ask
    """Check that the process is alive."""
    return Answer(data=Alive())


async def ready(ask: OpenAsk[Nothing]) -> Answer[Ready]:
    """Check whether chain requests can be answered and counted; if not, the answer is 503 with the reasons.

    With status 200, `reasons` lists the problems that do not affect requests; if there are any, `status` is `degraded`.
    """
    services = ask.services
    queue, looked = await asyncio.gather(_queue_faults(services), _within(_look(services)))
    if looked is None:
        raise errors.not_ready("; ".join([errors.database_not_available().message, *queue]))
    found, newer = looked
    shown = [each for each in found if not each.retired]
    reasons = [
        *queue,
        *newer,
        *(reason for each in shown for reason in network_state.reasons(each)),
        *_reasons(services),
    ]
    if faults := list(_faults(services, found)):
        raise errors.not_ready("; ".join([*faults, *reasons]))
    return Answer(data=Ready("degraded" if reasons else "ready", reasons, shown))


async def ready_network(ask: OpenAsk[OneNetwork]) -> Answer[NetworkReady]:
    """Check whether chain requests of one network are answered from a recent block, and counted; if not, 503.

    The last block may be READY_LAG_S old, 300 seconds unless configured.
    """
    services, network = ask.services, by_name.get(ask.question.network)
    if network is None:
        raise errors.not_found()
    found = await _within(network_states.of(services, network))
    if found is None:
        raise errors.not_ready(errors.database_not_available().message)
    reasons = network_state.reasons(found)
    if services.spools.fault is not None:
        raise errors.not_ready("; ".join([_NOT_COUNTED, *reasons]))
    if found.retired:
        raise errors.not_ready(f"{network.name} is retired")
    if not found.ready:
        raise errors.not_ready("; ".join(reasons))
    return Answer(data=NetworkReady("degraded" if reasons else "ready", reasons, found))


def _faults(services: Services, found: Sequence[NetworkState]) -> Iterator[str]:
    """Why chain requests cannot be answered or counted; any of these makes /ready answer 503."""
    if services.spools.fault is not None:
        yield _NOT_COUNTED
    if not any(each.phase == "live" for each in found):
        yield "no network is available yet"


def _reasons(services: Services) -> Iterator[str]:
    """Problems of this process that do not affect requests; any of these makes /ready report `degraded`.

    /ready is open: they contain neither host names nor texts of exceptions, which are in the log.
    """
    for failure in tasks.failing():
        yield f"the background task {failure.task} fails"
    if spool_host.others(services.settings.data_dir):
        yield "DATA_DIR is shared with another host: see the log"
    if services.spools.unusable:
        yield f"{len(services.spools.unusable)} files in the usage folder are unusable: see the log"
    if time.monotonic() - services.spools.queued_at > USAGE_QUEUED_WITHIN_S:
        yield "usage waits on disk"
    for number, reason in services.chain_servers.left_out().items():
        yield f"replica {number} of READ_DATABASE_URL is left out: {reason}"


async def _schema_faults(services: Services) -> list[str]:
    """A reason if a newer program has migrated the database. Raises the database's errors."""
    async with services.keys.acquire() as db:
        try:
            await schema.check(db)
        except schema.WrongSchema as newer:
            return [str(newer)]
    return []


async def _look(services: Services) -> tuple[list[NetworkState], list[str]]:
    """The states of the networks, and problems of the schema."""
    return await network_states.network_states(services), await _schema_faults(services)


async def _within(look: Coroutine[None, None, Found]) -> Found | None:
    """The result of a database check; None if the database does not answer in time."""
    looking = asyncio.create_task(look)
    looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            return await asyncio.shield(looking)
    except (*UNREACHABLE, asyncpg.InterfaceError, TimeoutError) as cause:
        looking.cancel()  # NOTE: its end is not awaited: a frozen server may delay that, too
        log.warning("ready.without_database", cause=f"{type(cause).__name__}: {cause}")
        return None


async def _queue_faults(services: Services) -> list[str]:
    """A reason if Valkey does not answer: usage then waits on disk, and each process limits rates alone."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            await services.valkey.ping()
    except (RedisError, OSError, TimeoutError) as cause:
        log.warning("ready.without_queue", cause=f"{type(cause).__name__}: {cause}")
        return ["queue not available, rates are limited per process"]
    return []
