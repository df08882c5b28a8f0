"""The end of bulk: build the indexed tables from the staged rows and from each other.

Each step is one commit, and a last commit makes the index live. After a crash, the interrupted step is repeated;
`tip.finalize_step` counts the completed ones.
"""

import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from indexer.rows import tables
from indexer.store import balances, epochs, eras, holders, indexes, outputs, supplies
from shared import schema, sql

log = structlog.get_logger()

Fill = Callable[[asyncpg.Connection], Awaitable[object]]


async def finalize(db: asyncpg.Connection, completed_steps: int) -> None:
    """Run the remaining steps from bulk to live."""
    for step, (table, fill) in enumerate(_STEPS, start=1):
        if step > completed_steps:
            began = time.monotonic()
            async with schema.commit(db):
                await _rebuild(db, table, fill)
                if f"{table}_staged" in tables.NAMES:
                    await db.execute(f"TRUNCATE {table}_staged")
                await _complete_step.run(db, step)
            _log("bulk.step_completed", began, table=table, step=step, steps=len(_STEPS))
    began = time.monotonic()
    async with schema.commit(db):
        await balances.add_up_staged(db)
        await balances.count_addresses(db)
        await supplies.fill(db)
        await holders.fill(db)
        await outputs.remove(db, await eras.drop_outputs(db))
        await outputs.fill_lists(db)
        await epochs.fill(db)
        # New tables have no statistics yet, without which the first queries would be planned badly.
        await analyze(db)
        await _go_live.run(db)
    _log("bulk.ended", began)


async def analyze(db: asyncpg.Connection) -> None:
    """Update the planner's statistics of every table of the chain."""
    await db.execute("ANALYZE " + ", ".join(tables.NAMES))


def _log(event: str, began: float, **fields: object) -> None:
    log.info(event, **fields, seconds=round(time.monotonic() - began, 1))


async def _rebuild(db: asyncpg.Connection, table: str, fill: Fill) -> None:
    """Fill a table; its indexes are built at the end, which is faster than row by row."""
    await db.execute("SET LOCAL work_mem = '256MB'; SET LOCAL maintenance_work_mem = '1GB'")
    async with indexes.rebuilt(db, table):
        await fill(db)


_sql = sql.beside(__file__)
_complete_step = _sql.command("complete_step")
_go_live = _sql.command("go_live")
_STEPS: tuple[tuple[str, Fill], ...] = (
    ("account_tx", _sql.command("number_account_txs").run),  # from address_tx_staged, which the next step empties
    ("address_tx", _sql.command("number_address_txs").run),
    ("asset_tx", _sql.command("number_asset_txs").run),
    ("account_withdrawal", _sql.command("number_withdrawals").run),
    ("mint", _sql.command("number_mints").run),
    ("asset", _sql.command("sum_assets").run),
    ("holder", _sql.command("add_up_holders").run),
    ("policy_holder", _sql.command("add_up_policy_holders", holder="holder", owner_no="address_no").run),
    ("account_holder", _sql.command("add_up_account_holders").run),
    (
        "policy_account_holder",
        _sql.command("add_up_policy_holders", holder="account_holder", owner_no="account_no").run,
    ),
    ("spender", outputs.join_spenders.run),
    ("utxo", outputs.fill),
)
