"""The state of the service for everybody: `/v1/status`, and the page at `/status` that shows it."""

import asyncio
from datetime import datetime
from typing import Literal

import msgspec

from api.answers import Answer, Instant
from api.ask import Nothing, OpenAsk
from api.operate import network_states
from api.services import Services
from api.sources.chain_servers import ChainServer
from shared import schema, sql
from shared.network import Network, by_name
from shared.network_state import Comparison, NetworkState
from shared.phase import Phase
from shared.version import VERSION

_ANSWER_WITHIN_S = 3.0
_MINUTES = 60

Word = Literal["in_step", "syncing", "split", "behind", "node_stalled", "node_lost", "down", "empty", "retired"]


class LastHour(msgspec.Struct, frozen=True):
    """The blocks of the last hour by the clock: their number in each of its 60 minutes, and their transactions."""

    blocks: list[int]
    transactions: int


class Verification(msgspec.Struct, frozen=True):
    """The last verification of an index, up to the block at `slot_no`.

    `node_blocks` is the number of blocks that were compared with the node, null if none were. `differing` lists the
    checks that found differences; it is empty if everything matched.
    """

    began_at: Instant
    ended_at: Instant
    slot_no: int
    block_no: int
    node_blocks: int | None
    differing: list[str]


class NetworkStatus(NetworkState, frozen=True, kw_only=True):
    """The state of a network as in /ready, with its last hour, its last verification, and its last comparison with the
    node's ledger, which the indexer makes once in each epoch.

    `state` sums it up: `in_step`; `syncing` during the first sync, or while the node is syncing; `split` while
    the chains of its nodes differ; `behind` if the last
    block is too old for another reason; `node_stalled` and `node_lost`; `down` if no indexer runs; `empty` before the
    first block; `retired`. `last_hour` and `last_verify` are null before the first block, and `last_verify` also before
    the first verification. `last_comparison` is empty before the first comparison. It lists what was compared, by kind.
    """

    state: Word
    last_hour: LastHour | None
    last_verify: Verification | None
    last_comparison: list[Comparison]


class UsageStatus(msgspec.Struct, frozen=True):
    """Usage on its way from the answering host to the statistics; null if unknown.

    `queued` is the number of batches in the queue. `waiting_bytes` is the size of all requests that are not in the
    statistics yet, and `lag_s` the age of the oldest one. `oldest_snapshot_s` is the age of the oldest snapshot that a
    session of the database holds; 0 without any.
    """

    queued: int | None
    waiting_bytes: int | None
    lag_s: float | None
    oldest_snapshot_s: float | None


class Status(msgspec.Struct, frozen=True):
    """The state of the service at a time by the database's clock."""

    at: Instant
    version: str
    schema_version: int
    networks: list[NetworkStatus]
    usage: UsageStatus


async def get_status(ask: OpenAsk[Nothing]) -> Answer[Status]:
    """Get the state of each network and of usage. An answer is up to a second old."""
    services = ask.services
    status: Status = await services.shared_readings.get("status", lambda: _read(services))
    return Answer(data=status)


def state_of(network: NetworkState) -> Word:
    """The one word for the state of a network."""
    if network.retired:
        return "retired"
    if not network.indexer_running:
        return "down"
    if network.node in _OF_NODE:
        return _OF_NODE[network.node]
    if network.phase is Phase.EMPTY:
        return "empty"
    if network.phase is not Phase.LIVE or network.node == "syncing":
        return "syncing"
    if network.splits:
        return "split"
    return "in_step" if network.ready else "behind"


_OF_NODE: dict[str, Word] = {"lost": "node_lost", "stalled": "node_stalled"}


async def _read(services: Services) -> Status:
    """Raises the errors of the database, and TimeoutError if it does not answer."""
    backlog, (at, networks) = await asyncio.gather(services.usage_backlog.measured(), _networks(services))
    usage = UsageStatus(backlog.queued, backlog.waiting_bytes, backlog.lag_s, backlog.oldest_snapshot_s)
    return Status(at, VERSION, schema.VERSION, networks, usage)


async def _networks(services: Services) -> tuple[datetime, list[NetworkStatus]]:
    """The networks, and when that was by the database's clock."""
    async with asyncio.timeout(_ANSWER_WITHIN_S):
        async with services.key_pool.acquire() as db:
            now = await _clock.only(db)
            verified = {row.network_id: row for row in await _verifications.all(db)}
        states = await network_states.network_states(services)
        return now, [await _status(services, state, now, verified.get(state.network_id)) for state in states]


async def _status(
    services: Services, state: NetworkState, at: datetime, verified: "_Verification | None"
) -> NetworkStatus:
    indexed = state.phase is not Phase.EMPTY
    return NetworkStatus(
        **msgspec.structs.asdict(state),
        state=state_of(state),
        last_hour=await _last_hour(services, by_name[state.network], at) if indexed else None,
        last_verify=verified.shown() if indexed and verified is not None else None,
        last_comparison=await network_states.comparisons(services, by_name[state.network]) if indexed else [],
    )


async def _last_hour(services: Services, network: Network, at: datetime) -> LastHour:
    """Blocks and transactions of the 60 minutes before `at`."""
    since_byron = at - network.slot_time(network.byron_slots)
    first_slot = network.byron_slots + int(since_byron.total_seconds()) - 60 * _MINUTES + 1

    async def read(source: ChainServer) -> list[_Minute]:
        async with source.connection(network) as db:
            return await _minutes.all(db, first_slot)

    minutes = {minute.minute: minute for minute in await services.chain_servers.read(network, read)}
    blocks = [minutes[minute].blocks if minute in minutes else 0 for minute in range(_MINUTES)]
    return LastHour(blocks, sum(minute.transactions for minute in minutes.values()))


class _Verification(msgspec.Struct, frozen=True):
    network_id: int
    began_at: datetime
    ended_at: datetime
    slot_no: int
    block_no: int
    node_blocks: int | None
    differing: list[str]

    def shown(self) -> Verification:
        """As everybody may see it."""
        return Verification(self.began_at, self.ended_at, self.slot_no, self.block_no, self.node_blocks, self.differing)


class _Minute(msgspec.Struct, frozen=True):
    minute: int
    blocks: int
    transactions: int


_sql = sql.beside(__file__)
_clock = _sql.values("clock", datetime)
_verifications = _sql.query("verifications", _Verification)
_minutes = _sql.query("minutes", _Minute)
