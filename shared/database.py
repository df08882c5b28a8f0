"""Connections to Postgres: a search path per network, and a single writer per network."""

import asyncio
import math
import os
import socket
from collections import defaultdict
from typing import Any

import asyncpg
import msgspec

from shared import hosts, libpq
from shared.network import Network

# The errors of Postgres; `shared.lifecycle.UNREACHABLE` adds those of Valkey.
UNREACHABLE: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InsufficientResourcesError,  # SQLSTATE 53xxx: no connection, memory or disk space left
    asyncpg.PostgresSystemError,  # 58xxx: its disk fails
    asyncpg.ReadOnlySQLTransactionError,  # 25006: another server is the primary now
    asyncpg.InternalClientError,  # a connection used between the server's last message and its end
)
UNUSABLE: tuple[type[Exception], ...] = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedObjectError,  # an unknown parameter in the address
)

LOCK_TIMEOUT = "1s"
CONNECT_WITHIN_S = 10.0
CHAIN_ANSWER_WITHIN_S, PARTNER_ANSWER_WITHIN_S = 10.0, 30.0
"""How long a pool waits for a statement, since a frozen server never answers; its cancellation may take as long again.
Chain queries are look-ups, but sums of usage may cover months.
"""

APPLICATION = "ledgerline"
"""The prefix of our connections' names in `pg_stat_activity`; network, host and process follow."""

LEADER_LOCK = 0x4C454447  # arbitrary; the first half of the advisory lock's key, the network is the second


async def connect(url: str, network: Network | None = None) -> asyncpg.Connection:
    """A connection on which bare table names refer to `network`'s chain; without a network, to nothing."""
    connection = await _reach(url, server_settings=_server_settings(network), timeout=CONNECT_WITHIN_S)
    await _translate_json(connection)
    return connection


async def create_pool(
    url: str,
    network: Network | None,
    *,
    max_size: int,
    within_s: float | None = None,
    later: bool = False,
    connect_within_s: float = CONNECT_WITHIN_S,
) -> asyncpg.Pool:
    """A pool of up to `max_size` connections like `connect`'s. With `later`, the server need not be reachable yet.

    Postgres cancels a statement after `within_s`.

    A pool for a network's chain plans each statement once, as a look-up. It waits no longer than LOCK_TIMEOUT for a
    lock: only the indexer holds one for long, on histories that it is building.

    Pools without a network replace all their connections as soon as one of them sees a read-only server: another one
    may be the primary now.
    """
    settings = {} if network is None else _LOOK_UPS | {"lock_timeout": LOCK_TIMEOUT}
    if within_s is not None:
        settings |= {"statement_timeout": f"{within_s:.0f}s"}

    async def leave(connection: asyncpg.Connection) -> None:
        # NOTE: replaces the usual reset and its round trip: no statement of ours leaves settings, cursors or locks.
        if network is None and _takes_no_writes(connection):
            for same in _writing_pools[url]:
                await same.expire_connections()
            connection.terminate()

    pool: asyncpg.Pool = await asyncpg.create_pool(
        url,
        connect=_reach,
        server_settings=_server_settings(network) | settings,
        min_size=0,  # otherwise asyncpg keeps one open itself, and logs each failure with a traceback
        max_size=max_size,
        timeout=connect_within_s,
        command_timeout=PARTNER_ANSWER_WITHIN_S if network is None else CHAIN_ANSWER_WITHIN_S,
        init=_translate_json,
        reset=leave,
    )
    if network is None:
        _writing_pools[url] = [*(same for same in _writing_pools[url] if not same.is_closing()), pool]
    if not later:
        try:
            async with pool.acquire():
                pass
        except BaseException:
            pool.terminate()
            raise
    return pool


_LOOK_UPS = {
    # Without it Postgres plans several statements again for each request, which takes as long as running them: it can't
    # know that pages are short, and believes that a plan for all of them costs more.
    "plan_cache_mode": "force_generic_plan",
    # For the same reason such a plan would read and sort a whole list, not a part of an index.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
"""Settings of the pools that answer from a chain: each of their statements is a look-up by indexes."""

_writing_pools: defaultdict[str, list[asyncpg.Pool]] = defaultdict(list)
"""The pools of this process that write, by address: if one detects a failover, all reconnect."""


async def try_to_lead(connection: asyncpg.Connection, network: Network) -> bool:
    """Take the advisory lock by which this connection leads the network; False while another one holds it.

    Blocks are committed on the same connection, so a writer that loses the lock has lost its connection, too.
    """
    return bool(await connection.fetchval("SELECT pg_try_advisory_lock($1, $2)", LEADER_LOCK, network.network_id))


class SharedSession(ConnectionError):
    """A pooler between us and Postgres gives each transaction a different session."""


_SESSIONS = "the pooler gives each transaction another session, expected session pooling (pool_mode = session)"
_own_sessions: set[str] = set()  # addresses of poolers that passed _refuse_shared_sessions


async def _reach(url: str, *, server_settings: dict[str, str], **options: Any) -> asyncpg.Connection:
    """A connection with these settings to the server of `url`.

    They are set after connecting, since PgBouncer refuses most of them as startup parameters. Raises SharedSession if
    the session is shared with other connections, which could then read the wrong chain.
    """
    connection = await _reach_bare(url, **options)
    try:
        names, values = list(server_settings), list(server_settings.values())
        pid, _ = await connection.fetchrow(_SET_UP, names, values)
        if pid != connection.get_server_pid() and url not in _own_sessions:  # a pooler invents that number
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await _refuse_shared_sessions(connection, url, options)
            _own_sessions.add(url)
    except BaseException:
        connection.terminate()
        raise
    return connection


_SET_UP = """
SELECT pg_backend_pid(), array_agg(set_config(name, value, false))
FROM unnest($1::text[], $2::text[]) AS setting (name, value)
"""


async def _refuse_shared_sessions(first: asyncpg.Connection, url: str, options: dict[str, Any]) -> None:
    """Raise SharedSession if two connections at the same time do not each stay in their own session."""
    second = await _reach_bare(url, **options)
    try:
        begun = [first.transaction(), second.transaction()]
        for transaction in begun:
            await transaction.start()
        before = {connection: await connection.fetchval(_PID) for connection in (first, second)}
        for transaction in begun:
            await transaction.rollback()
        # Whether the pooler lends the session released last or the one released first, one of these gets the wrong one.
        for connection in (first, second, second, first):
            if await connection.fetchval(_PID) != before[connection]:
                raise SharedSession(_SESSIONS)
    except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError) as cause:
        raise SharedSession(_SESSIONS) from cause
    finally:
        second.terminate()


