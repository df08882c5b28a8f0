"""`/txs/{hash}/redeemers` and `required_signers`, and `/scripts/{script_hash}/redeemers`: read from the bytes of
transactions, which the node has.
"""

from fractions import Fraction
from math import ceil

import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import refusals
from api.blockfrost.script_outputs import ScriptPage
from api.blockfrost.transactions import TransactionQuestion
from api.chain import block_bytes, script_redeemers, transactions
from api.chain.script_redeemers import RedeemerList
from shared import address, packed, redeemers, sql
from shared.cbor import Malformed
from shared.ledger import slot_of
from shared.redeemers import Purpose, ScriptParts
from shared.sql import Connection


class Redeemer(msgspec.Struct, frozen=True):
    """A redeemer. `tx_index` is its place among those that its purpose may have; `datum_hash` repeats the data's hash.

    `fee` is the price of its units. `script_hash` is null if it is for an output that precedes the first indexed block.
    """

    tx_index: int
    purpose: Purpose
    script_hash: str | None
    redeemer_data_hash: str
    datum_hash: str
    unit_mem: str
    unit_steps: str
    fee: str


class ScriptRedeemer(msgspec.Struct, frozen=True):
    """A redeemer of a script. Its fields are those of one in a transaction."""

    tx_hash: str
    tx_index: int
    purpose: Purpose
    unit_mem: str
    unit_steps: str
    fee: str
    redeemer_data_hash: str
    datum_hash: str


class RequiredSigner(msgspec.Struct, frozen=True):
    """The hash of a key that must sign, besides those of inputs and certificates."""

    witness_hash: str


class _ParametersRow(msgspec.Struct, frozen=True):
    parameters: str


class _UnitPrices(msgspec.Struct, frozen=True):
    memory: str
    cpu: str


class _Parameters(msgspec.Struct, frozen=True, rename="camel"):
    script_execution_prices: _UnitPrices | None = None


_sql = sql.beside(__file__)
_prices = _sql.query("prices", _ParametersRow)


async def listed(ask: ChainAsk[TransactionQuestion]) -> list[Redeemer]:
    """List the redeemers of a transaction; none if its scripts failed."""
    async with ask.snapshot() as db:
        found = await _found(db, ask)
        if not packed.unpack_extra(found.extra).valid:
            return []
        stored = await _prices.one(db, ask.network.epoch_of(found.slot_no))
        locked = {
            (spent.tx_hash, spent.output_index): spent.address
            async for some in transactions.input_batches(db, found.numbering, found.inputs, grouped=False)
            for spent in some
        }
    parts = (await _parts(ask)).redeemers
    if not parts:
        return []
    prices = None if stored is None else _prices_in(stored.parameters)
    if prices is None:
        raise refusals.prices_not_known()
    return [_shown(each, locked, prices) for each in parts]


async def of_script(ask: ChainAsk[ScriptPage]) -> list[ScriptRedeemer]:
    """List the redeemers of a script, without those of transactions whose scripts failed."""
    asked = ask.question
    question = RedeemerList(hash=asked.hash, limit=asked.count, offset=asked.offset, order=asked.order)
    _, found = await script_redeemers.read(ask.about(question), question)
    epochs = {ask.network.epoch_of(slot_of(each.tx_id)) for each in found}
    async with ask.snapshot() as db:
        stored = {epoch_no: await _prices.one(db, epoch_no) for epoch_no in epochs}
    prices = {epoch_no: None if row is None else _prices_in(row.parameters) for epoch_no, row in stored.items()}
    shown = []
    for each in found:
        priced = prices[ask.network.epoch_of(slot_of(each.tx_id))]
        if priced is None:
            raise refusals.prices_not_known()
        shown.append(_of_script(each.tx_hash, each.redeemer, priced))
    return shown


def _of_script(tx_hash: bytes, found: redeemers.Redeemer, prices: tuple[Fraction, Fraction]) -> ScriptRedeemer:
    data_hash = found.data_hash.hex()
    return ScriptRedeemer(
        tx_hash=tx_hash.hex(),
        tx_index=found.index,
        purpose=found.purpose,
        unit_mem=str(found.memory),
        unit_steps=str(found.cpu),
        fee=_fee(found, prices),
        redeemer_data_hash=data_hash,
        datum_hash=data_hash,
    )


def _fee(found: redeemers.Redeemer, prices: tuple[Fraction, Fraction]) -> str:
    """`txscriptfee` in cardano-ledger, for a single script."""
    return str(ceil(found.memory * prices[0] + found.cpu * prices[1]))


async def required_signers(ask: ChainAsk[TransactionQuestion]) -> list[RequiredSigner]:
    """List the keys that must sign a transaction for its scripts; none if its scripts failed."""
    async with ask.snapshot() as db:
        found = await _found(db, ask)
    if not packed.unpack_extra(found.extra).valid:
        return []
    return [RequiredSigner(each.hex()) for each in (await _parts(ask)).required_signers]


async def _found(db: Connection, ask: ChainAsk[TransactionQuestion]) -> transactions.FoundTransaction:
    found = await transactions.find(db, ask.question.hash)
    if found is None:
        raise errors.transaction_not_found()
    return found


async def _parts(ask: ChainAsk[TransactionQuestion]) -> ScriptParts:
    _, cbor = await block_bytes.read_transaction(ask, ask.question.hash)
    try:
        return redeemers.parse(cbor)
    except Malformed as cause:
        raise errors.node_not_read(f"its bytes of the transaction can't be read: {cause}") from cause


def _shown(
    found: redeemers.Redeemer, locked: dict[tuple[str, int], str | None], prices: tuple[Fraction, Fraction]
) -> Redeemer:
    script_hash = found.script_hash
    if found.spends is not None:
        tx_hash, index = found.spends
        script_hash = _script_of(locked.get((tx_hash.hex(), index)))
    data_hash = found.data_hash.hex()
    return Redeemer(
        tx_index=found.index,
        purpose=found.purpose,
        script_hash=None if script_hash is None else script_hash.hex(),
        redeemer_data_hash=data_hash,
        datum_hash=data_hash,
        unit_mem=str(found.memory),
        unit_steps=str(found.cpu),
        fee=_fee(found, prices),
    )


def _script_of(text: str | None) -> bytes | None:
    """The script that locks an address, if one does."""
    if text is None:
        return None
    payment = address.parts_of(address.of_node(text)).payment
    return payment.hash if payment is not None and payment.origin == "script" else None


def _prices_in(parameters: str) -> tuple[Fraction, Fraction] | None:
    """The price in lovelace of a unit of memory and of a step."""
    found = msgspec.json.decode(parameters, type=_Parameters).script_execution_prices
    return None if found is None else (Fraction(found.memory), Fraction(found.cpu))
