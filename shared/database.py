"""Connections to Postgres: one search path per network, one snapshot per answer, one writer per network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from shared.network import Network

LOCK_TIMEOUT = "1s"
CHAIN_ANSWER_WITHIN_S, PARTNER_ANSWER_WITHIN_S = 10.0, 30.0
"""How long a statement of a pool may take, and as long again to be given up: a frozen server says nothing of either.
Chain queries are look-ups; sums of usage over months are not.
"""

_APPLICATION = "ledgerline"
_WRITER_LOCK = 0x4C454447  # any constant of our own: the first half of the advisory lock, the network the second


async def connect(url: str, network: Network | None = None) -> asyncpg.Connection:
    """A connection whose bare table names are `network`'s chain; without a network they are nobody's."""
    connection = await asyncpg.connect(url, server_settings=_server_settings(network), timeout=10)
    await _translate_json(connection)
    return connection


async def create_pool(url: str, network: Network | None, *, most: int) -> asyncpg.Pool:
    """A pool of up to `most` connections like `connect`'s.

    On a network's chain they give up a lock after LOCK_TIMEOUT: only the indexer holds one for long, on histories that
    it is building and that nobody can ask yet.
    """
    patience = {} if network is None else {"lock_timeout": LOCK_TIMEOUT}
    return await asyncpg.create_pool(
        url,
        server_settings=_server_settings(network) | patience,
        min_size=1,
        max_size=most,
        timeout=10,
        command_timeout=PARTNER_ANSWER_WITHIN_S if network is None else CHAIN_ANSWER_WITHIN_S,
        init=_translate_json,
        reset=_leave,
    )


@asynccontextmanager
async def snapshot(pool: asyncpg.Pool) -> AsyncIterator[asyncpg.Connection]:
    """A connection inside one read-only snapshot: every statement sees the same commit."""
    async with pool.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        yield connection


async def become_writer(connection: asyncpg.Connection, network: Network) -> bool:
    """Take the advisory lock that makes this connection the network's only writer; False while another has it.

    The lock lives as long as the connection that also carries every commit, so a lost lock is a lost writer.
    """
    return bool(await connection.fetchval("SELECT pg_try_advisory_lock($1, $2)", _WRITER_LOCK, network.network_id))


async def writers(connection: asyncpg.Connection) -> set[int]:
    """The ids of the networks that have a writer now. Ask the primary: locks are not replicated."""
    held = await connection.fetch(
        """
        SELECT objid FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND classid = $1 AND objsubid = 2
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        """,
        _WRITER_LOCK,
    )
    return {network_id for (network_id,) in held}


async def _leave(_connection: asyncpg.Connection) -> None:
    """Spare a round trip after each use: no statement of ours leaves settings, cursors, listeners or locks behind."""


async def _translate_json(connection: asyncpg.Connection) -> None:
    """Make columns of type json Python values, and the other way round."""
    await connection.set_type_codec(
        "json",
        schema="pg_catalog",
        encoder=lambda value: msgspec.json.encode(value).decode(),
        decoder=msgspec.json.decode,
    )


def _server_settings(network: Network | None) -> dict[str, str]:
    return {
        "application_name": _APPLICATION if network is None else f"{_APPLICATION} {network.name}",
        "jit": "off",  # all our statements are short, and compiling one takes longer than most
        # A long statement of a killed process ends with it, instead of keeping its locks from the next one.
        "client_connection_check_interval": "1s",
        # A host that vanished keeps its locks no longer than two minutes from the one that takes over.
        "tcp_keepalives_idle": "60",
        "tcp_keepalives_interval": "15",
        "tcp_keepalives_count": "4",
        "search_path": "pg_catalog" if network is None else network.schema,
        "timezone": "UTC",
    }
