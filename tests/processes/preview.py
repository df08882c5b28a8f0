"""The first blocks of preview, played by a node that grows on request."""

from devnet.blocks import Recorded, read_genesis
from devnet.networks import PREVIEW
from tests.chain.harness import recorded

FILE, GENESIS = "preview-from-genesis.jsonl.xz", "genesis-preview-outputs.json"


IN_VECTORS = 1_500  # blocks; only the whole recording has more


def preview(visible: int) -> Recorded:
    path = recorded(FILE, whole=visible > IN_VECTORS)
    return Recorded(path, PREVIEW, read_genesis(recorded(GENESIS)), visible=visible)
