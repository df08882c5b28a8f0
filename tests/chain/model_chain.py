"""The whole model: blocks, transactions, assets and pools of one chain, block by block."""

from collections.abc import Iterable
from hashlib import blake2b

import base58

from devnet.blocks import Genesis
from devnet.ledger import genesis_outputs
from devnet.networks import PREVIEW, Network
from devnet.parameters import PROTOCOL_MAJOR
from tests.chain.model import Json, Ledger, bech32_payload
from tests.chain.model_assets import Assets
from tests.chain.model_blocks import Blocks
from tests.chain.model_pools import Pools
from tests.chain.model_votes import FORKS, Forks

SINCE_ALONZO = [era for era, version in PROTOCOL_MAJOR.items() if version >= PROTOCOL_MAJOR["alonzo"]]
ERAS = tuple((era, 2 * place) for place, era in enumerate(SINCE_ALONZO))
"""Every era since Alonzo, each for two epochs."""


class Chain:
    """The chain so far. See model.py for the limits of a model. `forks` are those of the public network by default."""

    def __init__(self, network: str, genesis: Iterable[Json] = (), forks: Forks | None = None) -> None:
        self.ledger = Ledger(network, genesis)
        self.assets = Assets(self.ledger)
        self.pools = Pools(self.ledger, FORKS[network] if forks is None else forks)
        self.blocks = Blocks(self.ledger)

    def forward(self, block: Json) -> None:
        self.pools.enter(self.ledger.clock.epoch_of(self.ledger.slot_of(block)))
        transactions = self.ledger.forward(block)
        self.assets.forward(transactions)
        self.pools.forward(block, transactions)
        self.blocks.forward(block, transactions)

    def feed(self, blocks: Iterable[Json]) -> "Chain":
        for block in blocks:
            self.forward(block)
        return self


def genesis_of(genesis: Genesis, network: Network = PREVIEW) -> list[Json]:
    """Outputs that exist before the first block; their transaction's id is the hash of their address."""
    funds = dict(genesis_outputs(network, genesis))
    raws = {a: bech32_payload(a) if a.startswith("addr") else base58.b58decode(a) for a in funds}
    return [
        {"tx": blake2b(raws[address], digest_size=32).hexdigest(), "index": 0, "address": address, "lovelace": lovelace}
        for address, lovelace in funds.items()
    ]
