"""The state of a network: its index, its indexer and its node, compared with each other and with the clock.

The lag behind the node's tip does not show that the node is lost or has stopped, since the last tip heard is then ours.
So ages are by the clock, and figures that are unknown at the moment are None.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from shared import splits, sql
from shared.leader import LastHeartbeat
from shared.ledger import SECURITY_PARAMETER
from shared.network import Network
from shared.phase import Phase
from shared.splits import ChainSplit, NodeWord, WatchedNode

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
NodeState = Literal["followed", "syncing", "stalled", "lost", "unknown"]

ROLLBACK_DEPTHS = (1, 2, 5, 10, 20, 50, 100, 500, SECURITY_PARAMETER)
"""The upper bounds, in blocks, by which rollbacks are counted; the last is the longest that Cardano allows."""
DEEPER = 2**31 - 1
"""The bound of all deeper ones, which earlier versions followed."""
ROLLBACK_BOUNDS = (*ROLLBACK_DEPTHS, DEEPER)

_NODE_REASONS: dict[NodeWord, str] = {
    "behind": "is behind the index",
    "unreachable": "can't be reached",
    "wrong_network": "is on another network",
}
_IN_STEP_S = 120  # Ogmios and Kupo call a tip of this age synchronised
_AT_TIP_BLOCKS = 10
_LONG_LOCK_WAIT_S = 3


class IndexState(msgspec.Struct, frozen=True):
    """The state of an index. `phase` is one of Phase; `rollbacks` and `last_rollback_…` count the node's rollbacks, not
    those of `resync`.
    """

    phase: str
    slot_no: int
    block_no: int
    block_hash: bytes = b""
    first_block_no: int = 0
    tx_count: int = 0
    finalize_step: int = 0
    rollbacks: int = 0
    last_rollback_at: datetime | None = None
    last_rollback_blocks: int | None = None
    pools_stake_mismatch: int | None = None


class RollbackDepth(msgspec.Struct, frozen=True):
    """One histogram bucket of rollback depths: `rollbacks` of at most `blocks_at_most`, with `blocks` in total."""

    blocks_at_most: int
    rollbacks: int
    blocks: int


class Difference(msgspec.Struct, frozen=True):
    """An account, a pool or another thing, and its value in the index and in the node's ledger."""

    name: str
    ours: str
    node: str


class Comparison(msgspec.Struct, frozen=True):
    """What the index and the node's ledger have of one kind: how many values were compared at the end of the reading
    of `epoch_no`, how many of them differed, and the first of those.
    """

    kind: str
    epoch_no: int
    compared: int
    differing: int
    differences: list[Difference]


class NetworkState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one network. Times are in seconds, ages by the database's clock; null if unknown.

    `phase` is `empty` before the first block, `bulk` and `finishing` during the first sync, while chain endpoints
    answer 503, and then `live`. `tip_age_s` is the age of the last indexed block. `lag_blocks`, `lag_slots` and `lag_s`
    are the distance to the node's tip, null unless the node is connected. `network_synchronization` is Ogmios' and
    Kupo's: the share of the time since the network's start that the index covers, 1 if the last block is at most two
    minutes old. `sync_progress` is the share of the node's blocks that are indexed, and `sync_left_s` the time until
    all are, at the present rate; it is null at the tip.

    `node` is `followed`; `syncing` if its tip is old but moves; `stalled` if its tip is old and does not move although
    the node is connected; `lost` if it is not connected; `unknown` if no indexer runs, or while it finishes the first
    sync. `node_since` is when the node was connected or lost. `node_tip_age_s` is the age of the node's tip as
    last heard, and `node_tip_unmoved_s` the time since it changed.

    `indexer_running` is true while an indexer of this network sends heartbeats; `beat_age_s` is the age of the last
    one, and `failing_tasks` lists its background tasks that were failing then. `lock_wait_s` is how long its commit has
    waited for a lock that another session of the database holds, null if it does not wait. `refused` says why the last
    indexer has stopped by itself. `ready` is true if chain requests are answered from a block that is recent enough
    (READY_LAG_S), and not refused because of a split (ON_SPLIT). `retired` networks have no indexer on purpose.
    `pools_stake_mismatch` is the number of pools whose live stake differed from the node's at the last comparison (one
    per epoch). `nodes` are the nodes of OGMIOS_URL_…, if there are several, while the indexer is running and live;
    `splits` are those whose chain differs.
    """

    network: str
    network_id: int
    retired: bool
    ready: bool
    phase: Phase = Phase.EMPTY
    slot_no: int | None = None
    block_no: int | None = None
    block_time: Instant | None = None
    epoch_no: int | None = None
    first_block_no: int | None = None
    transactions: int = 0
    tip_age_s: int | None = None
    lag_blocks: int | None = None
    lag_slots: int | None = None
    lag_s: int | None = None
    network_synchronization: float | None = None
    sync_progress: float | None
    sync_left_s: int | None
    node: NodeState
    node_connected: bool
    node_since: Instant | None
    node_slot_no: int | None
    node_block_no: int | None
    node_tip_age_s: int | None
    node_tip_unmoved_s: int | None
    indexer_running: bool
    indexer_version: str | None
    beat_age_s: float | None
    failing_tasks: list[str]
    lock_wait_s: int | None
    refused: str | None
    rollbacks: int = 0
    last_rollback_at: Instant | None = None
    last_rollback_blocks: int | None = None
    pools_stake_mismatch: int | None = None
    nodes: list[WatchedNode] = []
    splits: list[ChainSplit] = []

    @property
    def known(self) -> bool:
        """Whether the network has an index, or an indexer has led it."""
        return self.phase is not Phase.EMPTY or self.indexer_version is not None


async def index_state(db: sql.Connection) -> IndexState | None:
    """The state of the index of this connection's network, None if nothing is indexed."""
    return await _index_state.one(db)


