"""The limits of all processes together, which Valkey counts and by whose clock the minutes slide."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any

import structlog
from redis.exceptions import NoScriptError, RedisError

from api.keys.limits import scripts
from api.keys.limits.scripts import Script
from api.keys.limits.state import AWAY, OPEN, REPORTED, Participant
from api.keys.limits.verdicts import AskPostgres, Barred, GoodKey, KeyLease, Verdict
from api.keys.restrictions import KeyUse
from api.keys.valkey import ValkeyClient, packed
from shared import lifecycle

log = structlog.get_logger()

BEAT_EVERY_S = 0.25
"""The interval of heartbeats."""

_BEAT_HELD_S, _BEAT_AGAIN_S = 0.05, 0.5  # while requests wait, and after that
_ANY = KeyUse()  # of a key without restrictions


class SharedLimits:
    """Counts requests in Valkey, which caches API keys in the same round trip. This does what `participant` decides.

    Methods raise the errors of `ValkeyClient`. If `take` or a heartbeat raises one, `away` is true until a heartbeat
    succeeds.
    """

    def __init__(self, valkey: ValkeyClient) -> None:
        self._valkey = valkey
        self.participant = Participant(secrets.token_hex(8).encode())
        self._reporting: asyncio.Task[None] | None = None
        self._reviving = asyncio.Lock()

    @property
    def away(self) -> bool:
        """Whether Valkey is unreachable, so that this process counts alone."""
        return self.participant.state is AWAY

    async def take(
        self, key_hash: bytes, lease: KeyLease | None = None, use: KeyUse = _ANY
    ) -> Verdict | Barred | AskPostgres:
        """Count one request, unless it is barred.

        Without `lease`, a request of a key that is not cached is not counted: on AskPostgres, repeat the call with a
        lease. Valkey then caches the key for the next requests, unless it is fenced or `until_us` has passed.
        """
        process = self.participant
        try:
            while True:
                all_reported = process.state is OPEN or await self._all_reported()
                if not all_reported:
                    held = process.take_held(lease, use, time.monotonic())
                    if held is not None:
                        return held
                life = process.life
                try:
                    answer = await self._run(scripts.TAKE, scripts.take(key_hash, life, lease, use))
                finally:
                    if not all_reported and lease is not None:
                        process.counted(lease)
                taken = scripts.parse_taken(answer, life)
                if taken is None:
                    process.refused(life)
                    continue
                if isinstance(taken, Verdict):
                    process.own.record(taken.credential_id, taken.admitted, taken.remaining, time.monotonic())
                return taken
        except (RedisError, OSError):
            process.failed()
            raise

    def take_alone(self, good: GoodKey, use: KeyUse = _ANY) -> Verdict | Barred:
        """Count one request while Valkey is unreachable, against this process' shares of the limit and remaining
        quota.
        """
        barred = good.bars(use)
        if barred is not None:
            return Barred(barred)
        return self.participant.own.take(good, self.participant.processes, time.monotonic())

    async def fence(self, key_hashes: Sequence[bytes]) -> None:
        """Forget these keys and do not cache them for FENCE_S: they are looked up in Postgres instead."""
        await self._valkey.ask_all(map(scripts.fence, key_hashes))

    async def beat(self) -> None:
        """Until cancelled, send heartbeats, and report this process' admissions to each new life of Valkey's data."""
        try:
            while True:
                try:
                    await self._heartbeat()
                    if self.participant.state is not OPEN:
                        await self._all_reported()
                except (RedisError, OSError):
                    self.participant.failed()
                await asyncio.sleep(BEAT_EVERY_S)
        finally:
            if self._reporting is not None:
                self._reporting.cancel()

    async def _all_reported(self) -> bool:
        """Wait until all processes have reported to this life, but at most HOLD_S from the first wait."""
        patience_s = self.participant.hold(time.monotonic())
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._report())
            self._reporting.add_done_callback(lifecycle.consume_error)
        done, _ = await asyncio.wait((self._reporting,), timeout=patience_s)
        for reporting in done:
            reporting.result()
        return self.participant.state is OPEN

    async def _report(self) -> None:
        """Report to this life, and wait until all other processes have, or until it is a minute old."""
        process = self.participant
        while process.state is not OPEN:
            report = process.next_report(time.monotonic())
            if report is not None:
                answer = await self._run(scripts.TELL, scripts.tell(process.name, report))
                process.reported(report, bool(answer))
                continue
            await self._heartbeat()
            if process.state is REPORTED:
                await asyncio.sleep(_BEAT_HELD_S if process.hold(time.monotonic()) else _BEAT_AGAIN_S)

    async def _heartbeat(self) -> None:
        answer = await self._run(scripts.BEAT, scripts.beat(self.participant))
        self.participant.heard(time.monotonic(), *answer)

    async def _run(self, script: Script, command: bytes) -> Any:
        """The reply to a packed command that runs a script."""
        try:
            return await self._valkey.ask(command)
        except NoScriptError:
            await self._revive(script)
        return await self._valkey.ask(command)

    async def _revive(self, missed: Script) -> None:
        """Begin a new life of Valkey's data.

        NOTE: scripts are neither persisted nor replicated, so a server without them has just started or taken over,
        perhaps with data from before a revocation. Its data are voided before a script can read them.
        """
        async with self._reviving:
            (known,) = await self._valkey.ask(packed(b"SCRIPT", b"EXISTS", missed.id))
            if known:
                return
            log.info("limits.new_life", reason="Valkey has started or failed over")
            await self._valkey.ask(packed(b"DEL", scripts.LIFE))
            for script in (scripts.TELL, scripts.BEAT, scripts.TAKE):
                await self._valkey.ask(packed(b"SCRIPT", b"LOAD", script.text))