_PID = "SELECT pg_backend_pid()"


async def _reach_bare(url: str, **options: Any) -> asyncpg.Connection:
    """A connection to the server at `url`; with several hosts, to the one that accepts writes.

    All hosts are tried concurrently, since one may be frozen: libpq and asyncpg would wait for it before trying the
    next. Raises the error of a server that rejects our credentials, otherwise ConnectionError with the error of each
    host.
    """
    urls = hosts.split(url)
    if len(urls) == 1:
        return await _open(url, options)
    if "target_session_attrs=" not in url:
        options["target_session_attrs"] = "read-write"
    return await _first_to_accept([asyncio.create_task(_open(host_url, options)) for host_url in urls])


async def _first_to_accept(attempts: list[asyncio.Task[asyncpg.Connection]]) -> asyncpg.Connection:
    """The first connection that is made; the others are closed. If none is made, raises the errors of _reach_bare."""
    pending, chosen = set(attempts), None
    causes: list[Exception] = []
    try:
        while pending and chosen is None:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            chosen = next((attempt for attempt in done if attempt.exception() is None), None)
    finally:
        causes = await _end([attempt for attempt in attempts if attempt is not chosen])
    if chosen is not None:
        return chosen.result()
    for cause in causes:
        if isinstance(cause, UNUSABLE):
            raise cause
    raise ConnectionError("; ".join(f"{type(cause).__name__}: {cause}" for cause in causes))


async def _end(attempts: list[asyncio.Task[asyncpg.Connection]]) -> list[Exception]:
    """End attempts to connect, and the connections that they have made. Returns the errors of the others."""
    for attempt in attempts:
        attempt.cancel()
    ended = await asyncio.gather(*attempts, return_exceptions=True)
    for connection in ended:
        if isinstance(connection, asyncpg.Connection):
            connection.terminate()
    return [cause for cause in ended if isinstance(cause, Exception)]


async def _open(url: str, options: dict[str, Any]) -> asyncpg.Connection:
    """A connection that fails soon after its host has vanished, even while it only waits for an answer."""
    how = libpq.connecting(url)
    if how.within_s is not None:
        options = options | {"timeout": min(how.within_s, options.get("timeout", math.inf))}
    connection = await asyncpg.connect(how.url, **options)
    # NOTE: a private name of asyncpg, whose public names do not give access to the socket.
    link = connection._transport.get_extra_info("socket")
    if link.family != socket.AF_UNIX:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, how.keepalive)
        for name, value in {**_GIVE_UP_A_VANISHED_HOST, **how.tcp}.items():
            if hasattr(socket, name):  # some exist on Linux only
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


_GIVE_UP_A_VANISHED_HOST = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}


def _takes_no_writes(connection: asyncpg.Connection) -> bool:
    """Whether the server is read-only, by its last report: from version 14 on, Postgres reports both settings."""
    reported = connection.get_settings()
    names = ("in_hot_standby", "default_transaction_read_only")
    return any(getattr(reported, name, "off") == "on" for name in names)


async def _translate_json(connection: asyncpg.Connection) -> None:
    """Convert columns of type json to Python values, and back."""
    await connection.set_type_codec(
        "json",
        schema="pg_catalog",
        encoder=lambda value: msgspec.json.encode(value).decode(),
        decoder=msgspec.json.decode,
    )


def _server_settings(network: Network | None) -> dict[str, str]:
    ours = APPLICATION if network is None else f"{APPLICATION} {network.name}"
    return {
        "application_name": f"{ours} {socket.gethostname()}:{os.getpid()}"[:63],  # Postgres' limit for a name
        "jit": "off",  # all our statements are short, and compiling one takes longer than most
        # A long statement of a killed process ends with it, instead of keeping its locks from the next one.
        "client_connection_check_interval": "1s",
        # The locks of a vanished host are released within two minutes, for the one that takes over.
        "tcp_keepalives_idle": "60",
        "tcp_keepalives_interval": "15",
        "tcp_keepalives_count": "4",
        "search_path": "pg_catalog" if network is None else network.schema,
        "timezone": "UTC",
    }
