"""Record blocks of a real Ogmios in a file for `devnet serve`, one JSON block per line."""

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO

from indexer.ogmios.connection import Ogmios
from shared.ledger import Point


class NotRecorded(Exception):
    """The node's chain lacks the start, or has changed to a fork: a file would contain blocks that don't connect."""


async def record(
    node: Ogmios, start: Point | None, from_slot: int, blocks: int, out: Path, tell: Callable[[int], None]
) -> None:
    """Write `blocks` blocks at or after `from_slot` to `out`, compressed if its name ends in `.xz`.

    Reading begins after `start`, a block before `from_slot` (None: the origin). The file appears when it is complete.
    `tell` is called with the number of written blocks. At the node's tip this waits for new blocks. Raises NotRecorded,
    and the errors of `raw_blocks`.
    """
    common, _ = await node.intersect([] if start is None else [start])
    if common != start:
        raise NotRecorded(f"the node does not have {start}, the last indexed block before slot {from_slot}")
    unfinished = out.with_name(out.name + ".part")
    try:
        with _opened(unfinished, compressed=out.suffix == ".xz") as file:
            await _write(node, from_slot, blocks, file, tell)
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


async def _write(node: Ogmios, from_slot: int, blocks: int, file: IO[bytes], tell: Callable[[int], None]) -> None:
    written = 0
    async for block in node.raw_blocks():
        if block is None:
            if written:
                raise NotRecorded(f"the node rolled back after {written} of {blocks} blocks were read: record again")
            continue
        slot_no, line = block
        # An epoch boundary block has no slot; it is recorded if the block before it was.
        if written or (slot_no is not None and slot_no >= from_slot) or from_slot == 0:
            file.write(line + b"\n")
            written += 1
            tell(written)
            if written == blocks:
                return


def _opened(path: Path, *, compressed: bool) -> IO[bytes]:
    return lzma.open(path, "wb") if compressed else path.open("wb")
