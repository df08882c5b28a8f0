"""Some processes that share a limit through a Valkey, without sockets and clocks. All of it is played in one thread.

`Valkey` does for one key what the scripts in `api/keys/limits/` do; tests/api/test_limits_model.py compares the two.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from api.keys.limits.state import AWAY, OPEN, REPORTED, Event, Participant, Report, State
from api.keys.limits.verdicts import GoodKey, KeyLease, Verdict
from api.keys.restrictions import KeyUse

KEY_ID = UUID(int=1)
STEP_S, BEAT_EVERY_S = 0.05, 0.25
_MINUTE_S, _GRACE_S, _LATELY_S = 60.0, 0.6, 5.0


class Valkey:
    """The data of a Valkey, and its scripts. The test sets its clock."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self._names = 0
        self.lose()

    def lose(self) -> None:
        """Lose all data."""
        self.life = ""
        self.began_s = self.opens_s = 0.0
        self.owing, self.told = set[bytes](), set[bytes]()
        self.last: dict[bytes, int] = {}
        self.beats: dict[bytes, float] = {}
        self.minute: list[float] = []

    def beat(self, process: Participant) -> tuple[bytes, int, int, int, *tuple[bytes, ...]]:
        """The answer of beat.lua."""
        for gone in [name for name, at_s in self.beats.items() if self.now_s - at_s >= _MINUTE_S]:
            del self.beats[gone]
            self.told.discard(gone)
            self.last.pop(gone, None)
        newest_s = max(self.beats.values(), default=self.now_s)
        self.beats[process.name] = self.now_s
        if not self.life:
            self._names += 1
            self._begin(f"data{self._names}.1", self.now_s + _GRACE_S)
        elif self.life == process.life.decode() and process.own.unreported:
            lately = {name for name, at_s in self.beats.items() if at_s >= newest_s - _LATELY_S}
            self.told -= lately
            self.owing |= lately
            data, _, number = self.life.rpartition(".")
            self._begin(f"{data}.{int(number) + 1}", self.now_s)
        if self.life != process.life.decode():
            is_new = self.life.rpartition(".")[0] != process.data.decode()
            self.owing |= {process.name, *(process.peers if is_new else ())} - self.told
        left_s = max(self.began_s + _MINUTE_S - self.now_s, 0)
        is_open = self.now_s >= self.opens_s and (not self.owing or not left_s)
        if not left_s:
            self.owing.clear()
        lately = {name for name, at_s in self.beats.items() if at_s >= self.now_s - _LATELY_S}
        return self.life.encode(), int(is_open), len(lately), int(left_s * 1e6), *self.beats

    def tell(self, process: bytes, report: Report) -> bool:
        """The answer of tell.lua."""
        if report.life.decode() != self.life:
            return False
        if report.number > self.last.get(process, 0):
            self.last[process] = report.number
            self.minute += [self.now_s - age_us / 1e6 for ages_us in report.ages_us.values() for age_us in ages_us]
            self.minute.sort()
        if report.is_last:
            self.told.add(process)
            self.owing.discard(process)
        return True

    def take(self, life: bytes, limit: int) -> tuple[bool, int] | None:
        """The answer of take.lua for a key that it knows: if admitted, and what is left; None for "tell"."""
        if life.decode() != self.life:
            return None
        self.minute = [at_s for at_s in self.minute if self.now_s - at_s < _MINUTE_S]
        admitted = len(self.minute) < limit
        if admitted:
            self.minute.append(self.now_s)
        return admitted, max(limit - len(self.minute), 0)

    def _begin(self, life: str, opens_s: float) -> None:
        self.life, self.began_s, self.opens_s = life, self.now_s, opens_s


class _Watched(Participant):
    """A participant that records its transitions."""

    def __init__(self, name: bytes, met: set[tuple[State, Event]]) -> None:
        super().__init__(name)
        self._met = met

    def _enter(self, event: Event) -> None:
        self._met.add((self.state, event))
        super()._enter(event)


class _Sent(NamedTuple):
    """A command that Valkey has run, and whose answer is on its way."""

    arrives_s: float
    answered: Callable[[], None]
    lost: Callable[[], None]


