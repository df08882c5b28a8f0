"""Count the rows of each table through each of its indexes: a part of verify.

An answer that looks a row up does not see it if the index has lost its entry. So as many rows must be found through an
index as its table has: in the order of a sorted one (btree), and by looking up each row's own value in a hash index.

NOTE: amcheck, where it is installed, needs the rights of a superuser and several times as long, and knows no hash
indexes. BRIN indexes have no entry for a row; rollbacks and verify use them, answers do not.
"""

import re
from collections.abc import Sequence

import asyncpg
import msgspec

from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import sql


class Index(msgspec.Struct, frozen=True):
    """An index of a table, the condition of a partial one, and a statement that counts rows through it."""

    name: str
    of_table: str
    condition: str | None
    statement: str


class LookedUp(msgspec.Struct, frozen=True):
    """The indexes through which rows are missing, and whether several rows may have an equal value in a hash index."""

    result: CheckResult
    equal: bool


async def check(db: asyncpg.Connection) -> LookedUp:
    """Compare the counts of rows through indexes with those of the tables, in the open snapshot."""
    rows, indexes = await rows_of_tables(db), await _indexes.all(db)
    found, equal = list[Difference](), False
    for index, counts in zip(indexes, await found_through(db, indexes), strict=True):
        expected = rows[index.of_table, index.condition]
        equal = equal or counts[-1:] != [expected]
        if counts[:1] != [expected]:
            shown = str(counts[0]) if counts else None
            found.append(Difference(f"rows found through index {index.name}", None, shown, str(expected)))
    return LookedUp(CheckResult("index", found[:MOST_SHOWN]), equal)


async def rows_of_tables(db: asyncpg.Connection) -> dict[tuple[str, str | None], int]:
    """The number of rows by table and condition, None for all rows."""
    tables = await _tables.all(db)
    await _read_plainly.run(db, _OFF)
    counts = await db.fetchrow(_together([table.statement for table in tables]))
    await _read_plainly.run(db, None)
    return {
        (table.name, condition): rows
        for table, each in zip(tables, counts, strict=True)
        for condition, rows in zip((None, *table.conditions), each, strict=True)
    }


async def found_through(db: asyncpg.Connection, indexes: Sequence[Index]) -> list[list[int]]:
    """The number of rows that are found through each index and, by hash, with all that have an equal value; nothing if
    Postgres does not use the index.
    """
    await _read_through_indexes.run(db, _OFF)
    statement = _together([index.statement for index in indexes])
    plan = "\n".join(step for (step,) in await db.fetch(f"EXPLAIN (COSTS OFF) {statement}"))
    counts = await db.fetchrow(statement)
    await _read_through_indexes.run(db, None)
    used = set(re.findall(r" using (\w+) on ", plan))
    return [each if index.name in used else [] for index, each in zip(indexes, counts, strict=True)]


def _together(statements: Sequence[str]) -> str:
    """One statement, whose row has the value of each."""
    return "SELECT " + ", ".join(f"({statement})" for statement in statements)


class _Table(msgspec.Struct, frozen=True):
    name: str
    conditions: list[str]
    statement: str


_OFF = "off"
_sql = sql.beside(__file__)
_tables = _sql.query("tables", _Table)
_indexes = _sql.query("indexes", Index)
_read_plainly = _sql.command("read_plainly")
_read_through_indexes = _sql.command("read_through_indexes")
