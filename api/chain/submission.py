"""Transactions that a caller submits, or has evaluated first."""

import json
from typing import Annotated, Any, Literal

import msgspec

from api import errors, transaction_cbor
from api.answers import Answer, Quantity
from api.ask import ChainAsk, ChainPost, Nothing
from api.chain import tip
from api.nodes import Connection, NodeRefused
from api.parameters import Body, JsonSchema, Kind
from api.transaction_cbor import Read
from shared import sql

_LONGEST_SAID = 2_000
_REFUSALS = {
    3100: errors.signatures_refused,
    3101: errors.signatures_refused,
    3117: errors.inputs_not_unspent,
    3118: errors.outside_validity_interval,
    3122: errors.fee_too_small,
    3123: errors.value_not_conserved,
}


class Cbor(Kind[bytes]):
    """Bytes as hex digits, in upper or lower case."""

    def __init__(self, most_bytes: int) -> None:
        schema: JsonSchema = {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$", "maxLength": 2 * most_bytes}
        super().__init__("the CBOR of a transaction in hex digits", schema)

    def of_text(self, text: str) -> bytes:
        if not text or not text.isascii() or not text.isalnum():
            raise ValueError(text)
        return bytes.fromhex(text)


class TransactionBody(Body, frozen=True, kw_only=True):
    """A transaction. Instead of this object, the body may be its CBOR itself, as `application/cbor`."""

    cbor: Annotated[bytes, Cbor(transaction_cbor.MOST_BYTES)]


class Budget(msgspec.Struct, frozen=True):
    """The execution units that a redeemer needs."""

    purpose: Literal["spend", "mint", "publish", "withdraw", "vote", "propose", "guard"]
    index: int
    memory: Quantity
    cpu: Quantity


class Evaluation(msgspec.Struct, frozen=True):
    """The hash of a transaction, and what its scripts need; nothing if it has no redeemers."""

    tx_hash: str
    budgets: list[Budget]


class Submission(msgspec.Struct, frozen=True):
    """A transaction that the node has accepted. It expires at slot `invalid_hereafter`, unless a block holds it."""

    tx_hash: str
    invalid_hereafter: Quantity | None


class _Indexed(msgspec.Struct, frozen=True):
    found: bool


_sql = sql.beside(__file__)
_is_indexed = _sql.query("is_indexed", _Indexed)


async def evaluate(ask: ChainPost[Nothing, TransactionBody]) -> Answer[Evaluation]:
    """Evaluate the scripts of a transaction.

    The transaction need not be signed. Its inputs must be unspent.
    """
    try:
        read, found = await evaluated(ask, ask.body.cbor)
    except NodeRefused as refused:
        raise errors.evaluation_failed(said(refused)) from refused
    budgets = [Budget(**each["validator"], **each["budget"]) for each in found]
    return Answer(data=Evaluation(read.tx_hash.hex(), budgets))


async def evaluated(ask: ChainAsk[Nothing], cbor: bytes) -> tuple[Read, Any]:
    """A transaction, and the units of its redeemers as Ogmios tells them. Raises Refusal, NodeRefused."""

    def work(node: Connection) -> tuple[Read, Any]:
        return transaction_cbor.read(cbor, ask.network), node.evaluate(cbor)

    return await ask.services.nodes.of(ask.network).run(work)


async def submit(ask: ChainPost[Nothing, TransactionBody]) -> Answer[Submission]:
    """Submit a signed transaction.

    A transaction that the node already has, in its mempool or in a block, is accepted again: if an answer was lost,
    send the same request. `GET /v1/tx/hash/{hash}` finds the transaction once a block holds it and is indexed.
    """
    cbor, network = ask.body.cbor, ask.network
    node = ask.services.nodes.of(network)
    async with ask.connection() as db:
        now = await tip.read(db)
    read = await node.run(lambda _: transaction_cbor.read(cbor, network))
    if not read.signed:
        raise errors.transaction_not_signed()
    if read.invalid_hereafter is not None and read.invalid_hereafter <= now.slot_no:
        raise errors.transaction_expired(read.invalid_hereafter, now.slot_no)
    try:
        await node.run(lambda connection: connection.submit(cbor, read.tx_hash))
    except NodeRefused as refused:
        async with ask.connection() as db:
            indexed = await _is_indexed.one(db, read.tx_hash)
        if indexed is None or not indexed.found:
            refusal = _REFUSALS.get(refused.code, errors.transaction_refused)
            raise refusal(said(refused)) from refused
    return Answer(data=Submission(read.tx_hash.hex(), read.invalid_hereafter))


def said(refused: NodeRefused) -> str:
    """What the ledger said: Ogmios' sentence, its code, and the data beside it."""
    data = "" if refused.data is None else f" {json.dumps(refused.data)}"
    said = f"{refused.message} ({refused.code}){data}"
    return said if len(said) <= _LONGEST_SAID else said[:_LONGEST_SAID] + "…"
