"""The notes of `bench.growth` as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from rich.table import Table

from bench.chain import BLOCK_TRANSACTIONS
from bench.checkpoint import FORKED_BLOCKS, AtTip, Checkpoint
from bench.growth_notes import RunNotes
from shared.ledger import SECURITY_PARAMETER

Part = TypeVar("Part")

_PARTS = 10
_LEAST_SHARE = 0.01  # of the database, for a table to be shown


def of_pieces(notes: RunNotes) -> Table:
    """Bulk by tenths: rates are over a whole tenth; bytes and memory are those at its end."""
    table = Table(
        "bulk, to",
        "transactions/s",
        "bytes/transaction",
        "indexer MB",
        "reader MB",
        "Postgres MB",
        title="bulk by tenths",
    )
    for column in table.columns:
        column.justify = "right"
    for part in range(_PARTS):
        bounds = [notes.transactions * (part + n) // _PARTS for n in (0, 1)]
        pieces = [piece for piece in notes.pieces if bounds[0] < piece.last <= bounds[1]]
        if not pieces:
            continue
        last = pieces[-1]
        table.add_row(
            f"{last.last:,}",
            f"{sum(piece.transactions for piece in pieces) / sum(piece.seconds for piece in pieces):,.0f}",
            f"{last.database_bytes / last.last:,.0f}",
            f"{max(piece.indexer_mb for piece in pieces):,.0f}",
            f"{max(piece.reader_mb for piece in pieces):,.0f}",
            "-" if last.postgres_mb is None else f"{last.postgres_mb:,.0f}",
        )
    return table


def of_checkpoints(checkpoints: Sequence[Checkpoint]) -> list[Table]:
    """The measurements at each size, one column per size."""
    return [_figures(checkpoints), _pages(checkpoints), _tables(checkpoints)]


def of_tip(at_tip: AtTip) -> Table:
    """The measurements at the tip of one index."""
    table = Table("", "", title="bench.tip")
    table.columns[1].justify = "right"
    for name, figure, places in _AT_TIP:
        value = figure(at_tip)
        table.add_row(name, "not local" if value is None else f"{value:,.{places}f}")
    return table


_AT_TIP: tuple[tuple[str, Callable[[AtTip], float | None], int], ...] = (
    (f"block of {BLOCK_TRANSACTIONS} transactions, p50 ms", lambda tip: tip.block_p50_ms, 1),
    ("  p99 ms", lambda tip: tip.block_p99_ms, 1),
    ("  CPU of Python, us/transaction", lambda tip: tip.python_cpu_us, 0),
    ("  CPU of Postgres, us/transaction", lambda tip: tip.postgres_cpu_us, 0),
    ("  pages that Postgres' cache lacked", lambda tip: tip.missed_pages, 0),
    ("  pages written whole to the WAL", lambda tip: tip.whole_pages, 0),
    ("  kB of WAL", lambda tip: tip.wal_bytes / 1e3, 0),
    ("rollback of 1 block, p50 ms", lambda tip: tip.rollback_ms, 1),
    ("  floor: its rows deleted by key", lambda tip: tip.rollback_floor_ms, 1),
    (f"fork of {FORKED_BLOCKS} blocks, the same transactions, p50 ms", lambda tip: tip.same_transactions.p50_ms, 1),
    ("  p95 ms", lambda tip: tip.same_transactions.p95_ms, 1),
    ("  other transactions, p50 ms", lambda tip: tip.other_transactions.p50_ms, 1),
    ("  p95 ms", lambda tip: tip.other_transactions.p95_ms, 1),
    ("  floor: rows of one side deleted by key, and copied", lambda tip: tip.fork_floor_ms, 1),
    (f"rollback of {SECURITY_PARAMETER:,} blocks, ms", lambda tip: tip.long_rollback_ms, 0),
    ("  floor: their rows deleted by key", lambda tip: tip.long_rollback_floor_ms, 0),
    ("first block of an epoch, ms", lambda tip: tip.boundary_ms, 0),
    ("memory of the indexer at the tip, MB", lambda tip: tip.peak_mb, 0),
)


def _figures(checkpoints: Sequence[Checkpoint]) -> Table:
    table = _by_size("measured at transactions", checkpoints)
    ends = [checkpoint.bulk_end for checkpoint in checkpoints]
    tips = [checkpoint.at_tip for checkpoint in checkpoints]

    def add(name: str, figures: Iterable[float | None], places: int = 0) -> None:
        table.add_row(name, *("" if figure is None else f"{figure:,.{places}f}" for figure in figures))

    add("end of bulk, s", _each(ends, lambda end: end.seconds), 1)
    for name in dict.fromkeys(name for end in ends if end for name in end.of_tables):
        add(f"  {name}", [None if end is None else end.of_tables.get(name) for end in ends], 1)
    add("  lists and statistics", _each(ends, lambda end: end.seconds - sum(end.of_tables.values())), 1)
    for name, figure, places in _AT_TIP:
        add(name, _each(tips, figure), places)
    add("memory of the API, MB", _each([checkpoint.pages for checkpoint in checkpoints], lambda pages: pages.api_mb))
    verified = [
        None if (done := checkpoint.verified) is None else checkpoint.transactions / done.seconds
        for checkpoint in checkpoints
    ]
    add("verify, transactions/s", verified)
    return table


def _each(parts: Sequence[Part | None], figure: Callable[[Part], float | None]) -> list[float | None]:
    return [None if part is None else figure(part) for part in parts]


def _pages(checkpoints: Sequence[Checkpoint]) -> Table:
    measured = [checkpoint.pages for checkpoint in checkpoints if checkpoint.pages]
    cold = "with empty caches" if all(pages.cold for pages in measured) else "for the first time"
    table = _by_size(f"medians in ms, {cold} and again", checkpoints)
    for kind in measured[0].of if measured else ():
        times = [pages.of[kind] for pages in measured]
        table.add_row(kind, *(f"{time.first_ms:.1f} / {time.again_ms:.1f}" for time in times))
    return table


def _tables(checkpoints: Sequence[Checkpoint]) -> Table:
    """The largest tables, and the rest."""
    table = _by_size("bytes per transaction, indexes included", checkpoints)
    after = [
        _Sizes(checkpoint.transactions, checkpoint.bulk_end.bytes_after)
        for checkpoint in checkpoints
        if checkpoint.bulk_end
    ]
    largest = after[-1].bytes_of if after else {}
    names = [name for name, size in largest.items() if size >= _LEAST_SHARE * sum(largest.values())]
    for name in names:
        table.add_row(name, *(f"{sizes.bytes_of.get(name, 0) / sizes.transactions:,.0f}" for sizes in after))
    rest = [
        sum(size for name, size in sizes.bytes_of.items() if name not in names) / sizes.transactions for sizes in after
    ]
    table.add_row("other tables", *(f"{bytes_each:,.0f}" for bytes_each in rest))
    table.add_row("all", *map(_bytes_each, after))
    before = [
        _Sizes(checkpoint.transactions, checkpoint.bulk_end.bytes_before)
        for checkpoint in checkpoints
        if checkpoint.bulk_end
    ]
    table.add_row("all, before the end of bulk", *map(_bytes_each, before))
    return table


class _Sizes(NamedTuple):
    """The bytes of tables by name, of an index of so many transactions."""

    transactions: int
    bytes_of: Mapping[str, int]


def _bytes_each(sizes: _Sizes) -> str:
    """The bytes of all tables per transaction."""
    return f"{sum(sizes.bytes_of.values()) / sizes.transactions:,.0f}"


def _by_size(title: str, checkpoints: Sequence[Checkpoint]) -> Table:
    table = Table("", *(f"{checkpoint.transactions:,}" for checkpoint in checkpoints), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    return table
