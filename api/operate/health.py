"""Liveness and readiness of this process, for load balancers and service managers."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
import structlog
from redis.exceptions import RedisError

from api import errors
from api.answers import Answer
from api.ask import Nothing, OpenAsk
from api.operate import network_states
from api.parameters import Question, Text
from api.services import Services
from api.sources import clock, held_snapshots
from api.sources.shared_reading import in_time
from api.usage import spool_host
from shared import network_state, schema, tasks
from shared.network import by_name
from shared.network_state import NetworkState
from shared.phase import Phase

log = structlog.get_logger()

_ANSWER_WITHIN_S = 3.0
_MAX_NAME_LENGTH = 100
_NOT_COUNTED = "usage cannot be recorded"
_WITHOUT_DATABASE = "ready.without_database"

USAGE_UNREACHABLE_S = 15.0
"""How long the queue or the usage tables may be unreachable before `/ready` reports it."""


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

    network: Annotated[str, Text(_MAX_NAME_LENGTH)]


async def get_health(ask: OpenAsk[Nothing]) -> Answer[Alive]:  # noqa: ARG001 - every handler takes the ask
    """Check that the process is alive."""
    return Answer(data=Alive())


async def get_readiness(ask: OpenAsk[Nothing]) -> Answer[Ready]:
    """Check whether chain requests can be answered and counted; if not, the answer is 503 with the reasons.

    With status 200, `reasons` lists the problems that do not affect requests; if there are any, `status` is `degraded`.
    An answer is up to a second old.
    """
    services = ask.services
    looked = await services.shared_readings.get("ready", lambda: _look(services))
    if looked.networks is None:
        raise errors.not_ready("; ".join([errors.database_not_available().message, *looked.queue_faults]))
    shown = [state for state in looked.networks if not state.retired]
    reasons = [
        *looked.queue_faults,
        *looked.schema_faults,
        *(reason for state in shown for reason in network_state.reasons(state)),
        *_reasons(services, looked),
    ]
    if faults := list(_faults(services, looked.networks)):
        raise errors.not_ready("; ".join([*faults, *reasons]))
    return Answer(data=Ready("degraded" if reasons else "ready", reasons, shown))


async def get_network_readiness(ask: OpenAsk[OneNetwork]) -> Answer[NetworkReady]:
    """Check whether chain requests of one network are answered from a recent block, and counted; if not, 503.

    The last block may be READY_LAG_S old, 300 seconds unless configured. An answer is up to a second old.
    """
    services, network = ask.services, by_name.get(ask.question.network)
    if network is None:
        raise errors.not_found()
    state = await services.shared_readings.get(
        f"ready {network.name}",
        lambda: in_time(network_states.read(services, network), _ANSWER_WITHIN_S, _WITHOUT_DATABASE),
    )
    if state is None:
        raise errors.not_ready(errors.database_not_available().message)
    reasons = network_state.reasons(state)
    if services.spools.fault is not None:
        raise errors.not_ready("; ".join([_NOT_COUNTED, *reasons]))
    if state.retired:
        raise errors.not_ready(f"{network.name} is retired")
    if not state.ready:
        raise errors.not_ready("; ".join(reasons))
    return Answer(data=NetworkReady("degraded" if reasons else "ready", reasons, state))


def _faults(services: Services, states: Sequence[NetworkState]) -> Iterator[str]:
    """Why chain requests cannot be answered or counted; any of these makes /ready answer 503."""
    if services.spools.fault is not None:
        yield _NOT_COUNTED
    live = [state for state in states if state.phase is Phase.LIVE]
    if not live:
        yield "no network is available yet"
    elif services.chain_splits.refuses and all(state.splits for state in live):
        yield "chain requests are refused while the chain is split"


def _reasons(services: Services, looked: "_Looked") -> Iterator[str]:
    """Problems of this process that do not affect requests; any of these makes /ready report `degraded`.

    /ready is open to anyone, so they contain neither host names nor texts of exceptions; those are in the log.
    """
    if looked.oldest_snapshot_s > held_snapshots.TOLD_AFTER_S:
        yield f"a session of the database has held a snapshot for {looked.oldest_snapshot_s:.0f} s"
    if clock.differs():
        ahead_s = clock.ahead_s()
        yield f"the clock of this host is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the database's"
    for failure in tasks.failing():
        yield f"the background task {failure.task} fails"
    if looked.shares_folder:
        yield "DATA_DIR is shared with another host: see the log"
    if services.spools.unusable:
        yield f"the usage folder has unusable files ({len(services.spools.unusable)}): see the log"
    if time.monotonic() - services.spools.looked_at > USAGE_UNREACHABLE_S:
        yield "usage waits on disk"
    for number, reason in services.chain_servers.left_out().items():
        yield f"replica {number} of READ_DATABASE_URL is left out: {reason}"


async def _schema_faults(services: Services) -> list[str]:
    """A reason if a newer program has migrated the database. Raises the database's errors."""
    async with services.key_pool.acquire() as db:
        try:
            await schema.check(db)
        except schema.WrongSchema as newer:
            return [str(newer)]
    return []


class _Looked(msgspec.Struct, frozen=True):
    """The facts that `/ready` reads from servers. `networks` is None if the database does not answer."""

    networks: list[NetworkState] | None
    schema_faults: list[str]
    queue_faults: list[str]
    shares_folder: bool
    oldest_snapshot_s: float


async def _look(services: Services) -> _Looked:
    at_database, queue_faults, others = await asyncio.gather(
        in_time(_look_at_database(services), _ANSWER_WITHIN_S, _WITHOUT_DATABASE),
        _queue_faults(services),
        asyncio.to_thread(spool_host.others, services.spools.folder),
    )
    networks, schema_faults, oldest_snapshot_s = at_database or (None, [], 0.0)
    return _Looked(networks, schema_faults, queue_faults, bool(others), oldest_snapshot_s)


async def _look_at_database(services: Services) -> tuple[list[NetworkState], list[str], float]:
    """The states of the networks, problems of the schema, and the age of the oldest snapshot."""
    networks, schema_faults = await network_states.network_states(services), await _schema_faults(services)
    async with services.key_pool.acquire() as db:
        return networks, schema_faults, await held_snapshots.oldest_s(db)


async def _queue_faults(services: Services) -> list[str]:
    """A reason if Valkey does not answer: usage then waits on disk, and each process limits rates alone."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            await services.valkey.ping()
    except (RedisError, OSError, TimeoutError) as cause:
        log.warning("ready.without_queue", cause=f"{type(cause).__name__}: {cause}")
        return ["queue not available, rates are limited per process"]
    return []
