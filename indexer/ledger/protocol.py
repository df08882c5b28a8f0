"""Which rules of Conway apply: those of protocol 9, or those of protocol 10 and later.

Blocks show their era, and Conway is protocol 9, 10 and 11. (A header has the version that its producer supports, which
may be higher and lower than the ledger's: Conway's rule BBODY refuses only what is two higher, and only on mainnet.)
So an index that does not have the fork yet asks the node at the first block of each epoch of Conway. A node has the
ledger state of its last 2,160 blocks; for older ones the epochs in shared/network.py decide (docs/decisions/0054).
"""

import structlog

from indexer.ledger import answers
from indexer.ledger.reader import NotThere, acquire
from indexer.ogmios.connection import Connect, Ogmios, Refused
from indexer.store.votes import FORK
from shared.ledger import BEFORE_CONWAY, Point
from shared.network import Network

log = structlog.get_logger()

_FIRST_MAJOR_OF_CONWAY = 9


async def forked_to(network: Network, era: str, point: Point, connect: Connect) -> int | None:
    """The major version after the first block of an epoch, at `point`, if it is 10 or later.

    Raises frames.Unreadable and the errors of a lost connection.
    """
    if era in BEFORE_CONWAY:
        return None
    epoch_no = network.epoch_of(point.slot_no)
    later = era != "conway" or epoch_no >= network.protocol_10_epoch
    expected = FORK if later else _FIRST_MAJOR_OF_CONWAY
    told = await _told(point, connect)
    if told is not None and (told < FORK) != (expected < FORK):
        log.warning("protocol.unexpected", network=network.name, epoch_no=epoch_no, major=told, expected=expected)
    major = expected if told is None else told
    if major < FORK:
        return None
    log.info("protocol.forked", network=network.name, epoch_no=epoch_no, major=major, by_node=told is not None)
    return major


async def _told(point: Point, connect: Connect) -> int | None:
    """The major version in the node's ledger state at a point, None if it has none there."""
    node = await connect()
    try:
        return await version_at(node, point)
    except (NotThere, Refused):
        return None
    finally:
        await node.close()


async def version_at(node: Ogmios, point: Point) -> int:
    """The major version in the node's ledger state at a point. Raises NotThere, Refused and frames.Unreadable."""
    await acquire(node, point)
    parameters: answers.Parameters = await node.call("queryLedgerState/protocolParameters", answers.Parameters)
    return parameters.version.major
