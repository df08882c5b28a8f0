"""`python -m devnet`: play a chain as Ogmios does, or write a generated one to a file."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from devnet import networks
from devnet.blocks import Chain, Recorded, read_genesis
from devnet.dialect import Dialect
from devnet.server import Server

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command()
def serve(
    network: Annotated[str, typer.Option(help="mainnet, preview or preprod")] = "preview",
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port to listen on, 0 for any")] = 1337,
    blocks: Annotated[int | None, typer.Option(help="blocks there at the start; all of a file if unset")] = None,
    pace: Annotated[float, typer.Option(help="blocks per second from then on")] = 0.0,
    file: Annotated[Path | None, typer.Option(help="recorded blocks, .jsonl or .jsonl.xz, instead of generated")] = None,
    genesis: Annotated[Path | None, typer.Option(help="genesis outputs of the file, as JSON")] = None,
    ogmios: Annotated[str, typer.Option(help="version to speak: 6.11 to 6.14, 6 for the last of them, or 7")] = "6",
    cbor: Annotated[bool, typer.Option(help="with --include-transaction-cbor and --include-metadata-cbor")] = True,
    detailed: Annotated[bool, typer.Option(help="with --metadata-detailed-schema")] = False,
) -> None:
    """Play a chain over WebSocket until SIGTERM or Ctrl-C."""
    dialect = Dialect(_version(ogmios), transaction_cbor=cbor, metadata_cbor=cbor, detailed=detailed)
    known = read_genesis(genesis) if genesis else None
    assert file
    chain = Recorded(file, networks.BY_NAME[network], known, blocks)
    uvloop.run(_play(chain, host, port, dialect, pace))


async def _play(chain: Chain, host: str, port: int, dialect: Dialect, pace: float) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Server(chain, host=host, port=port, dialect=dialect) as node:
        typer.echo(f"{node.url} {chain.network.name} blocks={len(node.blocks)}")
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), 1 / pace if pace else None)
            except TimeoutError:
                node.grow()


def _version(text: str) -> tuple[int, int]:
    known = {"6": (6, 14), "7": (7, 0), "6.11": (6, 11), "6.12": (6, 12), "6.13": (6, 13), "6.14": (6, 14)}
    if text not in known:
        raise typer.BadParameter(f"{text} is none of {', '.join(known)}", param_hint="--ogmios")
    return known[text]


if __name__ == "__main__":
    app()
