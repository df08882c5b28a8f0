"""The state of an index for operators: its tip, its lag, its node, its size."""

from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec
from rich.console import Console
from rich.table import Table

from shared import leader, network_state, sql
from shared.network import Network
from shared.network_state import IndexState, NetworkState
from shared.phase import Phase

IN_STEP, DOWN, SYNCING = 0, 1, 2
"""Exit statuses of the command."""

COUNTED_BYTES = 16 * 1024**2
"""Tables of up to this size are counted, which takes milliseconds; for others the planner's estimate is shown."""

_LOCK_TIMEOUT = "300ms"
# Tables whose rows are numbered from 1 without a gap: the last number, which the primary key yields, is their count.
_NUMBERED = ("address", "asset", "policy", "pool", "stake")


class TableSize(msgspec.Struct, frozen=True):
    """A table's rows and bytes on disk with indexes; null while it is being rebuilt."""

    rows: int | None
    exact: bool
    size_bytes: int | None


async def read(db: asyncpg.Connection, network: Network, ready_lag_s: float) -> dict[str, Any]:
    """The state of a network's index for `--json`; slots and blocks are numbers, times are ISO 8601.

    `exit_status` is that of the command. Raises asyncpg.UndefinedTableError if the database has no schema of ours.
    """
    heartbeat, index = (await leader.last_heartbeats(db))[network.network_id], await network_state.index_state(db)
    state = network_state.derive(network, index, heartbeat, ready_lag_s)
    return {
        "network": network.name,
        "exit_status": exit_status(state, ready_lag_s),
        "reasons": network_state.reasons(state),
        "indexer": {
            "running": state.indexer_running,
            "version": state.indexer_version,
            "beat_age_s": state.beat_age_s,
            "failing_tasks": state.failing_tasks,
            "lock_wait_s": state.lock_wait_s,
            "refused": state.refused,
        },
        "state": state.phase,
        "partial": bool(state.first_block_no),
        "first_block_no": state.first_block_no,
        "tip": None if index is None else _tip(index, state),
        "node": {"state": state.node, "since": _iso(state.node_since)},
        "node_tip": _node_tip(state),
        "nodes": msgspec.to_builtins(state.nodes),
        "splits": msgspec.to_builtins(state.splits),
        "lag": None if state.lag_s is None else {"blocks": state.lag_blocks, "seconds": state.lag_s},
        "network_synchronization": state.network_synchronization,
        "progress": state.sync_progress,
        "left_s": state.sync_left_s,
        "finalize_step": 0 if index is None else index.finalize_step,
        "transactions": state.transactions,
        "rollbacks": {
            "count": state.rollbacks,
            "last_at": _iso(state.last_rollback_at),
            "last_blocks": state.last_rollback_blocks,
        },
        "tables": {} if index is None else msgspec.to_builtins(await _tables(db, index)),
    }


def exit_status(state: NetworkState, ready_lag_s: float) -> int:
    """IN_STEP with the node; SYNCING if the index is further behind it than `ready_lag_s`; DOWN if nothing moves."""
    if not state.indexer_running or state.phase is Phase.EMPTY or state.node in ("lost", "stalled"):
        return DOWN
    # NOTE: until the first heartbeat after the node has reported its tip, the lag is unknown, and probably small.
    in_step = state.phase is Phase.LIVE and (state.lag_s is None or state.lag_s <= ready_lag_s)
    return IN_STEP if in_step else SYNCING


def show(state: dict[str, Any]) -> None:
    """Print the state as tables."""
    console = Console()
    console.print(f"[bold]{state['network']}[/]")
    facts = Table.grid(padding=(0, 2))
    for name, text in _facts(state):
        facts.add_row(name, text)
    console.print(facts)
    if not state["tables"]:
        return
    tables = Table("table", "rows", "MiB", box=None)
    for column in tables.columns[1:]:
        column.justify = "right"
    for name, table in state["tables"].items():
        rows, size = table["rows"], table["size_bytes"]
        shown = "being rebuilt" if rows is None else f"{'' if table['exact'] else 'about '}{rows:,}"
        tables.add_row(name, shown, "" if size is None else f"{size / 2**20:,.1f}")
    console.print(tables)


