"""Datums and scripts in the database, each once. Runs inside a commit of its caller."""

import asyncpg

from indexer.rows.rows import Rows
from shared import sql


async def add(db: asyncpg.Connection, rows: Rows) -> None:
    """Add the datums and scripts that the index does not have yet."""
    if rows.datums:
        await _add_datums.run(db, *sql.columns(rows.datums.values()))
    if rows.scripts:
        await _add_scripts.run(db, *sql.columns(rows.scripts.values()))


_sql = sql.beside(__file__)
_add_datums = _sql.command("add_datums")
_add_scripts = _sql.command("add_scripts")
