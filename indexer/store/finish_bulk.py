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


def _history(history: str, owner_no: str, entries: str, entry: str, staged: str = "") -> tuple[str, Fill]:
    """The step that numbers the staged entries of a history."""
    parts = {"history": history, "owner_no": owner_no, "entries": entries, "entry": entry}
    return history, _sql.command("number_history", **parts, staged=staged or f"{history}_staged").run


_TXS_OF_ACCOUNTS = """(
    SELECT DISTINCT stake_no, tx_id FROM address_tx_staged JOIN address USING (address_no) WHERE stake_no IS NOT NULL
)"""
_TXS_OF_CREDENTIALS = """(
    SELECT credential_no, tx_id FROM address_tx_staged JOIN address USING (address_no) WHERE credential_no IS NOT NULL
    EXCEPT
    SELECT address_no, tx_id FROM address_tx_staged
    WHERE address_no IN (SELECT credential_no FROM address WHERE credential_no IS NOT NULL)
)"""


def _sent(sent: str, owner_no: str, history: str | None = None) -> tuple[str, Fill]:
    """The step that adds up what owners have spent: those with long histories, or all without a history."""
    kept = f"{owner_no} IS NOT NULL" if history is None else _sql.text("is_long", owner_no=owner_no, history=history)
    return sent, _sql.command("add_up_sent", sent=sent, owner_no=owner_no, kept=kept).run


_QUANTITY = r"CASE WHEN large IS NULL THEN '\x0000' || int8send(quantity) ELSE quantity_bytes(large) END"
_STEPS: tuple[tuple[str, Fill], ...] = (
    # From address_tx_staged, which the step after them empties.
    _history("account_tx", "stake_no", "tx_ids", "int8send(tx_id)", _TXS_OF_ACCOUNTS),
    _history("credential_tx", "credential_no", "tx_ids", "int8send(tx_id)", _TXS_OF_CREDENTIALS),
    _history("address_tx", "address_no", "tx_ids", "int8send(tx_id)"),
    _history("asset_tx", "asset_no", "entries", f"int8send(tx_id) || {_QUANTITY}"),
    _history("account_withdrawal", "stake_no", "entries", r"int8send(tx_id) || '\x0000' || int8send(lovelace)"),
    _history("label_tx", "label_no", "tx_ids", "int8send(tx_id)"),
    _history("redeemer_tx", "script_key", "tx_ids", "int8send(tx_id)"),
    ("mint", _sql.command("number_mints").run),
    ("asset", _sql.command("sum_assets").run),
    ("holder", _sql.command("add_up_holders").run),
    ("policy_holder", _sql.command("add_up_policy_holders", holder="holder", owner_no="address_no").run),
    ("credential_holder", _sql.command("add_up_credential_holders").run),
    ("account_holder", _sql.command("add_up_account_holders").run),
    (
        "policy_account_holder",
        _sql.command("add_up_policy_holders", holder="account_holder", owner_no="account_no").run,
    ),
    ("spender", outputs.join_spenders.run),
    ("utxo", outputs.fill),
    # From address_sent_staged, which the step after them empties.
    _sent("credential_sent", "credential_no"),
    _sent("account_sent", "stake_no", "account_tx"),
    _sent("address_sent", "address_no", "address_tx"),
)