def _facts(state: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines above the tables."""
    tip, node, lag = state["tip"], state["node_tip"], state["lag"]
    facts = [("indexer", _indexer(state["indexer"]))]
    facts += [("" if number else "attention", reason) for number, reason in enumerate(state["reasons"])]
    if tip is None:
        return [*facts, ("state", "nothing is indexed yet")]
    kind = "partial, from block {:,}".format(state["first_block_no"]) if state["partial"] else "from the origin"
    facts.append(("state", f"{state['state']}, {kind}"))
    facts.append(("tip", "block {block_no:,}  slot {slot_no:,}  epoch {epoch_no}  {block_time}".format_map(tip)))
    facts.append(("", tip["block_hash"]))
    facts.append(("age", network_state.duration(tip["age_s"])))
    facts.append(("node", state["node"]["state"]))
    if node is not None:
        age = network_state.duration(node["age_s"])
        facts.append(("node tip", f"block {node['block_no']:,}  slot {node['slot_no']:,}  {age} old"))
    if lag is not None:
        facts.append(("lag", f"{lag['blocks']:,} blocks, {lag['seconds']:,} s"))
    if state["progress"] is not None:
        left = "" if state["left_s"] is None else f", about {network_state.duration(state['left_s'])} left"
        facts.append(("progress", f"{state['progress']:.2%} of the node's blocks{left}"))
    facts.append(("synchronised", f"{state['network_synchronization']:.3%}"))
    facts.append(("transactions", f"{state['transactions']:,}"))
    rollbacks = state["rollbacks"]
    if rollbacks["count"]:
        last = f"last of {rollbacks['last_blocks']:,} blocks, {rollbacks['last_at']}"
        facts.append(("rollbacks", f"{rollbacks['count']:,}, {last}"))
    return facts


def _tip(index: IndexState, state: NetworkState) -> dict[str, Any]:
    return {
        "slot_no": index.slot_no,
        "block_no": index.block_no,
        "block_hash": index.block_hash.hex(),
        "block_time": _iso(state.block_time),
        "epoch_no": state.epoch_no,
        "age_s": state.tip_age_s,
    }


def _node_tip(state: NetworkState) -> dict[str, Any] | None:
    if state.node_slot_no is None:
        return None
    return {
        "slot_no": state.node_slot_no,
        "block_no": state.node_block_no,
        "age_s": state.node_tip_age_s,
        "unmoved_s": state.node_tip_unmoved_s,
    }


def _indexer(state: dict[str, Any]) -> str:
    """Whether an indexer is running, in words."""
    if state["beat_age_s"] is None:
        return "none"
    words = "running" if state["running"] else "not responding"
    return f"{words}, last heartbeat {state['beat_age_s']} s ago, version {state['version']}"


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# Sizes ----------------------------------------------------------------------------------------------------------------


async def _tables(db: asyncpg.Connection, index: IndexState) -> dict[str, TableSize]:
    """The sizes of all tables; empty if one of them is locked while they are read."""
    await db.execute(f"SET lock_timeout = '{_LOCK_TIMEOUT}'; SET max_parallel_workers_per_gather = 0")
    try:
        sizes = await _sizes.all(db)
        open_tables = [table for table in sizes if table.heap_bytes is not None]
        counted = [table.name for table in open_tables if (table.heap_bytes or 0) <= COUNTED_BYTES]
        exact = {"tx": index.tx_count} | await _counts(db, counted, [table.name for table in open_tables])
        guessed = await _guesses(db, [table.name for table in open_tables if table.name not in exact])
    except asyncpg.LockNotAvailableError:
        return {}
    rows = {**guessed, **exact}
    return {table.name: TableSize(rows.get(table.name), table.name in exact, table.size_bytes) for table in sizes}


async def _counts(db: asyncpg.Connection, small: list[str], open_tables: list[str]) -> dict[str, int]:
    """The exact number of rows of small and of numbered tables."""
    questions = [f"SELECT '{name}', count(*) FROM {name}" for name in small if name not in _NUMBERED]  # noqa: S608 - ours
    questions += [
        f"SELECT '{name}', coalesce(max({name}_no), 0)::bigint FROM {name}"  # noqa: S608 - ours
        for name in _NUMBERED
        if name in open_tables
    ]
    return dict(await db.fetch(" UNION ALL ".join(questions))) if questions else {}


async def _guesses(db: asyncpg.Connection, names: list[str]) -> dict[str, int]:
    """The planner's estimates of rows in tables: their present size times their density when last analyzed."""
    if not names:
        return {}
    every_table = " UNION ALL ".join(f"SELECT 1 FROM {name}" for name in names)  # noqa: S608 - ours
    (explained,) = await db.fetchval(f"EXPLAIN (FORMAT JSON) {every_table}")
    return dict(_scans(explained["Plan"]))


def _scans(plan: dict[str, Any]) -> list[tuple[str, int]]:
    """The tables that a plan reads, and how many rows it expects from each."""
    of_parts = [scan for part in plan.get("Plans", ()) for scan in _scans(part)]
    return [(plan["Relation Name"], plan["Plan Rows"]), *of_parts] if "Relation Name" in plan else of_parts


class _Size(msgspec.Struct, frozen=True):
    name: str
    heap_bytes: int | None
    size_bytes: int | None


_sql = sql.beside(__file__)
_sizes = _sql.query("tables", _Size)
