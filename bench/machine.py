"""A description of the machine that the figures were measured on."""

import os
import platform
from pathlib import Path

import asyncpg
import psutil


def describe(postgres: str | None) -> str:
    """The machine, Python and, if used, Postgres, in one line."""
    memory_gb = psutil.virtual_memory().total / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GB; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}" + (f"; PostgreSQL {postgres}" if postgres else "")
    )


async def postgres_version(url: str) -> str:
    """The server's version, without its build information."""
    db = await asyncpg.connect(url)
    try:
        return str(await db.fetchval("SHOW server_version")).split()[0]
    finally:
        await db.close()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
