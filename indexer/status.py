"""What an operator asks first: where the index stands, how far behind the node, how large."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from shared import sql
from shared.network import Network


async def of(db: sql.Connection, network: Network) -> dict[str, Any]:
    """The state of a network's index, for machines; slots and blocks are numbers, times ISO 8601."""
    standing = await _standing.one(db)
    if standing is None:
        return {
            "network": network.name,
            "state": "empty",
            "partial": False,
            "first_block_no": None,
            "tip": None,
            "node_tip": None,
            "lag": None,
            "progress": None,
            "finalize_step": 0,
            "transactions": 0,
            "tables": {},
        }
    node_block_no = standing.node_block_no
    blocks_behind = None if node_block_no is None else max(node_block_no - standing.block_no, 0)
    return {
        "network": network.name,
        "state": standing.phase,
        "partial": standing.first_block_no > 0,
        "first_block_no": standing.first_block_no,
        "tip": {
            "slot_no": standing.slot_no,
            "block_no": standing.block_no,
            "block_hash": standing.block_hash.hex(),
            "block_time": _iso(network.slot_time(standing.slot_no)),
            "epoch_no": network.epoch_of(standing.slot_no),
        },
        "node_tip": None
        if standing.node_slot_no is None or standing.seen_at is None
        else {
            "slot_no": standing.node_slot_no,
            "block_no": node_block_no,
            "seen_at": _iso(standing.seen_at),
        },
        "lag": None
        if standing.node_slot_no is None
        else {
            "blocks": blocks_behind,
            "seconds": max(0, standing.node_slot_no - standing.slot_no),
        },
        "progress": None if not node_block_no else round(min(standing.block_no / node_block_no, 1.0), 6),
        "finalize_step": standing.finalize_step,
        "transactions": standing.tx_count,
        "tables": {
            table.name: {"rows_estimate": table.row_count, "size_bytes": table.size_bytes}
            for table in await _table_sizes.all(db)
        },
    }


def show(state: dict[str, Any]) -> None:
    """The same for people."""
    console = Console()
    if state["tip"] is None:
        console.print(f"[bold]{state['network']}[/] nothing is indexed yet")
        return
    tip, node, lag = state["tip"], state["node_tip"], state["lag"]
    kind = "partial, from block {:,}".format(state["first_block_no"]) if state["partial"] else "from the origin"
    facts = Table.grid(padding=(0, 2))
    facts.add_row("state", f"{state['state']}, {kind}")
    facts.add_row(
        "tip", f"block {tip['block_no']:,}  slot {tip['slot_no']:,}  epoch {tip['epoch_no']}  {tip['block_time']}"
    )
    facts.add_row("", tip["block_hash"])
    if node is not None:
        facts.add_row("node tip", f"block {node['block_no']:,}  slot {node['slot_no']:,}  seen {node['seen_at']}")
        facts.add_row("lag", f"{lag['blocks']:,} blocks, {lag['seconds']:,} s")
    if state["progress"] is not None:
        facts.add_row("progress", f"{state['progress']:.2%}")
    facts.add_row("transactions", f"{state['transactions']:,}")
    console.print(f"[bold]{state['network']}[/]")
    console.print(facts)
    tables = Table("table", "rows (estimate)", "MiB", box=None)
    for column in tables.columns[1:]:
        column.justify = "right"
    for name, table in state["tables"].items():
        tables.add_row(name, f"{table['rows_estimate']:,}", f"{table['size_bytes'] / 2**20:,.1f}")
    console.print(tables)


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class _Standing(msgspec.Struct, frozen=True):
    slot_no: int
    block_no: int
    block_hash: bytes
    first_block_no: int
    tx_count: int
    phase: str
    finalize_step: int
    node_slot_no: int | None
    node_block_no: int | None
    seen_at: datetime | None


class _TableSize(msgspec.Struct, frozen=True):
    name: str
    row_count: int
    size_bytes: int


_standing = sql.query("standing", _Standing)
_table_sizes = sql.query("table_sizes", _TableSize)
