"""The servers that answer chain requests: the replicas in turn, or the primary if no replica can.

If there are replicas, or several hosts in DATABASE_URL, each server is checked four times a second on a separate
connection. A replica that does not answer, or lags behind the primary for longer than REPLICA_LAG_S, is left out until
it recovers. If it does not answer, its connections are also cut, and requests that wait for it are repeated on another
server: they only read. See docs/decisions/0020-replicas-and-failover.md.
"""

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import asyncpg
import msgspec
import structlog
from prometheus_client import Gauge

from api.answers import ChainAnswer, ChainBulk, ChainPage, LedgerAnswer
from api.http.bodies import Encoded
from api.http.turns import Turns
from shared import database, hosts, lifecycle, sql, tasks
from shared.lifecycle import UNREACHABLE, WAITED_FOR
from shared.network import NETWORKS, Network

log = structlog.get_logger()
Found = TypeVar("Found")

CONNECTIONS, CONNECTIONS_EACH = 8, 1
"""The maximum per process, network and server, and that of one credential. A process has one core for Python, and a
key's next page would delay all others as long as this one: docs/decisions/0060.
"""

_LOOK_EVERY_S = 0.25
# NOTE: in ticks, since a process that gets no CPU time on a busy machine must not mistake that for an outage.
_TICK_S, _PATIENCE_TICKS = 0.2, 3
_CONNECT_WITHIN_S = _TICK_S * _PATIENCE_TICKS
_SPARE_FOR_S = 1.0

_AWAY = (
    *(kind for kind in UNREACHABLE if kind is not OSError),
    ConnectionError,  # but not TimeoutError: a slow statement is not an outage
    asyncpg.InterfaceError,
    asyncpg.SerializationError,  # vacuum removes rows that the answer needs
    asyncpg.SyntaxOrAccessError,  # the replica lacks the schema's last changes
)

_WITH_TIP = (ChainPage, ChainAnswer, ChainBulk, LedgerAnswer)
_UNTRIED = "it has not answered yet"
_NO_TIP = -1

_left_out = Gauge(
    "ledgerline_replica_left_out",
    "1 while a replica gets no chain requests.",
    ["replica"],
    multiprocess_mode="livemax",
)


class _TipRow(msgspec.Struct, frozen=True):
    network_id: int
    slot_no: int


_sql = sql.beside(__file__)
_tip_of_each = (_sql.text("tip_of", network_id=str(network.network_id), schema=network.schema) for network in NETWORKS)
_tips = _sql.query("tips", _TipRow, each="\nUNION ALL\n".join(_tip_of_each))


class _Away(Exception):
    """A replica is unreachable: repeat the request on another server."""


class ChainServer:
    """A server that answers chain requests.

    `tips` are the slots of its tips by network, as last seen: its answers are of that tip or a later one.
    """

    def __init__(self, url: str, pools: Mapping[int, asyncpg.Pool], others: Sequence[asyncpg.Pool] = ()) -> None:
        """`pools` are by network_id; `others` are further pools of connections to this server."""
        parts = urlsplit(url)
        self.name = parts.netloc.rpartition("@")[2] or parts.path
        self.url = url
        self._pools, self._others = pools, others
        self.tips: dict[int, int] = {}
        self._spare: dict[int, list[Any]] = {network_id: [] for network_id in pools}
        self._return: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Future[None]] = set()
        self._turns = {
            network_id: Turns(pool, CONNECTIONS, CONNECTIONS_EACH, "requests") for network_id, pool in pools.items()
        }

    @asynccontextmanager
    async def connection(self, network: Network, key: Hashable = None) -> AsyncIterator[asyncpg.Connection]:
        """A connection with `network`'s search path, in a turn of the credential `key`.

        Without a key, it is for a purpose with its own bound. Raises Refusal, and the errors of an unreachable server.
        """
        turns, key = self._turns[network.network_id], object() if key is None else key
        # NOTE: not `async with turns.turn(key)`, which costs each request a few more microseconds.
        await turns.take(key)
        try:
            db = await self._taken(network)
            try:
                yield db
            except BaseException:
                await turns.shared.release(db)
                raise
            self._set_aside(network, db)
        finally:
            turns.end(key)

    def has_turn(self, network: Network, key: Hashable) -> bool:
        """Whether the credential `key` gets a connection at once."""
        return self._turns[network.network_id].is_free(key)

    async def drop_connections(self) -> None:
        """Replace idle connections on their next use."""
        for pool in (*self._pools.values(), *self._others):
            await pool.expire_connections()
        self._return_spare()

    async def _taken(self, network: Network) -> Any:
        """A connection of the pool, which may have been set aside."""
        pool, spare = self._pools[network.network_id], self._spare[network.network_id]
        while spare:
            db = spare.pop()
            with suppress(asyncpg.InterfaceError):  # it was lost while it was set aside, so the pool has it back
                if not db.is_closed():
                    return db
            await pool.release(db)
        return await pool.acquire()

    def _set_aside(self, network: Network, db: Any) -> None:
        """Keep a connection for the next request, for at most _SPARE_FOR_S: to return it to the pool and take it again
        costs more CPU than a short statement.
        """
        self._spare[network.network_id].append(db)
        if self._return is None:
            self._return = asyncio.get_running_loop().call_later(_SPARE_FOR_S, self._return_spare)

    def _return_spare(self) -> None:
        if self._return is not None:
            self._return.cancel()
            self._return = None
        for network_id, spare in self._spare.items():
            while spare:
                returning = asyncio.ensure_future(self._pools[network_id].release(spare.pop()))
                returning.add_done_callback(lifecycle.consume_error)
                self._returning.add(returning)
                returning.add_done_callback(self._returning.discard)


