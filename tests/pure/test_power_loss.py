"""Synced requests count once and no request counts twice, despite losses of power, processes and commits.

The spools and their queueing are the real ones; disk, table and queue are small models that fail at random points.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import structlog

from api.errors import Refusal
from api.usage import queue, spool
from api.usage.queue import UsageBatch, _Queueing
from api.usage.spool import RECORD, Spools
from tests.pure.simulated_disk import Killed, SimulatedDisk

SEEDS = 1_000
STEPS = 40
FAILOVER_REACHES_BACK_S = 500.0  # less than the time for which a spool is kept


class UsageTable:
    """The usage table, and the queue before it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.fault_chance, self.now = chance, 0.0, 0.0
        self.messages: list[UsageBatch] = []
        self.message_ids: list[str] = []  # of the same
        self.commits: list[tuple[float, UsageBatch]] = []

    @property
    def marks(self) -> dict[str, tuple[int, float]]:
        """For each spool: the offset up to which it was added, and the time."""
        return {batch.spool: (batch.end, at) for at, batch in self.commits}

    @property
    def counted(self) -> Counter[str]:
        """Requests by credential."""
        found: Counter[str] = Counter()
        for _, batch in self.commits:
            for each in batch.sums:
                found[each.credential_id] += each.successful + each.failed
        return found

    def deliver(self) -> None:
        """Deliver any message, possibly again later."""
        if not self.messages:
            return
        number = self.chance.randrange(len(self.messages))
        batch = self.messages[number]
        if self.chance.random() < 0.7:
            del self.messages[number], self.message_ids[number]
        if self.chance.random() < self.fault_chance:
            return
        if self.marks.get(batch.spool, (0, 0.0))[0] == batch.offset:
            self.commits.append((self.now, batch))

    def fail_over(self) -> None:
        """Lose the latest commits, like an asynchronous replica that becomes the primary."""
        recent = sum(at > self.now - FAILOVER_REACHES_BACK_S for at, _ in self.commits)
        lost = self.chance.randint(0, recent)
        del self.commits[len(self.commits) - lost :]

    # The parts of a pool, its connections and the broker that the queueing uses.

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator["UsageTable"]:
        self._may_fail()
        yield self

    async def check(self, db: "UsageTable") -> None:
        """Stands for `shared.schema.check`: this table has one version."""
        assert db is self
        self._may_fail()

    async def read(self, db: "UsageTable") -> None:
        """Stands for `api.sources.clock.read`."""
        assert db is self
        self._may_fail()

    async def fetch(self, statement: str, names: list[str], kept_s: float) -> list[tuple[str, int, bool]]:
        assert statement == queue.marks.text
        self._may_fail()
        return [(name, end, at < self.now - kept_s) for name, (end, at) in self.marks.items() if name in names]

    def unacknowledged(self) -> queue.Unacknowledged:
        self._may_fail()
        return queue.Unacknowledged(len(self.messages), 0)

    def has(self, message_id: str) -> bool:
        self._may_fail()
        return message_id in self.message_ids

    def put(self, message_id: str, batch: UsageBatch) -> int:
        self._may_fail()
        assert message_id not in self.message_ids, "what waits is not repeated"
        if self.chance.random() > self.fault_chance:
            self.messages.append(batch)
            self.message_ids.append(message_id)
        self._may_fail()
        return 0

    def _may_fail(self) -> None:
        if self.chance.random() < self.fault_chance:
            raise self.chance.choice([ConnectionError, ValueError, Killed])


