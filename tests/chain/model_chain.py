"""The whole model: transactions, assets and pools of one chain, block by block."""

from collections.abc import Iterable

from tests.chain.model import Json, Ledger
from tests.chain.model_assets import Assets
from tests.chain.model_pools import Pools


class Chain:
    """A chain as fed so far. See model.py for what a model is and what it is not."""

    def __init__(self, network: str, genesis: Iterable[Json] = ()) -> None:
        self.ledger = Ledger(network, genesis)
        self.assets = Assets(self.ledger)
        self.pools = Pools(self.ledger)

    def forward(self, block: Json) -> None:
        self.pools.enter(self.ledger.clock.epoch_of(self.ledger.slot_of(block)))
        transactions = self.ledger.forward(block)
        self.assets.forward(transactions)
        self.pools.forward(block, transactions)

    def feed(self, blocks: Iterable[Json]) -> "Chain":
        for block in blocks:
            self.forward(block)
        return self
