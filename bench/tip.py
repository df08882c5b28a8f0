"""`python -m bench.tip`: the cost of a block, a rollback, a fork and the first block of an epoch at the tip.

Times are from the node's message to the resulting commit, in a small index that nothing else uses. `bench.growth`
measures the same in large ones.
"""

import asyncio
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from bench import checkpoint, databases, growth_tables, live, machine
from bench.chain import BLOCK_TRANSACTIONS, Chain
from bench.index import genesis_path, read_block
from bench.processes import apart
from shared import servers, settings
from shared.ledger import SECURITY_PARAMETER

_AT_ONCE = 100  # blocks


async def append(url: str, chain: Path, before: Path) -> None:
    """Index blocks live, from the first one on."""
    async with live.following(url, chain) as indexer:
        with before.open("rb") as file:
            while messages := [read_block(frame) for frame in islice(file, _AT_ONCE)]:
                await indexer.take(*messages)


async def _measure(transactions: int, seed: int) -> None:
    console = Console()
    with TemporaryDirectory(prefix="bench_") as name:
        folder = Path(name)
        async with servers.running(settings.read(), valkey=False) as running:
            console.print(machine.describe(await machine.postgres_version(running.database_url)))
            made, chain, before = Chain(seed), folder / "chain", folder / "chain.before"
            genesis_path(chain).write_bytes(msgspec.json.encode(made.genesis))
            checkpoint.write(before, made.frames(transactions))
            branches = checkpoint.branches(seed, made.save(), before, folder, SECURITY_PARAMETER)
            async with databases.fresh(running.database_url) as url:
                await apart(append, url, chain, before)
                at_tip = await apart(checkpoint.at_tip, url, chain, branches)
    console.print(growth_tables.of_tip(at_tip))


def main(
    transactions: Annotated[int, typer.Option(min=1_000, help="Transactions in the index at the start.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
) -> None:
    """Measure blocks, rollbacks and forks at the tip."""
    asyncio.run(_measure(transactions - transactions % BLOCK_TRANSACTIONS, seed))


if __name__ == "__main__":
    typer.run(main)
