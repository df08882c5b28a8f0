"""Open a session with a node: check the node, prepare the index, and find the intersection."""

import asyncio

import asyncpg
import msgspec
import structlog

from indexer.blocks import eras, genesis
from indexer.ledger import answers, reader
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.rows.value_check import Deposits
from indexer.store import beginning, finish_bulk, position
from indexer.sync import phase
from shared import lifecycle
from shared.ledger import SECURITY_PARAMETER, Point
from shared.network import Network
from shared.phase import Phase

log = structlog.get_logger()


class NodeSession(msgspec.Struct, frozen=True):
    """The facts of a connection to a node.

    `intersection` is the last block that the node's chain and ours share, None for the origin; the node continues from
    there, and `node_tip` was its tip. `phase` is the phase of the index when the session opened. `deposits` are those
    of the genesis.
    """

    network: Network
    node: ogmios.Ogmios
    intersection: Point | None
    node_tip: frames.NodePoint | None
    phase: Phase
    deposits: Deposits

    def is_older_than(self, point: Point) -> bool:
        """Whether the epoch of a block began after the session opened, so that protocol parameters may have changed."""
        epoch_of = self.network.epoch_of
        return self.node_tip is None or epoch_of(self.node_tip.slot) < epoch_of(point.slot_no)


class OutdatedSession(Exception):
    """A block takes deposits that only a change by governance after the session opened can explain."""


class RollbackTooDeep(Exception):
    """Following the node would discard blocks that no node of this chain rolls back."""

    def __init__(self, network: Network, where: str, slot_no: int) -> None:
        super().__init__(
            f"{where}; nodes of one chain roll back {SECURITY_PARAMETER:,} blocks at most. Nothing was removed. "
            "Connect to a node of our chain or, to discard our blocks and follow this one, run "
            f"`python -m indexer resync --network {network.name} --from-slot {slot_no} --yes`"
        )


class NodeUnfit(msgspec.Struct, frozen=True):
    """The node is not followed now, for a reason that may pass: it has answered, and `node_tip` is its tip if known."""

    reason: str
    node_tip: frames.NodePoint | None = None

    def __str__(self) -> str:
        return self.reason


async def open_session(
    node: ogmios.Ogmios, network: Network, writer: asyncpg.Connection, most_undone: int | None = None
) -> NodeSession | NodeUnfit:
    """Check the node's eras and genesis, prepare the index, and find the intersection.

    An empty index gets the genesis, any other a new numbering. If the index is finishing, the remaining steps are run.
    If there are other nodes, `most_undone` is set: one that is behind the index, or whose chain lacks more blocks of
    ours, is unfit.

    Raises genesis.WrongNetwork, RollbackTooDeep, and the errors of the node and the database.
    """
    await eras.check(node, network)
    try:
        configured = await _genesis(node, network, wait=most_undone is None)
    except ogmios.Refused as cause:
        return NodeUnfit(f"the node does not give its genesis configurations: {cause}")
    index = await position.read(writer)
    index_phase = phase.current(index)
    if index is None:
        await beginning.begin(writer, network, configured)
    else:
        await beginning.renumber(writer)
        if index_phase is Phase.FINISHING:
            await finish_bulk.finalize(writer, index.finalize_step)
            index_phase = Phase.LIVE
    # NOTE: with a point at that depth, a node that lacks no more blocks does not seem to lack more.
    depths = () if most_undone is None else (most_undone,)
    point, node_tip = await node.intersect(await position.points(writer, *depths))
    if index is not None:
        reason = await _unfit(writer, network, index, point, node_tip, most_undone)
        if reason is not None:
            return NodeUnfit(reason, node_tip)
    deposits = await _deposits(node, configured)  # after node_tip, so that they are not older than its epoch
    log.info("follow.intersected", network=network.name, at="the origin" if point is None else str(point))
    return NodeSession(network, node, point, node_tip, index_phase, deposits)


async def _genesis(node: ogmios.Ogmios, network: Network, *, wait: bool) -> genesis.Genesis:
    """The genesis. Raises Refused, unless it is to wait."""
    if not wait:
        return await genesis.load(node, network)
    return await lifecycle.wait_for(
        "the node's genesis configurations, which are available once its ledger has left Byron",
        lambda: genesis.load(node, network),
        asyncio.Event(),  # the caller cancels the session
        (ogmios.Refused,),
    )


async def _unfit(
    db: asyncpg.Connection,
    network: Network,
    index: position.IndexPosition,
    common: Point | None,
    node_tip: frames.NodePoint | None,
    most_undone: int | None,
) -> str | None:
    """Why a node is not followed now, None if it is. `common` is the last block that its chain and ours share.

    Raises RollbackTooDeep.
    """
    is_lower = node_tip is None or node_tip.height < index.block_no
    stands = f"the node is at {_height(node_tip)} and the index at block {index.block_no}"
    if most_undone is not None:
        if is_lower:
            return f"{stands}: other nodes are tried before it is followed back"
        depth = index.block_no - (-1 if common is None else (await position.our_block(db, common)).block_no)
        if depth > most_undone:
            return f"the node's chain lacks the last {depth:,} blocks of ours"
        return None
    try:
        await check_depth(db, network, common)
    except RollbackTooDeep:
        if not is_lower:
            raise
        return (
            f"{stands}: waiting for the node. "
            f"While it is lower, only `python -m indexer resync` rolls back more than {SECURITY_PARAMETER} blocks"
        )
    return None


async def _deposits(node: ogmios.Ogmios, configured: genesis.Genesis) -> Deposits:
    """The deposits of the genesis, and whether today's differ, if the node reports its protocol parameters.

    A change during a session raises OutdatedSession at the first certificate that it affects.
    """
    first = Deposits(configured.stake_deposit, configured.pool_deposit)
    try:
        today = await reader.or_none(node, "queryLedgerState/protocolParameters", answers.Parameters)
    except frames.Unreadable as cause:  # following does not need them
        log.warning("deposits.unknown", cause=str(cause))
        return first
    if today is None or today.stake_credential_deposit is None:
        return first
    last = Deposits(frames.lovelace(today.stake_credential_deposit), frames.lovelace(today.stake_pool_deposit))
    return msgspec.structs.replace(first, changed=last != first)


async def check_depth(db: asyncpg.Connection, network: Network, common: Point | None) -> Point:
    """Return `common`, the last block that the node's chain and ours share, None for none, if following is safe.

    Raises RollbackTooDeep if it would discard all blocks, or more than SECURITY_PARAMETER.
    """
    index = await position.read(db)
    assert index is not None, "something is indexed"
    if common is None:
        raise RollbackTooDeep(network, f"the node shares no block with our chain up to block {index.block_no:,}", 0)
    depth = index.block_no - (await position.our_block(db, common)).block_no
    if depth > SECURITY_PARAMETER:
        where = f"the last block that the node shares with us is {common}, {depth:,} blocks below our tip"
        raise RollbackTooDeep(network, where, common.slot_no)
    return common


def _height(tip: frames.NodePoint | None) -> str:
    return "the origin" if tip is None else f"block {tip.height}"
