"""Who counts the requests of a process, and what the process owes Valkey. Without I/O; `shared` does that.

Valkey's data have a life, named `<data>.<number>`. It ends when Valkey loses its data, starts or fails over, which
changes `<data>`, and after an outage that its data survive, which changes the number. A process takes part in a life
once it has reported its admissions of the last minute. The life is open when all processes have reported.
"""

import math
from collections import Counter, deque
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

import msgspec

from api.keys.limits.local import LocalLimits, share
from api.keys.limits.verdicts import MINUTE_S, AskPostgres, Barred, KeyLease, Verdict
from api.keys.restrictions import KeyUse

HOLD_S = 2.0
"""How long requests wait for other processes to report admissions before each process grants only its share."""

_MAX_REPORTED = 2_000  # admissions in one command


class State(Enum):
    """Who counts the requests of a process. In OWING and REPORTED they are held: they first wait for up to HOLD_S."""

    AWAY = auto()  # the process, against its share: Valkey is unreachable
    OWING = auto()  # nobody: the process has not reported to the life
    REPORTED = auto()  # Valkey, against the share of the process: another process has not reported
    OPEN = auto()  # Valkey, for all processes together


class Event(Enum):
    """What Valkey answers, or that it does not."""

    FAILED = auto()  # no answer to a request or a heartbeat
    TELL = auto()  # to a request: its life has ended
    TOLD = auto()  # to the last report: accepted
    OWES = auto()  # to a heartbeat: this process has to report
    OTHERS_OWE = auto()  # to a heartbeat: only other processes have to
    NOBODY_OWES = auto()  # to a heartbeat: the life is open


AWAY, OWING, REPORTED, OPEN = State
FAILED, TELL, TOLD, OWES, OTHERS_OWE, NOBODY_OWES = Event

TRANSITIONS = {
    AWAY: {FAILED: AWAY, TELL: AWAY, OWES: OWING, OTHERS_OWE: REPORTED, NOBODY_OWES: OPEN},
    OWING: {FAILED: AWAY, TOLD: REPORTED, OWES: OWING},
    REPORTED: {FAILED: AWAY, TELL: OWING, OWES: OWING, OTHERS_OWE: REPORTED, NOBODY_OWES: OPEN},
    OPEN: {FAILED: AWAY, TELL: OWING, OWES: OWING, OTHERS_OWE: OPEN, NOBODY_OWES: OPEN},
}
"""The next state. Other events can't happen in a state: OWING has no life to send a request in, and has to report.

A life stays OPEN for a process while others owe: they have started since, or were silent for its first minute.
"""


class Report(msgspec.Struct, frozen=True):
    """Some admissions of this process, as a message to a life: their ages by credential."""

    life: bytes
    number: int  # by which Valkey recognises a repetition
    is_last: bool
    ages_us: dict[UUID, list[int]]


class _Batch(NamedTuple):
    """Some admissions of this process: their times by credential."""

    number: int
    moments: dict[UUID, list[float]]


