"""Decides between bulk and live: in which phase an index begins, and when it leaves bulk.

Bulk ends SECURITY_PARAMETER blocks before the node's tip, so that a node that follows the protocol never rolls back
into the blocks of bulk. A rollback leaves the phase as it is. `resync` to slot 0 erases the index, which then is empty.
"""

from indexer.store.position import IndexPosition
from indexer.sync.batches import Batch
from shared.ledger import SECURITY_PARAMETER
from shared.phase import Phase

BULK_FROM_BLOCKS = 2 * SECURITY_PARAMETER
"""An empty index begins in bulk if it is further than this behind the node's tip: only then does bulk pay off."""


def current(position: IndexPosition | None) -> Phase:
    """The phase of an index at `position`."""
    if position is None:
        return Phase.EMPTY
    if not position.is_bulk:
        return Phase.LIVE
    return Phase.FINISHING if position.finalize_step else Phase.BULK


def begun_by(first: Batch) -> Phase:
    """The phase in which an empty index begins with this batch."""
    behind = first.blocks[-1].node_tip.height - first.blocks[0].block_no
    return Phase.BULK if behind > BULK_FROM_BLOCKS else Phase.LIVE


def ends_bulk(batch: Batch, phase: Phase) -> bool:
    """Whether the index must leave bulk before this batch is written."""
    return phase is Phase.BULK and batch.blocks[-1].blocks_to_tip < SECURITY_PARAMETER