async def rollbacks(db: sql.Connection) -> list[RollbackDepth]:
    """The node's rollbacks of this connection's network by depth, smallest first; no depth without rollbacks."""
    return await _rollbacks.all(db)


async def comparisons(db: sql.Connection) -> list[Comparison]:
    """The last comparison with the node's ledger, by kind; nothing before the first one."""
    return [
        Comparison(row.kind, row.epoch_no, row.compared, row.differing, _differences(row.differences))
        for row in await _comparisons.all(db)
    ]


def derive(
    network: Network,
    index: IndexState | None,
    heartbeat: LastHeartbeat,
    ready_lag_s: float,
    *,
    refuses_splits: bool = False,
) -> NetworkState:
    """The state of a network, by its index and its leader's last heartbeat. A tip is old after `ready_lag_s`.

    With `refuses_splits` it is not ready while its chain is split.
    """
    node = _node_state(network, heartbeat, ready_lag_s)
    of_index = {} if index is None else _of_index(network, index, heartbeat)
    recent = index is not None and of_index["tip_age_s"] <= ready_lag_s
    open_splits = splits.decode_splits(heartbeat.splits)
    answers = not (refuses_splits and open_splits)
    return NetworkState(
        network=network.name,
        network_id=network.network_id,
        retired=heartbeat.retired,
        ready=recent and of_index["phase"] is Phase.LIVE and not heartbeat.retired and answers,
        sync_progress=_progress(index, heartbeat),
        sync_left_s=_left_s(index, heartbeat),
        node=node,
        node_connected=heartbeat.alive and heartbeat.node_connected,
        node_since=heartbeat.node_since,
        node_slot_no=heartbeat.node_slot_no,
        node_block_no=heartbeat.node_block_no,
        node_tip_age_s=None
        if heartbeat.node_slot_no is None
        else _age_s(network, heartbeat.node_slot_no, heartbeat.now),
        node_tip_unmoved_s=_rounded(heartbeat.node_unmoved_s),
        indexer_running=heartbeat.alive,
        indexer_version=heartbeat.version,
        beat_age_s=round(heartbeat.beat_age_s, 1) if heartbeat.leading and heartbeat.beat_age_s is not None else None,
        failing_tasks=heartbeat.failing if heartbeat.leading else [],
        lock_wait_s=_rounded(heartbeat.lock_wait_s),
        refused=None if heartbeat.leading else heartbeat.refused,
        nodes=splits.decode_nodes(heartbeat.nodes) if heartbeat.alive else [],
        splits=open_splits,
        **of_index,
        **({} if node in ("lost", "unknown") else _lag(network, index, heartbeat)),
    )


def synchronization(network: Network, slot_no: int, now: datetime) -> float:
    """Ogmios' and Kupo's network synchronization of a tip: 0 to 1, and 1 if it is at most two minutes old."""
    if now - network.slot_time(slot_no) <= timedelta(seconds=_IN_STEP_S):
        return 1.0
    share = (network.slot_time(slot_no) - network.start_time) / (now - network.start_time)
    return int(share * 100_000) / 100_000


def reasons(state: NetworkState) -> list[str]:
    """The problems of a network, in words for operators; none if it is in step with the chain."""
    return [
        *_indexer_reasons(state),
        *_index_reasons(state),
        *_node_reasons(state),
        *(f"the background task {task} of the indexer of {state.network} fails" for task in state.failing_tasks),
    ]


def _indexer_reasons(state: NetworkState) -> Iterator[str]:
    name = state.network
    if not state.indexer_running:
        cause = f" (the last one stopped because {state.refused})" if state.refused else ""
        yield f"no indexer is running for {name}{cause}"
    elif state.node == "lost":
        yield f"the node of {name} is not connected"
    elif state.node == "stalled":
        stopped = f"has not moved for {duration(state.node_tip_unmoved_s or 0)}"
        yield f"the node of {name} is connected, but its tip {stopped}: the node has stalled"
    elif state.node == "syncing":
        yield f"the node of {name} is syncing: its tip is {duration(state.node_tip_age_s or 0)} old"


