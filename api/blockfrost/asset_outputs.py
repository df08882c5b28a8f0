"""`/assets/{asset}/utxos`: the unspent outputs that hold an asset, found through its holders."""

from typing import Annotated, Any, Literal

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import outputs, refusals
from api.blockfrost.amounts import Amount
from api.blockfrost.ranges import RangePage, limits
from api.blockfrost.units import UnitKind
from api.chain import plutus_data, utxos
from api.chain.assets import AssetId
from api.chain.owners import FROM_PLACE
from api.chain.utxos import OutputRow, UnspentOutput
from shared import sql
from shared.sql import Connection

MAX_HOLDERS = 100


class AssetUnspentPage(RangePage, frozen=True, kw_only=True):
    """A page of the unspent outputs that hold an asset."""

    asset: Annotated[AssetId, UnitKind()]


class AssetUnspent(msgspec.Struct, frozen=True):
    """An unspent output with the asset. `block_time` is in seconds since 1970.

    `inline_datum_json` is in the detailed schema of cardano-cli, null if the datum is nested too deeply.
    """

    address: str
    tx_hash: str
    output_index: int
    amount: list[Amount]
    block: str
    block_height: int
    block_time: int
    data_hash: str | None
    inline_datum: str | None
    inline_datum_json: Any
    reference_script_hash: str | None


class _Row(OutputRow, frozen=True):
    holders: int | None  # null if there is no such asset, at most one more than MAX_HOLDERS


_sql = sql.beside(__file__)
_Order = Literal["asc", "desc"]
_unspent: dict[_Order, sql.Query[_Row]] = {
    "asc": _sql.query("unspent", _Row, order=FROM_PLACE["asc"]["order"], most=str(MAX_HOLDERS + 1)),
    "desc": _sql.query("unspent", _Row, order=FROM_PLACE["desc"]["order"], most=str(MAX_HOLDERS + 1)),
}


async def listed(ask: ChainAsk[AssetUnspentPage]) -> list[AssetUnspent]:
    """List the unspent outputs that hold an asset, of at most 100 addresses."""
    asked = ask.question
    async with ask.snapshot() as db:
        first, beyond = await limits(db, asked)
        asset = asked.asset.policy_id, asked.asset.asset_name
        rows = await _unspent[asked.order].all(db, *asset, asked.count, asked.offset, first, beyond)
        if not rows:
            raise errors.network_not_available()
        if rows[0].holders is None:
            raise errors.asset_not_found()
        if rows[0].holders > MAX_HOLDERS:
            raise refusals.too_many_holders(MAX_HOLDERS)

        async def show(db: Connection, shown: list[UnspentOutput]) -> list[AssetUnspent]:
            blocks = await outputs.blocks_at(db, [output.slot_no for output in shown if output.slot_no is not None])
            return [
                _shown(one, blocks[output.slot_no], int(output.block_time.timestamp()))
                for one, output in zip(await outputs.unspent(db, shown, ask.network), shown, strict=True)
                if output.slot_no is not None and output.block_time is not None
            ]

        present = [row for row in rows if row.tx_id is not None]
        return await ask.written(await utxos.listed(db, present, ask.network, show, "count"))


def _shown(output: outputs.Unspent, block: outputs.BlockAt, block_time: int) -> AssetUnspent:
    inline = output.inline_datum
    return AssetUnspent(
        address=output.address,
        tx_hash=output.tx_hash,
        output_index=output.output_index,
        amount=output.amount,
        block=output.block,
        block_height=block.block_no,
        block_time=block_time,
        data_hash=output.data_hash,
        inline_datum=inline,
        inline_datum_json=None if inline is None else plutus_data.of_cbor(bytes.fromhex(inline)),
        reference_script_hash=output.reference_script_hash,
    )
