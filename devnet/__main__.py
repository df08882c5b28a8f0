"""`python -m devnet`: serve a chain as Ogmios does, or write a generated one to a file."""

import asyncio
import signal
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from devnet import blocks as recorded
from devnet import control, networks
from devnet.blocks import Chain, Recorded
from devnet.dialect import Dialect
from devnet.generator import Generated, Options, options_of, options_until_now
from devnet.ledger import genesis_outputs
from devnet.server import NodeServer
from shared import command
from shared.command import VersionOption

commands = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Play a generated or recorded chain as Ogmios does."
)

_VERSIONS = {"6": (6, 14), "7": (7, 0), "6.11": (6, 11), "6.12": (6, 12), "6.13": (6, 13), "6.14": (6, 14)}
_BLOCKS = 3_000


*_OTHERS, _LAST = networks.BY_NAME
NetworkName = Annotated[str, typer.Option(help=f"Network: {', '.join(_OTHERS)} or {_LAST}.")]
Seed = Annotated[int, typer.Option(help="Seed of the generated chain; the same seed gives the same chain.")]
Density = Annotated[float, typer.Option(help="Mean number of transactions per generated block.")]
Version = Annotated[str, typer.Option(help="Version of Ogmios to imitate: 6.11 to 6.14, 6 (means 6.14) or 7.")]


@commands.callback()
def _any_command(_version: VersionOption = False) -> None:
    pass


@commands.command()
def serve(
    network: NetworkName = "preview",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free port.")] = 1337,
    seed: Seed = 7,
    density: Density = 5.0,
    blocks: Annotated[int | None, typer.Option(help="Blocks at the start; default: 3,000, or all of the file.")] = None,
    pace: Annotated[float, typer.Option(help="New blocks per second; 0: the chain does not grow.")] = 0.0,
    fork_every: Annotated[int, typer.Option(help="Fork instead of growing at every Nth block; 0: never.")] = 0,
    on_time: Annotated[bool, typer.Option(help="Give new blocks the current time. Only for preview.")] = False,
    file: Annotated[Path | None, typer.Option(help="Serve the recorded blocks of this .jsonl[.xz] file.")] = None,
    genesis: Annotated[Path | None, typer.Option(help="Genesis outputs of the recorded chain, as JSON.")] = None,
    ogmios: Version = "6",
    cbor: Annotated[bool, typer.Option(help="Imitate --include-transaction-cbor and --include-metadata-cbor.")] = True,
    detailed: Annotated[bool, typer.Option(help="Imitate --metadata-detailed-schema.")] = False,
    control_port: Annotated[
        int | None, typer.Option(help="Port for `POST /grow`, `/fork`, `/stall` and `/resume`; 0 takes any free port.")
    ] = None,
    syncing: Annotated[
        bool, typer.Option(help="Imitate a node that is still syncing: in Byron it refuses Shelley's genesis.")
    ] = False,
) -> None:
    """Serve a chain over WebSocket until SIGTERM or Ctrl-C."""
    dialect = Dialect(_version(ogmios), transaction_cbor=cbor, metadata_cbor=cbor, detailed=detailed)
    chain: Chain
    if file:
        known = recorded.read_genesis(genesis) if genesis else None
        chain = Recorded(file, _network(network), known, blocks)
    else:
        chain = _generated(
            options_of(_network(network).name, seed=seed, density=density, faucet=True),
            _BLOCKS if blocks is None else blocks,
            on_time,
        )
    server = NodeServer(chain, host=host, port=port, dialect=dialect, syncing=syncing)
    uvloop.run(_serve(server, pace, fork_every, host, control_port))


@commands.command()
def make(
    out: Annotated[Path, typer.Option(help="File to write, .jsonl or .jsonl.xz.")],
    network: NetworkName = "preview",
    seed: Seed = 7,
    density: Density = 5.0,
    blocks: Annotated[int, typer.Option(help="Number of blocks.")] = _BLOCKS,
    ogmios: Version = "6",
) -> None:
    """Write a generated chain to a file, one block per line, and its genesis outputs to a second file next to it."""
    dialect = Dialect(_version(ogmios))
    chain = Generated(options_of(_network(network).name, seed=seed, density=density, faucet=True), blocks)
    recorded.write(out, [dialect.block(block.content) for block in chain.blocks])
    genesis = out.with_name(out.name.partition(".")[0] + "-genesis.json")
    recorded.write_genesis(genesis, list(genesis_outputs(chain.network, chain.genesis)))


def _generated(options: Options, blocks: int, on_time: bool) -> Generated:
    """A generated chain. With `on_time`, it ends now."""
    if not on_time:
        return Generated(options, blocks)
    if networks.BY_NAME[options.network].byron_epochs:
        raise typer.BadParameter("given, which works only with preview", param_hint="--on-time")
    chain = Generated(options_until_now(options, blocks), blocks)
    chain.on_time = True
    chain.grow()
    return chain


async def _serve(node: NodeServer, blocks_per_s: float, fork_every: int, host: str, control_port: int | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pace = control.Pace()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(node)
        controlled = ""
        if control_port is not None:
            url = await stack.enter_async_context(control.listening(node, pace, host, control_port))
            controlled = f" control={url}"
        typer.echo(f"{node.url} {node.chain.network.name} blocks={len(node.blocks)}{controlled}")
        for turn in count(1):
            try:
                await asyncio.wait_for(stop.wait(), 1 / blocks_per_s if blocks_per_s else None)
                return
            except TimeoutError:
                if pace.stalled:
                    continue
                if fork_every and turn % fork_every == 0:
                    control.fork(node, control.FORK_DEPTH)
                else:
                    node.grow()


def _version(text: str) -> tuple[int, int]:
    if text not in _VERSIONS:
        raise typer.BadParameter(f"{text!r}, expected one of {', '.join(_VERSIONS)}", param_hint="--ogmios")
    return _VERSIONS[text]


def _network(name: str) -> networks.Network:
    if name not in networks.BY_NAME:
        raise typer.BadParameter(f"{name!r}, expected one of {', '.join(networks.BY_NAME)}", param_hint="--network")
    return networks.BY_NAME[name]


if __name__ == "__main__":
    command.run(commands)
