"""`python -m api networks`: list the networks, and retire one that has no indexer on purpose."""

from typing import Annotated

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from api.commands.database import on_database
from shared import leader, lifecycle, network_state
from shared import settings as environment
from shared.command import EmbeddedOption
from shared.network import NETWORKS, Network, by_name
from shared.network_state import NetworkState

commands = typer.Typer(help="List networks, and retire one that has no indexer on purpose.", no_args_is_help=True)


@commands.command("list")
def listed(embedded: EmbeddedOption = False) -> None:
    """Show each network with an index, or that an indexer has led: phase, last block, indexer and node."""

    async def read(db: asyncpg.Connection) -> list[NetworkState]:
        return [await _state(db, network) for network in NETWORKS]

    table = Table("network", "state", "block", "age", "indexer", "node")
    for state in on_database(read, create=embedded):
        if not state.known:
            continue
        table.add_row(
            state.network,
            "retired" if state.retired else state.phase,
            "" if state.block_no is None else f"{state.block_no:,}",
            "" if state.tip_age_s is None else network_state.duration(state.tip_age_s),
            "running" if state.indexer_running else "none",
            state.node,
        )
    Console().print(table)


@commands.command()
def retire(
    name: Annotated[str, typer.Argument(metavar="NETWORK", help=f"{', '.join(by_name)}")],
    embedded: EmbeddedOption = False,
) -> None:
    """Retire a network whose indexer was stopped deliberately: /ready and /metrics omit it, /ready/NETWORK is 503.

    Its data stay, and chain requests are answered as of its last block. To undo it, start an indexer of the network.
    """
    network = by_name.get(name)
    if network is None:
        raise typer.Exit(lifecycle.fail(f"NETWORK is {name!r}, expected one of {', '.join(by_name)}"))

    async def leave_out(db: asyncpg.Connection) -> str | None:
        state = await _state(db, network)
        if state.indexer_running:
            return f"an indexer is running for {name}: stop it first"
        if not state.known:
            return f"{name} has no index, and no indexer has served it"
        await leader.retire(db, network)
        return None

    if refused := on_database(leave_out, create=embedded):
        raise typer.Exit(lifecycle.fail(refused))
    typer.echo(f"{name} is retired: omitted from /ready and /metrics until an indexer for it runs again")


async def _state(db: asyncpg.Connection, network: Network) -> NetworkState:
    heartbeat = (await leader.last_heartbeats(db))[network.network_id]
    await db.execute(f"SET search_path = {network.schema}")
    return network_state.derive(network, await network_state.index_state(db), heartbeat, environment.read().ready_lag_s)
