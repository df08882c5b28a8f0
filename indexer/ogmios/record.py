"""Record blocks of a real Ogmios in a file for `devnet serve`, one JSON block per line."""

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO

from indexer.ogmios.connection import Ogmios
from shared.ledger import Point


async def record(
    node: Ogmios, start: Point | None, from_slot: int, blocks: int, out: Path, tell: Callable[[int], None]
) -> None:
    """Write `blocks` blocks at or after `from_slot` to `out`, compressed if its name ends in `.xz`.

    Reading begins after `start`, a block before `from_slot` (None: the origin). The file appears when it is complete.
    `tell` is called with the number of written blocks. At the node's tip this waits for new blocks. Raises
    ogmios.Refused.
    """
    await node.intersect([] if start is None else [start])
    unfinished = out.with_name(out.name + ".part")
    written = 0
    with _opened(unfinished, compressed=out.suffix == ".xz") as file:
        async for slot_no, line in node.raw_blocks():
            # An epoch boundary block has no slot; it is recorded if the block before it was.
            if written or (slot_no is not None and slot_no >= from_slot) or from_slot == 0:
                file.write(line + b"\n")
                written += 1
                tell(written)
                if written == blocks:
                    break
    unfinished.replace(out)


def _opened(path: Path, *, compressed: bool) -> IO[bytes]:
    return lzma.open(path, "wb") if compressed else path.open("wb")