class Process:
    """An API process: what `SharedLimits` does, a step at a time."""

    def __init__(self, world: "World", name: bytes) -> None:
        self._world = world
        self.part = _Watched(name, world.met)
        self.connected, self.frozen = True, False
        self._sent = deque[_Sent]()
        self._held = deque[float]()  # requests that wait, since when
        self._reporting = self._beating = False
        self._reports_at_s = self._beats_at_s = 0.0

    def ask(self, waits_since_s: float | None = None) -> None:
        """A request arrives."""
        now_s, part = self._world.now_s, self.part
        since_s = now_s if waits_since_s is None else waits_since_s
        if part.state is AWAY:
            self._take_alone()
            return
        is_held = part.state is not OPEN
        if is_held:
            if part.hold(now_s) > 0:
                self._held.append(since_s)
                return
            self._world.has_waited_in_vain = True
            held = part.take_held(self._world.lease, KeyUse(), now_s)
            if held is not None:
                assert isinstance(held, Verdict) and not held.admitted
                self._world.refused += 1
                return
        self._world.longest_wait_s = max(self._world.longest_wait_s, now_s - since_s)
        life = part.life
        assert life, "a process that owes reports admits nothing"
        assert part.state is not OPEN or not part.own.unreported

        def lost() -> None:
            if is_held:
                part.counted(self._world.lease)
            part.failed()
            self._take_alone()

        if not self.connected:
            lost()
            return
        answer = self._world.valkey.take(life, self._world.limit)
        is_settled = self._world.is_settled()

        def answered() -> None:
            if is_held:
                part.counted(self._world.lease)
            if answer is None:
                part.refused(life)
                self.ask()
                return
            admitted, left = answer
            part.own.record(KEY_ID, admitted, left, self._world.now_s)
            self._world.count(admitted, now_s, is_settled)

        self._send(answered, lost)

    def step(self) -> None:
        """Do what is due."""
        if self.frozen:
            return
        now_s = self._world.now_s
        while self._sent and self._sent[0].arrives_s <= now_s:
            self._sent.popleft().answered()
        if self.part.state is not OPEN and not self._reporting and now_s >= self._reports_at_s:
            self._report()
        if now_s >= self._beats_at_s and not self._beating:
            self._beating, self._beats_at_s = True, now_s + BEAT_EVERY_S
            self._heartbeat(self._beat_is_over)
        held, self._held = self._held, deque()
        for since_s in held:
            self.ask(since_s)

    def cut(self) -> None:
        """Lose the connection, with the answers on their way."""
        self.connected = False
        sent, self._sent = self._sent, deque()
        for one in sent:
            one.lost()

    def fail(self) -> None:
        """Get an error instead of the next answer, as from a Valkey that is loading or out of memory."""
        if self._sent:
            self._sent[0] = self._sent[0]._replace(answered=self._sent[0].lost)

    def _report(self) -> None:
        self._reporting = True
        report = self.part.next_report(self._world.now_s)
        if report is None:
            self._heartbeat(self._report_is_over)
            return
        if not self.connected:
            self.part.failed()
            self._report_is_over()
            return
        accepted = self._world.valkey.tell(self.part.name, report)

        def answered() -> None:
            self.part.reported(report, accepted)
            self._report_is_over()

        def lost() -> None:
            self.part.failed()
            self._report_is_over()

        self._send(answered, lost)

    def _heartbeat(self, over: Callable[[], None]) -> None:
        if not self.connected:
            self.part.failed()
            over()
            return
        answer = self._world.valkey.beat(self.part)

        def answered() -> None:
            self.part.heard(self._world.now_s, *answer)
            over()

        def lost() -> None:
            self.part.failed()
            over()

        self._send(answered, lost)

    def _report_is_over(self) -> None:
        self._reporting = False
        if self.part.state in (REPORTED, AWAY):
            self._reports_at_s = self._world.now_s + STEP_S

    def _beat_is_over(self) -> None:
        self._beating = False

    def _take_alone(self) -> None:
        now_s = self._world.now_s
        self._world.count(self.part.own.take(self._world.lease.key, self.part.processes, now_s).admitted, now_s, False)

    def _send(self, answered: Callable[[], None], lost: Callable[[], None]) -> None:
        earliest_s = self._sent[-1].arrives_s if self._sent else 0
        self._sent.append(_Sent(max(self._world.now_s + self._world.delay_s(), earliest_s), answered, lost))


class World:
    """Processes, their Valkey and the time. They start, and know each other when this returns."""

    def __init__(self, count: int, limit: int, chance: random.Random) -> None:
        self.now_s, self.limit = 1_000.0, limit
        self.lease = KeyLease(GoodKey(KEY_ID, 1, limit, None))
        self.valkey = Valkey(self.now_s)
        self.met = set[tuple[State, Event]]()
        self.admitted: list[tuple[float, bool]] = []  # when; and whether by Valkey when nobody owed it anything
        self.refused = 0
        self.longest_wait_s = 0.0
        self.has_waited_in_vain = False
        self._chance = chance
        self.processes: list[Process] = []
        for _ in range(count):
            self.start()
        self.run(5)
        assert all(each.part.state is OPEN and each.part.processes == count for each in self.processes)

    def start(self) -> None:
        """Start a process."""
        self.processes.append(Process(self, b"process %d" % len(self.processes)))

    def run(self, for_s: float) -> None:
        """Let time pass."""
        for _ in range(round(for_s / STEP_S)):
            self.now_s += STEP_S
            self.valkey.now_s = self.now_s
            for process in self.processes:
                process.step()

    def is_settled(self) -> bool:
        """Whether all processes take part in the life of Valkey's data, and owe nothing."""
        return all(each.part.state is OPEN and not each.part.own.unreported for each in self.processes)

    def count(self, admitted: bool, at_s: float, is_settled: bool) -> None:
        """A request was admitted or refused."""
        if admitted:
            self.admitted.append((at_s, is_settled))
        else:
            self.refused += 1

    def fullest(self) -> int:
        """The most admissions in any minute."""
        return max((self.before(at_s) for at_s, _ in self.admitted), default=0)

    def before(self, at_s: float) -> int:
        """The admissions in the minute up to this time."""
        return sum(at_s - _MINUTE_S < earlier_s <= at_s for earlier_s, _ in self.admitted)

    def delay_s(self) -> float:
        """How long an answer takes."""
        return self._chance.choice((0, 0, STEP_S, 8 * STEP_S))
