"""Check that a block is the next one of our chain."""

from collections.abc import Sequence

import msgspec

from indexer.blocks.packed_block import PackedBlock, placed
from shared.ledger import Point
from shared.network import Network


class NotFollowing(Exception):
    """The node sent a block that does not continue our chain, or a rollback to a block that we do not have."""


class LastBlock(msgspec.Struct, frozen=True):
    """The last prepared or committed block; `ebb` if it is an epoch boundary block."""

    point: Point
    block_no: int
    era: str
    ebb: bool


def followed_by(tip: LastBlock | None, block: PackedBlock, network: Network) -> tuple[PackedBlock, LastBlock]:
    """The block and the new tip. An epoch boundary block gets the first slot of its epoch.

    Raises NotFollowing for a block that does not follow `tip`.
    """
    block = placed(block, None if tip is None else tip.point, network)
    if tip is not None:
        # An epoch boundary block has the height of the previous block, and may have the slot of the next one.
        height = tip.block_no if block.ebb else tip.block_no + 1
        earliest = tip.point.slot_no if tip.ebb else tip.point.slot_no + 1
        linked = block.ancestor == tip.point.block_hash.hex()
        if not linked or block.point.slot_no < earliest or block.block_no != height:
            raise NotFollowing(
                f"the node sent block {block.block_no} at {block.point} with ancestor {block.ancestor} after our "
                f"block {tip.block_no} at {tip.point}"
            )
    return block, last_of([block])


def last_of(blocks: Sequence[PackedBlock]) -> LastBlock:
    """The last of some blocks."""
    last = blocks[-1]
    return LastBlock(last.point, last.block_no, last.era, last.ebb)
