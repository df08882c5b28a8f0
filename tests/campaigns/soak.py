"""`python -m tests.campaigns.soak --minutes 60 --rate 200`: no process grows at the tip.

The whole service follows a chain that grows each second and forks, under a steady rate of requests. Memory and
descriptors of every process are sampled. After a warm-up of a sixth of the time, the second sixth is compared with
the last one: median memory may grow by FLAT_WITHIN, and the median number of descriptors by MORE_DESCRIPTORS. A small
process may grow by up to ARENAS, if its memory no longer grows in the last third.

Memory is the resident memory that a process does not share. Pages of Postgres' shared buffers count as resident in each
process that has touched them, and pages of programs and libraries come and go with the page cache of the machine. For
the processes of Postgres and Valkey, one descriptor for each existing file is left out: a Postgres session keeps the
files of tables open, up to max_files_per_process, and growing tables get further ones, such as a free space map. Pools
open sessions when they need them, up to a limit. A session that was opened late is not compared.
"""

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
import psutil
import typer
import uvloop

from shared.servers.embedded import Postgres, Valkey
from tests.campaigns import world as worlds
from tests.campaigns.load import Load, paths_of
from tests.campaigns.partner import new_partner
from tests.campaigns.world import World

SAMPLE_EVERY_S = 2.0
FLAT_WITHIN = 0.02
MORE_DESCRIPTORS = 3  # pools open connections as they are needed
CONNECTIONS = 16
LIMITS = (10_000,) * 6
MIB = 1 << 20
ARENAS = 2 * MIB  # Python's allocator allocates 1 MiB at a time, at each new peak: more than 2 % of a small process
SETTLED_WITHIN = 0.005
SERVERS = (Postgres, Valkey)
SERVER_NAMES = tuple(kind.name for kind in SERVERS)


class Sample(msgspec.Struct, frozen=True):
    """The memory and descriptors of a process at one moment."""

    at: float
    memory: int
    descriptors: int


class Course(msgspec.Struct, frozen=True):
    """Medians of one process, at the beginning and at the end."""

    name: str
    memory: tuple[float, float, float]  # over the second, the fourth and the last sixth of the time
    descriptors: tuple[float, float]  # over the second and the last

    @property
    def growth(self) -> float:
        """The growth of its memory, as a fraction of that at the beginning."""
        return self.memory[2] / self.memory[0] - 1

    @property
    def flat(self) -> bool:
        """Whether it did not grow, or grew by at most some arenas and has stopped growing."""
        first, between, last = self.memory
        settled = last - first <= ARENAS and last <= between * (1 + SETTLED_WITHIN)
        before, after = self.descriptors
        return (self.growth <= FLAT_WITHIN or settled) and after <= before + MORE_DESCRIPTORS


def sampled(world: World) -> Iterator[tuple[str, Sample]]:
    """One sample of every process. A replaced process gets another row."""
    now = time.monotonic()
    for part in world.parts:
        whole = psutil.Process(part.pid)
        for process in (whole, *whole.children(recursive=True)):
            name = part.name if process.pid == whole.pid else f"{part.name} child {process.pid}"
            yield name, Sample(now, own_memory(process), process.num_fds())
    for kind in SERVERS:
        for process in world.server_processes(kind):
            try:
                files = {file.path for file in process.open_files()}
                sample = Sample(now, own_memory(process), process.num_fds() - len(files))
            except psutil.NoSuchProcess:  # a session that has just ended
                continue
            yield f"{kind.name} {process.pid}", sample


def own_memory(process: psutil.Process) -> int:
    """The resident bytes that a process does not share."""
    found = process.memory_info()
    own: int = found.rss - found.shared
    return own


def courses(samples: dict[str, list[Sample]], began: float, ended: float) -> list[Course]:
    """Each process' beginning, after the warm-up, and end. A process that did not live that long is left out."""
    part = (ended - began) / 6
    found = []
    for name, each in sorted(samples.items()):
        if each[0].at > began + part:
            continue
        first = [sample for sample in each if began + part <= sample.at < began + 2 * part]
        between = [sample for sample in each if began + 3 * part <= sample.at < began + 4 * part]
        last = [sample for sample in each if sample.at >= ended - part]
        if first and between and last:
            found.append(_course(name, first, between, last))
    return found


