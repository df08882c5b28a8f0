"""The only place that decides between bulk and live.

An index is in one of four phases. In the database, `tip` has no row (empty), or its `phase` is 'bulk' with
`finalize_step` 0 (bulk) or above (finishing), or 'live':

    EMPTY      Nothing is indexed. The first batch decides: BULK if the node's tip is far ahead of it, else LIVE.
    BULK       Histories and amounts are staged without indexes, and nothing can be queried. After the first batch a
               second process decodes.
    FINISHING  Some of the steps that end bulk are committed. The others follow before any block is written or undone.
    LIVE       Each commit leaves every table current. Only erasing the index returns it to EMPTY.

Bulk ends SECURITY_PARAMETER blocks before the node's tip, so that a node that follows the protocol never rolls back
into the blocks of bulk. A rollback to the origin erases the index; any other leaves the phase as it is.
"""

from enum import Enum, auto

from indexer.store.position import IndexPosition
from indexer.sync.batches import Batch
from shared.ledger import SECURITY_PARAMETER

BULK_FROM_BLOCKS = 2 * SECURITY_PARAMETER
"""An empty index begins in bulk if it is further than this behind the node's tip: only then does bulk pay off."""


class Phase(Enum):
    """The phases of an index; see the module's docstring."""

    EMPTY = auto()
    BULK = auto()
    FINISHING = auto()
    LIVE = auto()


def of(position: IndexPosition | None) -> Phase:
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
