"""`python -m bench.verify`: the time to compare every derived figure with history.

The chain of `bench.index`, indexed in bulk, is verified by one process and by one per core.
"""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import databases, machine
from bench.chain import BLOCK_TRANSACTIONS
from bench.index import fill, make_chain
from bench.processes import apart
from bench.verify import timed
from shared import servers, settings


async def _measure(transactions: int, seed: int) -> None:
    console = Console()
    table = Table("processes", "s", "transactions/s", title=f"{transactions:,} transactions")
    for column in table.columns:
        column.justify = "right"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.jsonl"
        make_chain(path, transactions, seed)
        async with (
            servers.running(settings.read(), valkey=False) as running,
            databases.fresh(running.database_url) as url,
        ):
            console.print(machine.describe(await machine.postgres_version(url)))
            await apart(fill, url, path, transactions)
            for processes in sorted({1, os.cpu_count() or 1}):
                took_s = await timed(url, processes)
                table.add_row(str(processes), f"{took_s:.1f}", f"{transactions / took_s:,.0f}")
    console.print(table)


def main(
    transactions: Annotated[int, typer.Option(min=10_000, help="Length of the chain.")] = 500_000,
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
) -> None:
    """Measure verification."""
    asyncio.run(_measure(transactions - transactions % BLOCK_TRANSACTIONS, seed))


if __name__ == "__main__":
    typer.run(main)