def _course(name: str, first: list[Sample], between: list[Sample], last: list[Sample]) -> Course:
    first_memory, between_memory, last_memory = (
        median(sample.memory for sample in samples) for samples in (first, between, last)
    )
    descriptors = median(sample.descriptors for sample in first), median(sample.descriptors for sample in last)
    return Course(name, (first_memory, between_memory, last_memory), descriptors)


def median(figures: Iterator[int]) -> float:
    """The median, which a short peak does not change."""
    return statistics.median(figures)


def server_sizes(samples: dict[str, list[Sample]], began: float, ended: float) -> Iterator[str]:
    """The number of a server's processes and their total memory, over the second and the last sixth of the time."""
    part = (ended - began) / 6
    for kind in SERVERS:
        of_kind = [each for name, each in samples.items() if name.startswith(f"{kind.name} ")]
        figures = []
        for start in (began + part, ended - part):
            moments: dict[float, list[int]] = defaultdict(list)
            for each in of_kind:
                for sample in each:
                    if start <= sample.at < start + part:
                        moments[sample.at].append(sample.memory)
            processes = median(len(memories) for memories in moments.values())
            memory = median(sum(memories) for memories in moments.values())
            figures.append(f"{processes:.0f} processes with {memory / MIB:.1f} MiB")
        yield f"{kind.name}: {' at the beginning, '.join(figures)} at the end"


async def run(folder: Path, minutes: float, rate: float) -> bool:
    """Soak the service; returns whether everything stayed flat."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    async with worlds.opened(folder, seed=1) as world:
        partner = await new_partner(world.database_url, worlds.NETWORK, LIMITS)
        load = Load([host.port for host in world.hosts], partner, paths_of(world.chain), rate, CONNECTIONS)
        growing = asyncio.create_task(world.grow(Random(1)))
        began = time.monotonic()
        ended = began + minutes * 60
        async with load.running():
            while time.monotonic() < ended:
                for name, sample in await asyncio.to_thread(lambda: list(sampled(world))):
                    samples[name].append(sample)
                assert not growing.done(), "the chain has stopped growing"
                for part in world.parts:
                    assert not part.has_ended(), f"{part.name} ended: {part.process.output()[-1000:]}"
                await asyncio.sleep(SAMPLE_EVERY_S)
        growing.cancel()
        slot_no = (await world.rows(f"SELECT slot_no FROM chain_{worlds.NETWORK}.tip"))[0]["slot_no"]  # noqa: S608
        behind = sum(block.slot > slot_no for block in world.chain.blocks)
        print(
            f"{load.requests:,} requests in {minutes:g} minutes, {load.requests / minutes / 60:.0f} per second,"
            f" {load.broken} broken, {load.refused} refused; {behind} blocks behind at the end"
        )
        found = courses(samples, began, ended)
        lasting = {name for name, each in samples.items() if each[-1].at > ended - 60}
    show(found)
    for line in server_sizes(samples, began, ended):
        print(line)
    for name in sorted(name for name in samples.keys() - lasting if not name.startswith(SERVER_NAMES)):
        print(f"{name} did not live to the end")
    return all(course.flat for course in found) and not load.broken and behind <= 2


def show(found: list[Course]) -> None:
    """Print a table of the courses."""
    print(f"{'process':34}{'memory, MiB':>29}{'growth':>9}{'descriptors':>14}")
    for course in found:
        first, between, last = (each / MIB for each in course.memory)
        print(
            f"{course.name:34}{first:9.1f} {between:9.1f} {last:9.1f}{course.growth:9.1%}"
            f"{course.descriptors[0]:7.0f} {course.descriptors[1]:6.0f}{'' if course.flat else '   GREW'}"
        )


def main(
    minutes: Annotated[float, typer.Option(min=0.5, help="Length of the run.")] = 60,
    rate: Annotated[float, typer.Option(min=1, help="Requests per second.")] = 200,
) -> None:
    """Run the service at the tip under load; exit status 1 if anything grows."""
    worlds.run_in_own_folder(
        "soak",
        lambda folder: uvloop.run(run(folder, minutes, rate)),
        "Everything stayed flat.",
        "Something grew, broke, or fell behind.",
    )


if __name__ == "__main__":
    typer.run(main)
