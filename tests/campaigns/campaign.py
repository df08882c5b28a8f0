"""The state of a campaign of faults: the service under load, the errors so far, and the checks after each fault."""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import asyncpg

from api.commands import verify_usage
from tests.campaigns import world as worlds
from tests.campaigns.load import WINDOW_S, Load
from tests.campaigns.world import World, until

SIGNALS_WITHIN_S, READY_WITHIN_S = 10.0, 60.0
_SETTLED_WITHIN_S = 60.0


class Campaign:
    """A service under load, and the errors so far."""

    def __init__(self, world: World, load: Load, seed: int) -> None:
        self.world, self.load, self.seed = world, load, seed
        self.random = Random(seed)  # of one fault each
        self.number = 0
        self.wrong: list[str] = []
        self.lost_at_most = 0  # requests that simulated power losses may have lost
        self._answered = 0  # before the last fault
        self._lacks = ""
        self._outages = 0  # of Valkey, as logged by the hosts
        self._shared_until = 0.0  # minutes that end before this may include shares of the limit
        self._forgot_at = self._ended_at = -WINDOW_S

    def report(self, words: str) -> None:
        """Report an error."""
        self.wrong.append(f"fault {self.number}: {words}")
        print(f"  WRONG {words}", flush=True)

    def report_over_limit(self) -> None:
        """Report the keys that were admitted too often.

        In the minute around an outage of Valkey, one process may have admitted the whole limit before it; the others
        then admit their shares. A busy machine also causes outages, which the hosts log.
        """
        outages = sum(host.part.process.output().count('"valkey.away"') for host in self.world.hosts)
        if outages != self._outages:
            self._outages = outages
            self.valkey_is_away()
        hosts = len(self.world.hosts)
        for over in self.load.over_limit:
            most = over.key.per_minute
            if over.ended_at < self._shared_until:
                most += most * (hosts - 1) // hosts
            if over.admitted > most:
                self.report(f"{over.key.credential_id} was admitted {over.admitted} times of {most}")
        self.load.over_limit.clear()

    def report_unauthorized(self) -> None:
        """Report requests refused for their keys. Keys are rotated, but each is used only while it is valid."""
        if self.load.unauthorized:
            self.report(f"{self.load.unauthorized} requests with valid keys were refused with status 401 or 403")
            self.load.unauthorized = 0

    async def signals(
        self, what: str, holds: Callable[[], Awaitable[bool]], within_s: float = SIGNALS_WITHIN_S
    ) -> None:
        """Wait until a signal is right; report an error if it is too late."""
        try:
            await until(what, holds, within_s)
        except AssertionError as late:
            self.report(str(late))

    def valkey_forgot(self) -> None:
        """Valkey lost its data."""
        self._forgot_at = time.monotonic()
        self._excuse()

    def valkey_is_away(self) -> None:
        """A host can't reach Valkey, or could not until now: in the minute around that, processes grant shares."""
        self._shared_until = time.monotonic() + SIGNALS_WITHIN_S + WINDOW_S

    def api_ended(self) -> None:
        """An API process ended, and its memory of the last minute is lost."""
        self._ended_at = time.monotonic()
        self._excuse()

    def _excuse(self) -> None:
        """Limits survive the loss of Valkey's memory or of a process', but not of both within a minute."""
        if abs(self._forgot_at - self._ended_at) < WINDOW_S:
            self.load.excused_until = time.monotonic() + WINDOW_S

    async def ready_again(self) -> float:
        """Wait until every signal reports that all is well, and it is; returns the seconds that took.

        Requests answered before the previous fault must be in the usage table: a minute, usually less, is enough.
        """
        tip = self.world.chain.blocks[-1].slot
        owed, self._answered = self._answered, self.load.answered
        try:
            return await until("all is well again", lambda: self._all_well(tip, owed), READY_WITHIN_S)
        except AssertionError as late:
            raise AssertionError(f"{late}: {self._lacks}") from None

    async def _all_well(self, slot: int, owed: int) -> bool:
        for part in self.world.parts:
            if part.has_ended():
                self.report(f"{part.name} ended unexpectedly: {part.process.output()[-500:]}")
                part.start()
        for host in self.world.hosts:
            status, body = await self.world.ready(host)
            self._lacks = f"/ready of {host.part.name} says {status}, {body}"
            if status != 200 or not all(_passes(reason) for reason in body["data"].get("reasons", ())):
                return False
            [network] = body["data"]["networks"]
            metrics = await self.world.metrics(host)
            if metrics is None or not network["indexer_running"] or network["slot_no"] < min(slot, self._tip_slot()):
                return False
        counted = await self._counted()
        self._lacks = f"usage counts {counted} requests of {owed}, of which {self.lost_at_most} may be lost"
        return counted >= owed - self.lost_at_most

    def _tip_slot(self) -> int:
        return self.world.chain.blocks[-1].slot

    async def check(self) -> None:
        """Compare usage with what callers saw, and verify the index, during a pause of the requests."""
        await self.load.pause()
        try:
            await until("nothing is missing", lambda: worlds.all_ready(self.world), READY_WITHIN_S)
            await self._check_usage()
        except AssertionError as wrong:
            self.report(str(wrong))
        self.load.resume()
        code, output = await self._run("indexer", "verify", "--network", worlds.NETWORK)
        if code != 0:
            self.report(f"verify ended with status {code}: {output[-800:]}")

    async def _check_usage(self) -> None:
        """Each answered request counts once. One without an answer may count; one lost in a power loss need not."""
        await until("usage has settled", self._settled, _SETTLED_WITHIN_S)
        rows = await self.world.rows(
            "SELECT credential_id::text AS key, sum(successful)::bigint AS successful, sum(failed)::bigint AS failed"
            " FROM partner.usage GROUP BY 1"
        )
        counted = {row["key"]: Counter({True: row["successful"], False: row["failed"]}) for row in rows}
        missing = 0
        for seen in self.load.seen:
            found = counted.pop(seen.key.credential_id, Counter[bool]())
            if found.total() > seen.answered.total() + seen.broken:
                self.report(f"usage counts too many requests: {found}, seen {seen.answered} and {seen.broken} broken")
            missing += sum((seen.answered - found).values())
        if missing > self.lost_at_most:
            self.report(f"usage lacks {missing} requests, of which {self.lost_at_most} may be lost")
        if counted:
            self.report(f"usage of unknown credentials: {counted}")
        await self._check_breakdown()
        await self._check_quotas()
        print(f"  usage: {missing} missing of at most {self.lost_at_most}, {self.load.broken} broken", flush=True)

    async def _check_breakdown(self) -> None:
        """All usage tables have the same figures."""
        connection = await asyncpg.connect(self.world.database_url, timeout=10)
        _, differences = await verify_usage.differences(connection)
        await connection.close(timeout=5)
        for difference in differences:
            self.report(f"usage differs between its tables: {difference}")

    async def _check_quotas(self) -> None:
        """No key was admitted more often than its quota.

        While Valkey is away, and once it has lost its data, the usage table decides. It may lack the requests admitted
        in the last minute before the loss, and in the minute after it.
        """
        rows = await self.world.rows(
            "SELECT credential_id::text AS key, sum(successful + failed - limited)::bigint AS admitted"
            " FROM partner.usage_day GROUP BY 1"
        )
        admitted = {row["key"]: row["admitted"] for row in rows}
        for seen in self.load.seen:
            if seen.key.quota is not None:
                count = admitted.get(seen.key.credential_id, 0)
                allowed = seen.key.quota + (2 * seen.key.per_minute if self._valkey_failed else 0)
                print(f"  quota: {count} admitted of {seen.key.quota}", flush=True)
                if count > allowed:
                    self.report(f"{seen.key.credential_id} was admitted {count} times of its quota of {seen.key.quota}")

    @property
    def _valkey_failed(self) -> bool:
        return self._shared_until > 0 or self._forgot_at > 0

    async def _settled(self) -> bool:
        """Whether both hosts report that no usage waits, and the table no longer changes."""
        before = await self._counted()
        for host in self.world.hosts:
            metrics = await self.world.metrics(host)
            if metrics is None or metrics.get("ledgerline_usage_waiting_bytes") != 0:
                return False
        await asyncio.sleep(3)
        return before == await self._counted()

    async def _counted(self) -> int:
        """The number of requests in the usage table; -1 while Postgres is away."""
        try:
            [row] = await self.world.rows("SELECT coalesce(sum(successful + failed), 0) FROM partner.usage")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return -1
        return int(row[0])

    async def _run(self, *command: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *command,
            env={**os.environ, "DATABASE_URL": self.world.database_url, "DATA_DIR": str(self.world.folder / "ours")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode(errors="replace")


def _passes(reason: str) -> bool:
    """Whether a reason of /ready may remain for some seconds after a fault: a task that has just been restarted."""
    return "background task " in reason
