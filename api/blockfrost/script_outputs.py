"""`/scripts/{script_hash}/utxos`: the unspent outputs that hold a script as their reference script (CIP-33)."""

from typing import Annotated

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import outputs
from api.blockfrost.amounts import Amount
from api.blockfrost.paging import Page
from api.chain import utxos
from api.chain.utxos import OutputRow, UnspentOutput
from api.parameters import Hex
from shared import sql
from shared.ledger import HASH28_BYTES
from shared.sql import Connection


class ScriptPage(Page, frozen=True, kw_only=True):
    """A page of a list about a script."""

    hash: Annotated[bytes, Hex(HASH28_BYTES, message=errors.invalid_script_hash)] = msgspec.field(name="scriptHash")


class Holding(msgspec.Struct, frozen=True):
    """An unspent output with the script."""

    address: str
    tx_hash: str
    output_index: int
    amount: list[Amount]
    block: str
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None


class _Row(OutputRow, frozen=True):
    known: bool


_sql = sql.beside(__file__)
_unspent = {order: _sql.query("unspent", _Row, order=order) for order in ("asc", "desc")}


async def listed(ask: ChainAsk[ScriptPage]) -> list[Holding]:
    """List the unspent outputs with a reference script."""
    asked = ask.question

    async def show(db: Connection, shown: list[UnspentOutput]) -> list[Holding]:
        return [
            Holding(
                each.address,
                each.tx_hash,
                each.output_index,
                each.amount,
                each.block,
                each.data_hash,
                each.inline_datum,
                each.reference_script_hash,
            )
            for each in await outputs.unspent(db, shown, ask.network)
        ]

    async with ask.snapshot() as db:
        rows = await _unspent[asked.order].all(db, asked.hash, asked.count, asked.offset)
        if not rows:
            raise errors.network_not_available()
        if not rows[0].known:
            raise errors.script_not_found()
        present = [row for row in rows if row.tx_id is not None]
        return await ask.written(await utxos.listed(db, present, ask.network, show, "count"))