class _Replica(ChainServer):
    """A replica. `number` is its place in READ_DATABASE_URL, from 1. If it gets no requests, `left_out` is the reason,
    as public answers show it: it names no host.
    """

    def __init__(self, url: str, pools: Mapping[int, asyncpg.Pool], number: int) -> None:
        super().__init__(url, pools)
        self.number = number
        self.left_out: str | None = _UNTRIED
        self._used: set[asyncpg.Connection] = set()

    @asynccontextmanager
    async def connection(self, network: Network, key: Hashable = None) -> AsyncIterator[asyncpg.Connection]:
        """A connection as from ChainServer, but raises _Away if the server is unreachable."""
        async with AsyncExitStack() as stack:
            try:
                db = await stack.enter_async_context(super().connection(network, key))
            except (*WAITED_FOR, asyncpg.InterfaceError) as cause:
                raise _Away(f"{type(cause).__name__}: {cause}") from cause
            self._used.add(db)
            stack.callback(self._used.remove, db)
            yield db

    async def cut(self) -> None:
        """Terminate all connections: requests that wait for an answer get an exception.

        Also those set aside: a pool waits for the server's goodbye to a former connection that is returned to it.
        """
        for db in (*self._used, *itertools.chain(*self._spare.values())):
            with suppress(asyncpg.InterfaceError):  # it has just been lost
                db.terminate()
        await self.drop_connections()


class _SeenTip(NamedTuple):
    at_s: float  # when it was first seen, on the monotonic clock
    slot_no: int


class _SeenTips:
    """The recent tips of one network on the primary, and when this process first saw them.

    NOTE: neither the age of a replica's tip nor the time since its last replay is its lag: both also grow while no
    block arrives.
    """

    def __init__(self) -> None:
        self._tips: deque[_SeenTip] = deque()  # both fields ascend

    def add(self, slot_no: int, within_s: float) -> None:
        """Add the primary's current tip."""
        now = time.monotonic()
        while self._tips and self._tips[-1].slot_no > slot_no:
            self._tips.pop()  # rolled back
        if not self._tips or self._tips[-1].slot_no < slot_no:
            self._tips.append(_SeenTip(now if self._tips else -math.inf, slot_no))
        while len(self._tips) > 1 and self._tips[1].at_s < now - within_s:
            self._tips.popleft()

    def lag_s(self, slot_no: int) -> float:
        """The minimum lag in seconds of a replica with this tip; infinite if it lacks the first tip seen here."""
        missed = next((tip for tip in self._tips if tip.slot_no > slot_no), None)
        return 0.0 if missed is None else time.monotonic() - missed.at_s


