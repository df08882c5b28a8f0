"""`python -m tests.campaigns.boundaries`: the index has what its node's ledger has at each boundary of 200 epochs.

An indexer in this process follows a generated chain. At the first block of each epoch, and again once the epoch's
rewards are read, everything that the node can tell of its ledger is compared with the index, as by `verify
--against-node`.

- `--network preview`: from protocol 8 through 9 and 10 to 11, a quarter of the epochs each.
- `--network preprod`: from Byron on through all eras, with vouchers that nobody redeems, then Conway with the same
  forks. The chain jumps to the epochs in which preprod's eras began.
"""

import asyncio
import sys
from collections import Counter
from typing import Annotated

import typer

from devnet.generator import Generated, Options
from devnet.networks import BY_NAME
from shared import database, log, schema, servers, settings
from shared.network import by_name
from shared.network_state import Comparison
from tests.campaigns import world as worlds
from tests.chain.boundaries import differences_at_each_boundary


def options_of(network: str, epochs: int, seed: int) -> tuple[Options, int]:
    """The options of a chain that has `epochs` epochs, and its last epoch."""
    if BY_NAME[network].byron_epochs:
        eras = BY_NAME[network].eras
        conway = dict(eras)["conway"]
        left = max(epochs - 2 * (len(eras) - 1), 3)
        forks = ((10, conway + left // 3), (11, conway + 2 * left // 3))
        options = Options(seed=seed, network=network, blocks_per_epoch=4, density=3, plain=0.2, eras=eras, forks=forks)
        return options, conway + left - 1
    first, second, third = epochs // 4, epochs // 2, 3 * epochs // 4
    eras = (("babbage", 0), ("conway", first))
    options = Options(
        seed=seed,
        network=network,
        blocks_per_epoch=4,
        density=3,
        plain=0.2,
        era_epochs=epochs,
        eras=eras,
        forks=((10, second), (11, third)),
    )
    return options, epochs - 1


def main(
    epochs: Annotated[int, typer.Option(min=8, help="Epochs of the chain.")] = 200,
    network: Annotated[str, typer.Option(help="preview or preprod; preprod begins in Byron.")] = "preview",
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
) -> None:
    """Compare at every boundary; exit status 1 if anything differs."""
    log.configure("error", "console")
    with worlds.own_folder("boundaries") as folder:
        wrong = asyncio.run(run(str(folder), *options_of(network, epochs, seed)))
    for each in wrong:
        print(each)
    sys.exit(1 if wrong else 0)


async def run(folder: str, options: Options, last_epoch: int) -> list[str]:
    """The differences; prints what was compared."""
    compared, boundaries = Counter[str](), 0

    def tell(epoch: int, found: list[Comparison]) -> None:
        nonlocal boundaries
        boundaries += 1
        compared.update({each.kind: each.compared for each in found})
        if boundaries % 20 == 0:
            print(f"epoch {epoch}: {boundaries} boundaries, {compared.total():,} values", flush=True)

    chosen = settings.read({"DATA_DIR": folder, "LOG_LEVEL": "error"})
    async with servers.running(chosen, valkey=False) as running:
        db = await database.connect(running.database_url, by_name[options.network])
        await schema.migrate(db)
        await db.close()
        chain = Generated(options, 1)
        wrong = await differences_at_each_boundary(running.database_url, chain, last_epoch, tell)
    print(f"{boundaries} boundaries, {len(chain.blocks)} blocks, {len(wrong)} differences. Compared:")
    for kind, values in sorted(compared.items()):
        print(f"  {kind}: {values:,}")
    return wrong


if __name__ == "__main__":
    typer.run(main)
