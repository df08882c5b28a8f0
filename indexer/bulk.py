"""The end of bulk: what was staged becomes the indexed tables, step by step, each step one commit.

Killed at any point, the step that was under way begins again; those before it are kept (`tip.finalize_step`).
"""

import time

import asyncpg
import msgspec
import structlog

from indexer import epochs, holders, store, supplies
from shared import sql

log = structlog.get_logger()

SECURITY_PARAMETER = 2_160
"""No rollback is longer than this many blocks (k, Shelley genesis); bulk ends at least as far before the node's tip."""

WORTH_BLOCKS = 2 * SECURITY_PARAMETER
"""How far behind the node's tip an empty index must be for bulk to pay."""


async def finalize(db: asyncpg.Connection, completed_steps: int) -> None:
    """Do what is left of the steps from bulk to live."""
    for step, (table, fill) in enumerate(_STEPS, start=1):
        if step > completed_steps:
            began = time.monotonic()
            async with db.transaction():
                await _rebuild(db, table, fill)
                if table in _STAGED:
                    await db.execute(f"TRUNCATE {table}_staged")
                await _complete_step.run(db, step)
            log.info(
                "bulk.finalized", table=table, step=step, steps=len(_STEPS), seconds=round(time.monotonic() - began, 1)
            )
    async with db.transaction():
        await store.settle_balances(db)
        await supplies.fill(db)
        await holders.fill(db)
        await epochs.fill(db)
        await _go_live.run(db)
    # Fresh tables have no statistics yet, and the first questions would be planned without any.
    await store.analyze(db)


async def _rebuild(db: asyncpg.Connection, table: str, fill: sql.Command) -> None:
    """Fill a table from what is staged; its indexes are built at the end, faster than row by row."""
    await db.execute("SET LOCAL work_mem = '256MB'; SET LOCAL maintenance_work_mem = '1GB'")
    indexes = await _indexes_of.all(db, table)
    for index in indexes:
        if index.constraint is None:
            await db.execute(f"DROP INDEX {index.name}")
        else:
            await db.execute(f"ALTER TABLE {table} DROP CONSTRAINT {index.constraint}")
    await fill.run(db)
    for index in indexes:
        await db.execute(index.definition)


class _Index(msgspec.Struct, frozen=True):
    name: str
    definition: str
    constraint: str | None


_indexes_of = sql.query("indexes_of", _Index)
_complete_step = sql.command("complete_step")
_go_live = sql.command("go_live")
_STEPS = (
    ("address_tx", sql.command("number_address_txs")),
    ("asset_tx", sql.command("number_asset_txs")),
    ("mint", sql.command("number_mints")),
    ("asset", sql.command("sum_assets")),
    ("holder", sql.command("add_up_holders")),
    ("policy_holder", sql.command("add_up_policy_holders")),
)
_STAGED = {"address_tx", "asset_tx", "mint", "holder"}
