"""`python -m devnet`: play a chain as Ogmios does, or write a generated one to a file."""

import asyncio
import signal
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from devnet import blocks as recorded
from devnet import networks
from devnet.blocks import Chain, Recorded
from devnet.dialect import Dialect
from devnet.generator import Generated, options_of
from devnet.ledger import genesis_outputs
from devnet.server import Server

app = typer.Typer(add_completion=False, no_args_is_help=True)

_VERSIONS = {"6": (6, 14), "7": (7, 0), "6.11": (6, 11), "6.12": (6, 12), "6.13": (6, 13), "6.14": (6, 14)}
_BLOCKS = 3_000
_FORK_DEPTH = 5

NetworkName = Annotated[str, typer.Option(help="mainnet, preview or preprod")]
Seed = Annotated[int, typer.Option(help="what a generated chain is made from")]
Density = Annotated[float, typer.Option(help="mean number of transactions in a generated block")]
Version = Annotated[str, typer.Option(help="Ogmios to speak like: 6.11 to 6.14, 6 for the last of them, or 7")]


@app.command()
def serve(
    network: NetworkName = "preview",
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port to listen on, 0 for any")] = 1337,
    seed: Seed = 7,
    density: Density = 5.0,
    blocks: Annotated[int | None, typer.Option(help="blocks there at the start: 3,000, or all of a file")] = None,
    pace: Annotated[float, typer.Option(help="blocks per second from then on")] = 0.0,
    fork_every: Annotated[int, typer.Option(help="switch to a fork after so many new blocks, 0 for never")] = 0,
    file: Annotated[Path | None, typer.Option(help="recorded blocks, .jsonl or .jsonl.xz, instead of a seed")] = None,
    genesis: Annotated[Path | None, typer.Option(help="genesis outputs of the file, as JSON")] = None,
    ogmios: Version = "6",
    cbor: Annotated[bool, typer.Option(help="with --include-transaction-cbor and --include-metadata-cbor")] = True,
    detailed: Annotated[bool, typer.Option(help="with --metadata-detailed-schema")] = False,
) -> None:
    """Play a chain over WebSocket until SIGTERM or Ctrl-C."""
    dialect = Dialect(_version(ogmios), transaction_cbor=cbor, metadata_cbor=cbor, detailed=detailed)
    chain: Chain
    if file:
        known = recorded.read_genesis(genesis) if genesis else None
        chain = Recorded(file, _network(network), known, blocks)
    else:
        options = options_of(_network(network).name, seed=seed, density=density)
        chain = Generated(options, _BLOCKS if blocks is None else blocks)
    uvloop.run(_play(Server(chain, host=host, port=port, dialect=dialect), pace, fork_every))


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="file to write, .jsonl or .jsonl.xz")],
    network: NetworkName = "preview",
    seed: Seed = 7,
    density: Density = 5.0,
    blocks: Annotated[int, typer.Option(help="blocks to make")] = _BLOCKS,
    ogmios: Version = "6",
) -> None:
    """Write a generated chain to a file, one block a line, and its genesis outputs beside it."""
    dialect = Dialect(_version(ogmios))
    chain = Generated(options_of(_network(network).name, seed=seed, density=density), blocks)
    recorded.write(out, [dialect.block(block.content) for block in chain.blocks])
    beside = out.with_name(out.name.partition(".")[0] + "-genesis.json")
    recorded.write_genesis(beside, list(genesis_outputs(chain.network, chain.genesis)))


async def _play(node: Server, pace: float, fork_every: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with node:
        typer.echo(f"{node.url} {node.chain.network.name} blocks={len(node.blocks)}")
        for turn in count(1):
            try:
                await asyncio.wait_for(stop.wait(), 1 / pace if pace else None)
                return
            except TimeoutError:
                if fork_every and turn % fork_every == 0:
                    _fork(node, turn)
                else:
                    node.grow()


def _fork(node: Server, seed: int) -> None:
    """Replace the last blocks by one more: others where the chain is generated, the same over again where recorded."""
    ancestor = max(len(node.blocks) - 1 - _FORK_DEPTH, -1)
    if isinstance(node.chain, Generated):
        node.switch(node.chain.fork(ancestor, seed, _FORK_DEPTH + 1))
    else:
        node.fork(ancestor, node.blocks[ancestor + 1 :])


def _version(text: str) -> tuple[int, int]:
    if text not in _VERSIONS:
        raise typer.BadParameter(f"{text} is none of {', '.join(_VERSIONS)}", param_hint="--ogmios")
    return _VERSIONS[text]


def _network(name: str) -> networks.Network:
    if name not in networks.BY_NAME:
        raise typer.BadParameter(f"{name} is none of {', '.join(networks.BY_NAME)}", param_hint="--network")
    return networks.BY_NAME[name]


if __name__ == "__main__":
    app()