class ChainServers:
    """Distributes chain requests among the servers."""

    def __init__(self, primary: ChainServer, replicas: Sequence[_Replica], lag_s: float) -> None:
        self._primary, self._replicas, self._lag_s = primary, replicas, lag_s
        self._seen_tips = {network.network_id: _SeenTips() for network in NETWORKS}
        self._turn = itertools.count()
        self._newest: dict[int, int] = {}  # the slot of the newest tip of any answer, by network

    def left_out(self) -> dict[int, str]:
        """The replicas that get no requests, by their place in READ_DATABASE_URL, with the reasons."""
        return {replica.number: replica.left_out for replica in self._replicas if replica.left_out is not None}

    @property
    def has_replicas(self) -> bool:
        """Whether several servers answer, which may have different tips."""
        return bool(self._replicas)

    @property
    def primary(self) -> ChainServer:
        """The server that takes writes."""
        return self._primary

    async def read(
        self, network: Network, work: Callable[[ChainServer], Awaitable[Found]], *, on_primary: bool = False
    ) -> Found:
        """The result of `work` on one server, repeated on another if that one fails or its tip is too old.

        `on_primary` skips the replicas, for data written a moment ago. The tip of an answer is never older than that of
        a previous one, unless the chain was rolled back on the primary. An answer without a tip counts as one with its
        server's tip as last seen. That tip may be older, so a later answer may lack a block that this one had. Raises
        the primary's errors.
        """
        failed: list[_Replica] = []
        while True:
            replica = None if on_primary else self._next(network, failed)
            before = self._newest_of(network)
            if replica is None:
                answer = await work(self._primary)
                slot_no = _tip_of(answer)
                # NOTE: if another answer had a newer tip since this read began, this one is outdated, not rolled back.
                if self._is_not_older(network, slot_no) or self._newest_of(network) == before:
                    self._note(network, slot_no, self._primary)
                    return answer
                continue
            try:
                answer = await work(replica)
            except (_Away, *_AWAY) as cause:
                log.warning("replica.failed", replica=replica.name, cause=f"{type(cause).__name__}: {cause}")
            else:
                slot_no = _tip_of(answer)
                if self._is_not_older(network, slot_no):
                    self._note(network, slot_no, replica)
                    return answer
            failed.append(replica)

    async def watch(self, source: ChainServer) -> None:
        """Check one server periodically, until cancelled."""
        db: asyncpg.Connection | None = None
        while True:
            try:
                if db is None:
                    db = await _patiently(database.connect(source.url))
                    await source.drop_connections()  # the primary may be another server now
                before = dict(source.tips)
                tips = await _patiently(_tips.all(db))
            except (*_AWAY, *WAITED_FOR) as cause:
                if db is not None:
                    db.terminate()
                db = None
                if isinstance(source, _Replica):
                    cause_text = f"{type(cause).__name__}: {cause}".rstrip(": ")
                    self._leave_out(source, "it does not answer", cause=cause_text)
                    await source.cut()
            else:
                self._look(source, before, {tip.network_id: tip.slot_no for tip in tips})
            await asyncio.sleep(_LOOK_EVERY_S)

    def _next(self, network: Network, failed: Sequence[_Replica]) -> _Replica | None:
        """The next usable replica; None for the primary."""
        if not self._replicas:
            return None
        newest = self._newest_of(network)
        usable = [
            replica
            for replica in self._replicas
            if replica.left_out is None and _tip_at(replica, network) >= newest and replica not in failed
        ]
        return usable[next(self._turn) % len(usable)] if usable else None

    def _is_not_older(self, network: Network, slot_no: int | None) -> bool:
        """Whether the tip of an answer is at least as new as that of any earlier answer, or the answer has none."""
        return slot_no is None or slot_no >= self._newest_of(network)

    def _note(self, network: Network, slot_no: int | None, source: ChainServer) -> None:
        """Note the tip of an answer or, if the answer has none, that of its server as last seen."""
        if slot_no is None:
            slot_no = max(_tip_at(source, network), self._newest_of(network))
        else:
            source.tips[network.network_id] = slot_no
        self._newest[network.network_id] = slot_no

    def _newest_of(self, network: Network) -> int:
        return self._newest.get(network.network_id, _NO_TIP)

    def _look(self, source: ChainServer, before: Mapping[int, int], tips: Mapping[int, int]) -> None:
        """Note the tips that a look at a server has found; `before` are those known when the look began."""
        if isinstance(source, _Replica):
            source.tips = dict(tips)
            self._use_or_leave_out(source)
            return
        # NOTE: an answer may have shown a newer tip meanwhile. That is not a rollback; the next look will find it, too.
        source.tips = {**tips, **{key: slot_no for key, slot_no in source.tips.items() if slot_no != before.get(key)}}
        for network_id, slot_no in source.tips.items():
            self._seen_tips[network_id].add(slot_no, self._lag_s)
            if slot_no < before.get(network_id, _NO_TIP):  # rolled back: replicas need not be ahead of it
                self._newest[network_id] = min(slot_no, self._newest.get(network_id, _NO_TIP))

    def _use_or_leave_out(self, replica: _Replica) -> None:
        lags = {key: seen.lag_s(replica.tips.get(key, _NO_TIP)) for key, seen in self._seen_tips.items()}
        longest_s = max(lags.values())
        if longest_s > self._lag_s:
            how = "since before this process began" if math.isinf(longest_s) else f"for at least {longest_s:.0f} s"
            self._leave_out(replica, f"it has lacked blocks {how}")
            return
        if replica.left_out is not None:
            log.info("replica.in_use", replica=replica.name)
        replica.left_out = None
        _left_out.labels(replica.name).set(0)

    def _leave_out(self, replica: _Replica, reason: str, **cause: str) -> None:
        if replica.left_out in (None, _UNTRIED):
            log.warning("replica.left_out", replica=replica.name, number=replica.number, reason=reason, **cause)
        replica.left_out = reason
        _left_out.labels(replica.name).set(1)