class Participant:
    """The part of one process in the limits of all. Times are seconds on its monotonic clock.

    An event is reported by the method of the same meaning, in the order in which Valkey's answers arrive.
    """

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.own = LocalLimits()
        self.state = OWING
        self.life = b""  # to which this process has reported all it had to; empty after a new one has begun
        self.data = b""  # of the last life to which it has begun to report
        self.processes = 1  # that share a limit, including this one
        self.peers: Sequence[bytes] = ()  # processes with a heartbeat in the last minute, as Valkey last said
        self._current = b""  # the life to report to; empty until a heartbeat has named it
        self._first_minute_ends_at = 0.0  # of the life
        self._owed: deque[_Batch] = deque()
        self._batches = 0
        self._held_since: float | None = None
        self._asked: Counter[UUID] = Counter()  # requests in its share that Valkey is counting now

    def failed(self) -> None:
        """A request or a heartbeat was not answered."""
        self._current = b""
        self._enter(FAILED)

    def refused(self, life: bytes) -> None:
        """A request was answered `tell`: the life in which it was sent has ended."""
        if life == self.life:
            self.life = self._current = b""
            self._enter(TELL)

    def heard(self, now_s: float, life: bytes, is_open: int, processes: int, left_us: int, *names: bytes) -> None:
        """A heartbeat was answered, in the words of beat.lua."""
        # NOTE: in a new life the known processes count until they have had time to send a heartbeat.
        self.processes = processes if is_open else max(processes, self.processes)
        self.peers = names if is_open else list({*names, *self.peers})
        self._first_minute_ends_at = now_s + left_us / 1e6
        if life != self.life:
            if life != self._current:
                self._owe_to(life)
            self.life = b""
            self._enter(OWES)
        elif not self.own.unreported:  # NOTE: those since this heartbeat was sent get a new life with the next one
            self._enter(NOBODY_OWES if is_open else OTHERS_OWE)

    def next_report(self, now_s: float) -> Report | None:
        """The report that Valkey needs now; None if the next heartbeat says more."""
        if self.state is not OWING or not self._current:
            return None
        batch = self._owed[0] if self._owed else _Batch(self._batches, {})
        ages_us = {
            credential_id: [int((now_s - moment) * 1e6) for moment in times if now_s - moment < MINUTE_S]
            for credential_id, times in batch.moments.items()
        }
        return Report(self._current, batch.number, len(self._owed) < 2, ages_us)

    def reported(self, report: Report, accepted: bool) -> None:
        """A report was answered. It is not accepted if its life has ended."""
        if accepted and self._owed and self._owed[0].number == report.number:
            self._owed.popleft()
        if report.life != self._current:
            return
        if not accepted:
            self._current = b""
        elif not self._owed:
            self.life = report.life
            self._enter(TOLD)

    def hold(self, now_s: float) -> float:
        """For how many seconds a request has to wait for reports: HOLD_S from the first that does."""
        if self._held_since is None:
            self._held_since = now_s
        return max(self._held_since + HOLD_S - now_s, 0)

    def take_held(self, lease: KeyLease | None, use: KeyUse, now_s: float) -> Verdict | Barred | AskPostgres | None:
        """The outcome of a request that has waited in vain; None if it is in this process' share, so Valkey counts it.

        Once Valkey has, call `counted`. A process that has not reported may have used the whole limit, hence a refusal
        until the life is a minute old.
        """
        if lease is None:
            return AskPostgres(0, self.life)
        key = lease.key
        if (barred := key.bars(use)) is not None:
            return Barred(barred)
        own = self.own.count(key.credential_id, now_s) + self._asked[key.credential_id]
        if self.life and own < share(key.limit, self.processes):
            self._asked[key.credential_id] += 1
            return None
        reset_s = max(math.ceil(self._first_minute_ends_at - now_s), 1)
        return Verdict(key.credential_id, key.network_id, False, key.limit, 0, reset_s)

    def counted(self, lease: KeyLease) -> None:
        """Valkey has answered a request that take_held has left to it, or has failed to."""
        self._asked -= Counter((lease.key.credential_id,))

    def _owe_to(self, life: bytes) -> None:
        """Make batches of what a new life has to be told: all admissions if Valkey's data are new, too."""
        self._current, data, admissions = life, life.rpartition(b".")[0], self.own.take_unreported()
        if data != self.data:
            self.data, admissions = data, self.own.all()
            self._owed.clear()
        for first in range(0, len(admissions), _MAX_REPORTED):
            moments: dict[UUID, list[float]] = {}
            for credential_id, moment in admissions[first : first + _MAX_REPORTED]:
                moments.setdefault(credential_id, []).append(moment)
            self._batches += 1
            self._owed.append(_Batch(self._batches, moments))

    def _enter(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state][event]
        if self.state is OPEN:
            self._held_since = None
