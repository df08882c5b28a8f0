"""The first blocks of preview, played by a node that grows on request."""

from devnet.blocks import Recorded, read_genesis
from devnet.networks import PREVIEW
from tests.chain.harness import recorded

FILE, GENESIS = "preview-from-genesis.jsonl.xz", "genesis-preview-outputs.json"


def preview(visible: int) -> Recorded:
    return Recorded(recorded(FILE), PREVIEW, read_genesis(recorded(GENESIS)), visible=visible)