@asynccontextmanager
async def opened(
    primary_url: str,
    replica_urls: Sequence[str],
    lag_s: float,
    others: Sequence[asyncpg.Pool],
    made: Callable[[str, asyncpg.Pool], None],
) -> AsyncIterator[ChainServers]:
    """Open `ChainServers` on these servers, which need not be reachable yet. The primary is removed from the replicas.

    `others` are further pools of the primary, emptied when another server becomes the primary. `made` is called with
    the network's name and each new pool.
    """
    async with AsyncExitStack() as stack:

        async def pools(url: str, connect_within_s: float) -> dict[int, asyncpg.Pool]:
            pools = {}
            for network in NETWORKS:
                pool = await database.create_pool(
                    url, network, max_size=CONNECTIONS, later=True, connect_within_s=connect_within_s
                )
                stack.callback(pool.terminate)
                made(network.name, pool)
                pools[network.network_id] = pool
            return pools

        primary = ChainServer(primary_url, await pools(primary_url, database.CONNECT_WITHIN_S), others)
        replicas = [
            _Replica(url, await pools(url, _CONNECT_WITHIN_S), number)
            for number, url in enumerate(replica_urls, 1)
            if url != primary_url
        ]
        servers = ChainServers(primary, replicas, lag_s)
        if replicas or len(hosts.split(primary_url)) > 1:
            await stack.enter_async_context(tasks.background("primary check", partial(servers.watch, primary)))
            for replica in replicas:
                task = f"replica {replica.number} check"
                await stack.enter_async_context(tasks.background(task, partial(servers.watch, replica)))
        yield servers


async def _patiently(work: Awaitable[Any]) -> Any:
    """The result of `work`. Raises TimeoutError if it takes longer than _PATIENCE_TICKS of this process."""
    working = asyncio.ensure_future(work)
    try:
        for _ in range(_PATIENCE_TICKS):
            await asyncio.wait((working,), timeout=_TICK_S)
            if working.done():
                return working.result()
    finally:
        working.cancel()
    raise TimeoutError("it does not answer")


def _tip_at(source: ChainServer, network: Network) -> int:
    """The slot of the tip of a server, as last seen."""
    return source.tips.get(network.network_id, _NO_TIP)


def _tip_of(answer: object) -> int | None:
    """The tip's slot in an answer, None if the answer has none."""
    if isinstance(answer, Encoded):
        return None if answer.tip is None else answer.tip.slot_no
    return answer.last_updated.slot_no if isinstance(answer, _WITH_TIP) else None
