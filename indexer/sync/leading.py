"""Become the leader of a network, then send heartbeats until the lead ends (docs/decisions/0017)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import asyncpg
import structlog

from shared import database, leader, lifecycle, schema, tasks
from shared.leader import Leader
from shared.network import Network

log = structlog.get_logger()

POLL_S = 1.0
_REPORT_FATAL_WITHIN_S = 2.0
_SILENT_POLLS_BEFORE_TAKEOVER = 2
"""A standby takes over after this many consecutive polls that find the leader silent.

One is not enough: after a database has hung, a poll may come before the leader's next heartbeat.
"""


async def take_the_lead(db: asyncpg.Connection, network: Network) -> None:
    """Make a connection the network's only writer; wait while another leads, and end the session of a hung leader.

    Raises WrongSchema.
    """
    standby, silence = False, _Silence()
    while not await database.try_to_lead(db, network):
        if not standby:
            what = "the indexer that serves this network"
            lifecycle.log_waiting(what, level=logging.INFO, network=network.name)
            standby = True
        await schema.check(db)
        current = (await leader.leaders(db)).get(network.network_id)
        if current is not None and silence.observe(current):
            log.warning(
                "follow.leader_ended",
                network=network.name,
                of=current.application,
                backend_pid=current.backend_pid,
                silent_s=round(silence.lasts_s),
            )
            await leader.terminate(db, current)
        await asyncio.sleep(POLL_S)
    if standby:
        log.info("follow.taken_over", network=network.name)


@asynccontextmanager
async def sending_heartbeats(
    database_url: str,
    network: Network,
    writer: asyncpg.Connection,
    report: Callable[[], leader.Report] = leader.Report,
    changed: asyncio.Event | None = None,
) -> AsyncIterator[None]:
    """Send heartbeats for `writer`, the session that leads, until the block ends; terminate it if the lead is lost.

    Each contains the result of `report`. The next one is due after BEAT_EVERY_S, or as soon as `changed` is set.
    Heartbeats use a second connection, since a statement of the writer may take an hour. If a newer program migrates
    the database, the writer is terminated; any error of the block is then replaced by WrongSchema.
    """
    backend_pid: int = await writer.fetchval("SELECT pg_backend_pid()")
    news = changed or asyncio.Event()
    newer: schema.WrongSchema | None = None

    async def send() -> None:
        nonlocal newer
        db = await database.connect(database_url)
        try:
            await db.execute("SET synchronous_commit = off")  # a heartbeat need not survive a crash
            while True:
                news.clear()
                async with asyncio.timeout(leader.BEAT_EVERY_S):
                    await _beat(db, network, backend_pid, report())
                await lifecycle.sleep(leader.BEAT_EVERY_S, news)
        except schema.WrongSchema as wrong:
            newer = wrong
            writer.terminate()
            await asyncio.Event().wait()  # until the block ends: its next statement on the writer fails
        except _LostLead:
            writer.terminate()  # the follower reconnects, and learns why
            raise
        finally:
            db.terminate()

    async with tasks.background("heartbeat", send):
        try:
            yield
        except Exception as fault:
            if newer is None or isinstance(fault, schema.WrongSchema):
                raise
            raise newer from fault


async def report_fatal(writer: asyncpg.Connection, network: Network, report: leader.Report, why: str) -> None:
    """Record why the leader stops, in its last heartbeat. Does nothing if the connection is lost or the schema is
    newer.
    """
    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, schema.WrongSchema):
        async with asyncio.timeout(_REPORT_FATAL_WITHIN_S):
            backend_pid: int = await writer.fetchval("SELECT pg_backend_pid()")
            await leader.beat(writer, network, backend_pid, [], report)
            await leader.record_fatal(writer, network, backend_pid, why)


async def _beat(db: asyncpg.Connection, network: Network, backend_pid: int, report: leader.Report) -> None:
    """Send one heartbeat. Raises _LostLead and WrongSchema."""
    if not await leader.beat(db, network, backend_pid, [failure.task for failure in tasks.failing()], report):
        raise _LostLead("the session that writes has lost the network's lock")


class _LostLead(ConnectionError):
    """The writer must not commit: another session leads."""


class _Silence:
    """How long a leader has been silent, as seen by one standby. All times are by the database's clock.

    The silence of a leader that has never sent a heartbeat is measured from the first look at it.
    """

    def __init__(self) -> None:
        self.lasts_s = 0.0
        self._backend_pid: int | None = None
        self._first_look_s = 0.0
        self._looks = 0

    def observe(self, current: Leader) -> bool:
        """Note one look at the leader. Returns whether it has been silent for too long."""
        if current.backend_pid != self._backend_pid:
            self._backend_pid, self._first_look_s, self._looks = current.backend_pid, current.now_s, 0
        age_s = current.beat_age_s
        self.lasts_s = current.now_s - self._first_look_s if age_s is None else age_s
        self._looks = self._looks + 1 if self.lasts_s >= leader.SILENT_AFTER_S else 0
        return self._looks >= _SILENT_POLLS_BEFORE_TAKEOVER