class Machine:
    """A machine with some processes, and the fate of each request."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance, self.folder = random.Random(seed), folder
        self.disk, self.table = SimulatedDisk(self.chance), UsageTable(self.chance)
        self.processes: dict[int, _Queueing] = {}
        self.synced: Counter[str] = Counter()  # bytes by spool
        self.safe: set[str] = set()  # requests, each with its own credential
        self.unsynced: dict[str, tuple[str, int]] = {}  # by credential: spool and end of the record
        self.requests = 0
        self.lost_power = 0
        self.disk.meanwhile = lambda: self.request(self.disk.process)

    def start(self) -> None:
        """Start one more process."""
        self.disk.process = max(self.processes, default=self.disk.process) + 1
        try:
            spools = Spools(self.folder, roll_over_bytes=20 * RECORD.size)
        except (OSError, Killed):
            self.disk.end_process(self.disk.process)
        else:
            self.processes[self.disk.process] = _Queueing(spools, self.table, self.table, {})  # type: ignore[arg-type]

    async def step(self) -> None:
        """Let a random event happen."""
        self.table.now += self.chance.choice([0.1, 0.5, 2.0, 12.0])
        doing: list[Callable[[], Any]] = [self.request] * 12 + [self.table.deliver] * 8 + [self.look] * 8
        rare = [self.start, self.kill, self.lose_power, self.table.fail_over, self.wait_long]
        try:
            happening = self.chance.choice(doing + rare)()
            if happening is not None:
                await happening
        except Killed:
            self.kill(self.disk.process)
        self.note_synced()

    async def look(self) -> None:
        """A process compares its spools with the table."""
        if not self.processes:
            return
        process = self.disk.process = self.chance.choice(list(self.processes))
        await self.processes[process].look()

    def request(self, process: int | None = None) -> None:
        """Answer some requests of a process, or fail."""
        if not self.processes:
            return
        process = self.disk.process = self.chance.choice(list(self.processes)) if process is None else process
        spools = self.processes[process]._spools
        for _ in range(self.chance.randint(1, 6)):
            self.requests += 1
            credential_id = UUID(int=self.requests)
            try:
                spools.count(credential_id, 0, 200, 0.0)
            except Refusal:
                continue
            spool = spools.all[-1]
            self.unsynced[credential_id.hex] = spool.name, spool.size_bytes

    def kill(self, process: int | None = None) -> None:
        """Kill one with SIGKILL."""
        if self.processes:
            process = self.chance.choice(list(self.processes)) if process is None else process
            self.note_synced()
            del self.processes[process]
            self.disk.end_process(process)

    def lose_power(self) -> None:
        """Lose power for all processes; unsynced records may be lost."""
        self.note_synced()
        self.unsynced.clear()
        self.processes.clear()
        self.disk.lose_power()
        self.lost_power += 1

    def wait_long(self) -> None:
        """Wait until spools that are in the table may be deleted."""
        self.table.now += 1.1 * queue.SPOOL_KEPT_S

    def note_synced(self) -> None:
        """Note the requests whose records are known to be on disk: they must count in the end."""
        for process in self.processes.values():
            for each in process._spools.all:
                self.synced[each.name] = max(self.synced[each.name], each.synced_bytes)
        for credential_id, (spool_name, end) in list(self.unsynced.items()):
            if end <= self.synced[spool_name]:
                self.safe.add(credential_id)
                del self.unsynced[credential_id]

    def let_faults_happen(self, chance: float) -> None:
        self.disk.fault_chance = self.table.fault_chance = chance

    async def settle(self) -> None:
        """Without further faults, the living processes and a new one add everything to the table."""
        self.let_faults_happen(0.0)
        self.disk.meanwhile = lambda: None
        self.start()
        for _ in range(200):
            self.table.now += 11.0
            await self.all_look()
            while self.table.messages:
                self.table.deliver()
            if not any(spool.waiting_bytes for process in self.processes.values() for spool in process._spools.all):
                return
        raise AssertionError("it never came to an end")

    async def all_look(self) -> None:
        for number, process in self.processes.items():
            self.disk.process = number
            await process.look()


@pytest.fixture
def machine_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[int], Machine]]:
    """A machine with random events from a seed."""

    async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    def made(seed: int) -> Machine:
        machine = Machine(seed, tmp_path)
        monkeypatch.setattr(spool, "disk", machine.disk)
        monkeypatch.setattr(queue, "time", SimpleNamespace(monotonic=lambda: machine.table.now))
        monkeypatch.setattr(queue, "schema", machine.table)
        monkeypatch.setattr(queue, "clock", machine.table)
        return machine

    quiet = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
    monkeypatch.setattr(spool, "log", quiet)
    monkeypatch.setattr(queue, "log", quiet)
    monkeypatch.setattr("shared.lifecycle.log", quiet)
    monkeypatch.setattr(queue, "_in_thread", at_once)
    monkeypatch.setattr(queue, "_MAX_RECORDS", 7)
    yield made


async def test_synced_requests_count_once_and_none_counts_twice(
    machine_of: Callable[[int], Machine],
) -> None:
    safe, lost_power = 0, 0
    for seed in range(SEEDS):
        machine = machine_of(seed)
        machine.start()
        machine.let_faults_happen(0.02)
        for _ in range(STEPS):
            await machine.step()
        await machine.settle()
        counted = machine.table.counted
        twice = [credential_id for credential_id, times in counted.items() if times > 1]
        missing = [credential_id for credential_id in {*machine.safe, *machine.unsynced} if counted[credential_id] != 1]
        assert (seed, twice, missing) == (seed, [], [])
        assert all(int(credential_id, 16) <= machine.requests for credential_id in counted), "nothing is invented"
        machine.wait_long()
        await machine.all_look()
        for process in machine.processes.values():
            assert not any("shorter" in reason for reason in process._spools.unusable.values())
            assert process._spools.former == [], "what is safe in the table leaves the disk"
        safe, lost_power = safe + len(machine.safe), lost_power + machine.lost_power
    assert safe > 10 * SEEDS
    assert lost_power > SEEDS / 2
