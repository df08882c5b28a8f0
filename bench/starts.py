"""The start-up time of each process, and its memory after the start."""

import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec
import psutil
from rich.table import Table

_WITHIN_S = 60.0
_NOWHERE = "ws://127.0.0.1:9"  # the port of discard, where nothing listens

# The event that each process logs once it has started; the indexer then waits for a node.
_PROCESSES = {
    "API": (("api", "--port", "0"), "api.listening"),
    "usage aggregator": (("dramatiq", "api.worker", "-p", "1", "-t", "2"), "aggregator.ready"),
    "indexer": (("indexer", "run", "--network", "mainnet", "--ogmios-url", _NOWHERE), "waiting"),
}


async def table(url: str, redis_url: str, folder: Path) -> Table:
    """Start each process once to warm up, and once to measure."""
    shown = Table("process", "start s", "CPU s", "memory MB", title="start of each process")
    for column in shown.columns[1:]:
        column.justify = "right"
    environment = os.environ | {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "DATA_DIR": str(folder),
        "LOG_LEVEL": "info",
        "LOG_FORMAT": "json",
    }
    for name, (command, event) in _PROCESSES.items():
        await _start(command, event, environment)
        took_s, cpu_s, memory_mb = await _start(command, event, environment)
        shown.add_row(name, f"{took_s:.2f}", f"{cpu_s:.2f}", " + ".join(f"{part:.0f}" for part in memory_mb))
    return shown


async def _start(command: tuple[str, ...], event: str, environment: dict[str, str]) -> tuple[float, float, list[float]]:
    """The seconds until a process logs an event, and the CPU seconds and memory of the process and its children."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 24,  # of a line
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_WITHIN_S):
            lines = []
            async for line in process.stdout:
                lines.append(line.decode())
                if line.startswith(b"{") and msgspec.json.decode(line).get("event") == event:
                    break
            else:
                raise RuntimeError(f"{' '.join(command)} ended: {''.join(lines)}")
        took_s = time.perf_counter() - began
        started = psutil.Process(process.pid)
        family = [started, *started.children(recursive=True)]
        cpu_s = sum(sum(member.cpu_times()[:2]) for member in family)
        return took_s, cpu_s, [member.memory_info().rss / 2**20 for member in family]
    finally:
        process.terminate()
        await process.communicate()
