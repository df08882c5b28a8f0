"""Count the rows of each table through each of its indexes: a part of verify.

An answer that looks a row up does not see it if the index has lost its entry. So as many rows must be found through an
index as its table has: in the order of a sorted one (btree), where those with an equal value count once if it is
unique, and by looking up each row's own value in a hash index. The latter takes longest, so a table is looked up in
ranges of its pages, each in its own snapshot.

NOTE: amcheck, where it is installed, needs the rights of a superuser and several times as long, and knows no hash
indexes. BRIN indexes have no entry for a row; rollbacks and verify use them, answers do not.
"""

import re
from collections.abc import Sequence

import asyncpg
import msgspec

from indexer.verify.moments import Moments
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import sql

_RANGE_PAGES = 4_096
_NO_PAGE = (1 << 32) - 1


class Index(msgspec.Struct, frozen=True):
    """An index of a table, the condition of a partial one, and a statement that counts rows through it. `pages` is the
    number of pages of the table.

    The statement of a hash index counts, for the rows from one ctid to before another: the rows, those that are found
    by their value, and all rows that are found with an equal value. `checks_xmin`: it was built beside an older
    transaction; Postgres may not use it until that has ended.
    """

    name: str
    of_table: str
    hashed: bool
    condition: str | None
    pages: int
    checks_xmin: bool
    statement: str


class Table(msgspec.Struct, frozen=True):
    """A table, the conditions of its partial indexes, and a statement that counts all rows and those of each one."""

    name: str
    conditions: list[str]
    statement: str


class LookedUp(msgspec.Struct, frozen=True):
    """The indexes through which rows are missing, and whether several rows may have an equal value in a hash index."""

    result: CheckResult
    equal: bool


class Count(msgspec.Struct, frozen=True):
    """The rows of an index, those that are found through it, and all that are found with an equal value; the last two
    are None if Postgres does not use the index.
    """

    rows: int
    found: int | None
    equal: int | None


async def check(moments: Moments) -> LookedUp:
    """Compare the counts of rows through indexes with those of the tables."""
    found, equal = list[Difference](), False
    indexes = await moments.all(_indexes)
    counted = [(index, await _by_hash(moments, index)) for index in indexes if index.hashed]
    for table in await moments.all(_tables):
        of_table = [index for index in indexes if index.of_table == table.name and not index.hashed]
        async with moments.next() as moment:
            counted += zip(of_table, await in_order(moment.db, table, of_table), strict=True)
    for index, count in counted:
        if count.found is None and index.checks_xmin:
            continue
        equal = equal or count.equal != count.rows
        if count.found != count.rows:
            shown = None if count.found is None else str(count.found)
            found.append(Difference(f"rows found through index {index.name}", None, shown, str(count.rows)))
    return LookedUp(CheckResult("index", found[:MAX_SHOWN]), equal)


async def _by_hash(moments: Moments, index: Index) -> Count:
    """What is found by hash, in a snapshot for each range."""
    rows, found, equal = 0, 0, 0
    for first in range(0, index.pages or 1, _RANGE_PAGES):
        end = first + _RANGE_PAGES
        async with moments.next() as moment:
            count = await by_hash(moment.db, index, first, end if end < index.pages else _NO_PAGE)
        if count.found is None or count.equal is None:
            return count
        rows, found, equal = rows + count.rows, found + count.found, equal + count.equal
    return Count(rows, found, equal)


async def by_hash(db: asyncpg.Connection, index: Index, first_page: int = 0, end: int = _NO_PAGE) -> Count:
    """What is found by hash, of the rows in some pages. The connection must be in a transaction."""
    await _read_through_indexes.run(db, _OFF)
    pages = (first_page, 0), (end, 0)
    plan = "\n".join(step for (step,) in await db.fetch(f"EXPLAIN (COSTS OFF) {index.statement}", *pages))
    rows, found, equal = await db.fetchrow(index.statement, *pages)
    await _read_through_indexes.run(db, None)
    return Count(rows, found, equal) if index.name in _used(plan) else Count(rows, None, None)


async def in_order(db: asyncpg.Connection, table: Table, indexes: Sequence[Index]) -> list[Count]:
    """What is found in the order of some indexes of a table. The connection must be in a transaction."""
    if not indexes:
        return []
    await _read_plainly.run(db, _OFF)
    counts = await db.fetchval(table.statement)
    rows = dict(zip((None, *table.conditions), counts, strict=True))
    await _read_plainly.run(db, None)
    await _read_through_indexes.run(db, _OFF)
    statement = "SELECT " + ", ".join(f"({index.statement})" for index in indexes)
    plan = "\n".join(step for (step,) in await db.fetch(f"EXPLAIN (COSTS OFF) {statement}"))
    found = await db.fetchrow(statement)
    await _read_through_indexes.run(db, None)
    used = _used(plan)
    return [
        Count(rows[index.condition], count if index.name in used else None, rows[index.condition])
        for index, count in zip(indexes, found, strict=True)
    ]


def _used(plan: str) -> set[str]:
    """The indexes that a plan uses."""
    return set(re.findall(r" using (\w+) on ", plan))


_OFF = "off"
_sql = sql.beside(__file__)
_tables = _sql.query("tables", Table)
_indexes = _sql.query("indexes", Index)
_read_plainly = _sql.command("read_plainly")
_read_through_indexes = _sql.command("read_through_indexes")