def _index_reasons(state: NetworkState) -> Iterator[str]:
    name = state.network
    if (state.lock_wait_s or 0) >= _LONG_LOCK_WAIT_S and state.lag_slots:
        waits = f"has waited {duration(state.lock_wait_s or 0)} for a lock that another session of the database holds"
        yield f"a commit of the indexer of {name} {waits}, and the node is {state.lag_blocks} blocks ahead"
    if state.phase is Phase.EMPTY:
        unwanted = f" (if it never should be: python -m api networks retire {name})"
        yield f"nothing is indexed for {name} yet{unwanted if state.known and not state.indexer_running else ''}"
    elif state.phase is not Phase.LIVE:
        yield f"{name} is syncing{_how_far(state)}"
    elif not state.ready:
        catching_up = _how_far(state) if state.node == "followed" else ""
        yield f"the last block of {name} is {duration(state.tip_age_s or 0)} old{catching_up}"


def _node_reasons(state: NetworkState) -> Iterator[str]:
    for split in state.splits:
        since = "from the start" if split.common is None else f"after block {split.common.block_no}"
        yield f"the chain of {state.network} has split: node {split.node} has another one {since}"
    for node in state.nodes:
        if node.state in _NODE_REASONS:
            yield f"node {node.number} of {state.network} {_NODE_REASONS[node.state]}"


def duration(seconds: float) -> str:
    """A time in at most two units, such as `3 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def is_at_tip(node_block_no: int, block_no: int) -> bool:
    """Whether an index at a block has reached the node's tip, so that a rate of blocks means nothing."""
    return node_block_no - block_no < _AT_TIP_BLOCKS


def _how_far(state: NetworkState) -> str:
    """The progress of a sync, and when it will be done."""
    if state.phase is Phase.FINISHING:
        return ": all blocks are read, and the indexes are being built"
    if state.sync_progress is None:
        return ""
    then = ", then indexes are built" if state.phase is Phase.BULK else ""
    left = "" if state.sync_left_s is None else f", about {duration(state.sync_left_s)} left{then}"
    return f": {state.sync_progress:.1%} of the blocks{left}"


def _node_state(network: Network, heartbeat: LastHeartbeat, old_s: float) -> NodeState:
    if not heartbeat.alive or heartbeat.finishing:
        return "unknown"
    if not heartbeat.node_connected:
        return "lost"
    if heartbeat.node_slot_no is None or _age_s(network, heartbeat.node_slot_no, heartbeat.now) <= old_s:
        return "followed"
    return "syncing" if (heartbeat.node_unmoved_s or 0) <= old_s else "stalled"


def _age_s(network: Network, slot_no: int, now: datetime) -> int:
    return max(round((now - network.slot_time(slot_no)).total_seconds()), 0)


def _rounded(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)


def _of_index(network: Network, index: IndexState, heartbeat: LastHeartbeat) -> dict[str, Any]:
    """The fields of a NetworkState about the index."""
    phase = Phase(index.phase)
    return {
        "phase": Phase.FINISHING if phase is Phase.BULK and heartbeat.alive and heartbeat.finishing else phase,
        "slot_no": index.slot_no,
        "block_no": index.block_no,
        "block_time": network.slot_time(index.slot_no),
        "epoch_no": network.epoch_of(index.slot_no),
        "first_block_no": index.first_block_no,
        "transactions": index.tx_count,
        "tip_age_s": _age_s(network, index.slot_no, heartbeat.now),
        "network_synchronization": synchronization(network, index.slot_no, heartbeat.now),
        "rollbacks": index.rollbacks,
        "last_rollback_at": index.last_rollback_at,
        "last_rollback_blocks": index.last_rollback_blocks,
        "pools_stake_mismatch": index.pools_stake_mismatch,
    }


def _lag(network: Network, index: IndexState | None, heartbeat: LastHeartbeat) -> dict[str, Any]:
    """The fields of a NetworkState about the lag behind the node's tip; none if it is unknown."""
    if index is None or heartbeat.node_slot_no is None or heartbeat.node_block_no is None:
        return {}
    between = network.slot_time(heartbeat.node_slot_no) - network.slot_time(index.slot_no)
    return {
        "lag_blocks": max(heartbeat.node_block_no - index.block_no, 0),
        "lag_slots": max(heartbeat.node_slot_no - index.slot_no, 0),
        "lag_s": max(round(between.total_seconds()), 0),
    }


def _progress(index: IndexState | None, heartbeat: LastHeartbeat) -> float | None:
    if not heartbeat.node_block_no:
        return None
    return 0.0 if index is None else round(min(index.block_no / heartbeat.node_block_no, 1.0), 6)


def _left_s(index: IndexState | None, heartbeat: LastHeartbeat) -> int | None:
    """The time that is left by the last heartbeat, unless the index has reached the node's tip since."""
    at_tip = index is not None and is_at_tip(heartbeat.node_block_no or 0, index.block_no)
    return None if at_tip or not heartbeat.alive else _rounded(heartbeat.sync_left_s)


class _Comparison(msgspec.Struct, frozen=True):
    kind: str
    epoch_no: int
    compared: int
    differing: int
    differences: str


_differences = msgspec.json.Decoder(list[Difference]).decode
_sql = sql.beside(__file__)
_index_state = _sql.query("index_state", IndexState)
_rollbacks = _sql.query("rollbacks", RollbackDepth)
_comparisons = _sql.query("comparisons", _Comparison)
