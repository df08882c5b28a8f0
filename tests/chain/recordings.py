"""The recorded files: real blocks of every era and network."""

import json
from dataclasses import dataclass
from itertools import islice

from devnet.blocks import Genesis, Recorded, read_genesis
from devnet.networks import BY_NAME
from tests.chain.harness import Json, blocks_of, recorded
from tests.chain.model_chain import Chain


@dataclass(frozen=True)
class File:
    """A recorded file, and its genesis outputs if it begins at the origin.

    Tests of every file use only the `first` blocks, if that is set; another test plays all.
    """

    name: str
    network: str
    genesis: str | None = None
    first: int | None = None

    def blocks(self) -> list[Json]:
        return list(islice(blocks_of(recorded(self.name)), self.first))

    def model(self) -> Chain:
        outputs = json.loads(recorded(self.genesis).read_bytes()) if self.genesis else ()
        return Chain(self.network, outputs).feed(self.blocks())

    def played(self) -> Recorded:
        genesis = read_genesis(recorded(self.genesis)) if self.genesis else Genesis()
        return Recorded(recorded(self.name), BY_NAME[self.network], genesis, self.first)


FILES = {
    "byron": File("mainnet-byron-from-genesis.jsonl.xz", "mainnet", "genesis-mainnet-vouchers.json"),
    "allegra": File("mainnet-allegra.jsonl.xz", "mainnet"),
    "babbage": File("preprod-babbage.jsonl.xz", "preprod"),
    "conway": File("mainnet-conway.jsonl.xz", "mainnet"),
    "conway-defaults": File("mainnet-conway-defaults.jsonl.xz", "mainnet"),
    "preview": File("preview-from-genesis.jsonl.xz", "preview", "genesis-preview-outputs.json", first=1_500),
    "pools": File("preview-pools.jsonl.xz", "preview"),
    "tokens": File("preview-tokens.jsonl.xz", "preview"),
    "reference-tokens": File("preview-reference-tokens.jsonl.xz", "preview"),
}
