"""Evaluating, submitting and following transactions."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from api import errors
from api.answers import Answer, Instant, LedgerAnswer, Quantity
from api.ask import ChainAsk, ChainChange, ChainPost, Nothing, PrimaryAsk
from api.chain import submitted, tip, transaction_cbor
from api.chain.submitted import BlockOf, Register
from api.chain.tip import Tip
from api.chain.transaction_cbor import ParsedTransaction
from api.errors import Refusal
from api.parameters import Body, Hex, JsonSchema, Kind, Question
from api.sources.nodes import NodeConnection, NodeRefused

INDEXED_WITHIN_S = 1.0
"""How long to wait for the index to reach the node's last block, before a refusal by the node is final."""

_LOOK_EVERY_S = 0.02
_MAX_SAID_LENGTH = 2_000
_REFUSALS = {
    3100: errors.signatures_refused,
    3101: errors.signatures_refused,
    3117: errors.inputs_not_unspent,
    3118: errors.outside_validity_interval,
    3122: errors.fee_too_small,
    3123: errors.value_not_conserved,
}

# The refusals that these handlers and their twins below /blockfrost raise, for `errors` in both tables of routes. The
# texts and numbers in them are examples.
Refusals = tuple[Callable[[], Refusal], ...]
NODE_REFUSALS: Refusals = (
    partial(errors.no_node, "preview"),
    partial(errors.node_not_available, "it does not answer"),
)
CBOR_REFUSALS: Refusals = (
    partial(errors.invalid_transaction, "output 0 must be an array, not a text (byte 45)"),
    partial(errors.transaction_too_large, transaction_cbor.MAX_BYTES),
    errors.foreign_transaction,
)
LEDGER_REFUSALS: Refusals = (
    partial(errors.transaction_expired, 133_660_800, 133_664_400),
    partial(errors.signatures_refused, "Some signatures are missing. (3101)"),
    partial(errors.inputs_not_unspent, "Unknown output references as inputs. (3117)"),
    partial(errors.outside_validity_interval, "Outside of its validity interval. (3118)"),
    partial(errors.fee_too_small, "Insufficient fee. (3122)"),
    partial(errors.value_not_conserved, "In and out value not conserved. (3123)"),
    partial(errors.transaction_refused, "Some outputs have too little ada. (3125)"),
)
EVALUATION: Refusals = (*NODE_REFUSALS, *CBOR_REFUSALS)
RESUBMISSION: Refusals = (*NODE_REFUSALS, *LEDGER_REFUSALS)
SUBMISSION: Refusals = (*CBOR_REFUSALS, errors.transaction_not_signed, *RESUBMISSION)


class Cbor(Kind[bytes]):
    """Bytes as hex digits, in upper or lower case."""

    def __init__(self, max_bytes: int) -> None:
        schema: JsonSchema = {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$", "maxLength": 2 * max_bytes}
        super().__init__("the CBOR of a transaction in hex digits", schema)

    def of_text(self, text: str) -> bytes:
        if not text or not text.isascii() or not text.isalnum():
            raise ValueError(text)
        return bytes.fromhex(text)


class TransactionBody(Body, frozen=True, kw_only=True):
    """A transaction. Instead of this object, the body may be the raw CBOR, as `application/cbor`."""

    cbor: Annotated[bytes, Cbor(transaction_cbor.MAX_SENT_BYTES)]


class Budget(msgspec.Struct, frozen=True):
    """The execution units that a redeemer needs."""

    purpose: Literal["spend", "mint", "publish", "withdraw", "vote", "propose", "guard"]
    index: int
    memory: Quantity
    cpu: Quantity


class Evaluation(msgspec.Struct, frozen=True):
    """The hash of a transaction, and the budgets of its scripts. `budgets` is empty if it has no redeemers."""

    tx_hash: str
    budgets: list[Budget]


class Submission(msgspec.Struct, frozen=True):
    """A transaction that the node has accepted. It expires at slot `invalid_hereafter`, unless a block contains it."""

    tx_hash: str
    invalid_hereafter: Quantity | None


class HashOfSubmitted(Question, frozen=True, kw_only=True):
    """A submitted transaction by its hash."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash)]


class SubmittedTransaction(msgspec.Struct, frozen=True):
    """The state of a transaction that a key of the caller's account has submitted.

    `state` is `in_block` if an indexed block contains it; `expired` if none does and none can, because the last indexed
    block is not before slot `invalid_hereafter`; `rolled_back` if a fork has removed its block since the node last
    accepted it (it may still wait in a mempool); otherwise `pending`. `confirmations` is the number of indexed blocks
    after its own, 0 if that is the last one. `block_no`, `block_hash`, `slot_no` and `confirmations` are null unless it
    is in a block. `submitted_at` is the time when the node last accepted it here.
    """

    tx_hash: str
    state: submitted.State
    submitted_at: Instant
    invalid_hereafter: Quantity | None
    block_no: int | None
    block_hash: str | None
    slot_no: int | None
    confirmations: int | None
    rolled_back_at: Instant | None


async def evaluate_transaction(ask: ChainPost[Nothing, TransactionBody]) -> Answer[Evaluation]:
    """Evaluate the scripts of a transaction.

    The transaction need not be signed. Its inputs must be unspent.
    """
    try:
        read, results = await evaluated(ask, ask.body.cbor)
    except NodeRefused as refused:
        raise errors.evaluation_failed(said(refused)) from refused
    budgets = [Budget(**result["validator"], **result["budget"]) for result in results]
    return Answer(data=Evaluation(read.tx_hash.hex(), budgets))


async def evaluated(
    ask: ChainAsk[Nothing], cbor: bytes, additional: Sequence[Any] = ()
) -> tuple[ParsedTransaction, Any]:
    """A transaction, and the execution units of its redeemers in Ogmios' format. Raises Refusal, NodeRefused.

    `additional` are outputs, in Ogmios' format, that the transaction may use though they are not on the chain.
    """

    def work(node: NodeConnection) -> tuple[ParsedTransaction, Any]:
        return transaction_cbor.read(cbor, ask.network), node.evaluate(cbor, additional)

    return await ask.services.nodes.of(ask.network).evaluate(ask.key.credential_id, work)


async def submit_transaction(ask: ChainChange[Nothing, TransactionBody]) -> Answer[Submission]:
    """Submit a signed transaction.

    A transaction that the node already has, in its mempool or in a block, is accepted again: if an answer was lost,
    send the same request. `GET /v1/tx/submitted/{hash}` reports its state.
    """
    cbor, network = ask.body.cbor, ask.network
    node = ask.services.nodes.of(network)
    async with ask.connection() as db:
        now = await tip.read(db)
    read = await node.run(lambda _: transaction_cbor.read(cbor, network))
    if not read.signed:
        raise errors.transaction_not_signed()
    # NOTE: a transaction in a block is accepted again even after its interval: a new one would pay twice.
    async with ask.connection() as db:
        block = await submitted.block_of(db, read.tx_hash)
    if block is None:
        _refuse_expired(read.invalid_hereafter, now)
    return await _send(ask, read, cbor)


async def get_submitted_transaction(ask: PrimaryAsk[HashOfSubmitted]) -> LedgerAnswer[SubmittedTransaction]:
    """Follow a submitted transaction.

    Any key of the account that submitted it may follow it, if the key has the scope `submit`.
    """
    tx_hash = ask.question.hash
    async with ask.snapshot() as db:
        now = await tip.read(db)
        known, block = await submitted.read(db, ask.key, tx_hash)
    data = SubmittedTransaction(
        tx_hash=tx_hash.hex(),
        state=submitted.state(known, block, now),
        submitted_at=known.submitted_at,
        invalid_hereafter=known.ends,
        block_no=None if block is None else block.block_no,
        block_hash=None if block is None else block.block_hash.hex(),
        slot_no=None if block is None else block.slot_no,
        confirmations=None if block is None else block.confirmations,
        rolled_back_at=known.rolled_back_at,
    )
    return LedgerAnswer(data=data, last_updated=now.last_updated(ask.network))


async def resubmit_transaction(ask: ChainChange[HashOfSubmitted, None]) -> Answer[Submission]:
    """Resubmit a transaction that a key of the account has submitted, for example after a fork has removed its block.

    A transaction in the node's mempool is accepted again; one that is in a block or has expired is refused.
    """
    async with ask.snapshot() as db:
        now = await tip.read(db)
        known, block = await submitted.read(db, ask.key, ask.question.hash)
    if block is not None:
        raise errors.transaction_in_block(block.block_no)
    _refuse_expired(known.ends, now)
    return await _send(ask, ParsedTransaction(ask.question.hash, known.ends, signed=True), known.cbor)


def _refuse_expired(invalid_hereafter: int | None, now: Tip) -> None:
    if invalid_hereafter is not None and invalid_hereafter <= now.slot_no:
        raise errors.transaction_expired(invalid_hereafter, now.slot_no)


async def _send(ask: ChainChange[Any, Any], read: ParsedTransaction, cbor: bytes) -> Answer[Submission]:
    """Submit a transaction to the node, and follow it if the node or an indexed block has it. Raises Refusal."""
    register = Register(ask, read, cbor)
    await register.announce()
    try:
        await ask.services.nodes.of(ask.network).run(lambda connection: connection.submit(cbor, read.tx_hash))
    except NodeRefused as refused:
        if await _block_of(ask, read.tx_hash) is None:
            await register.withdraw()
            refusal = _REFUSALS.get(refused.code, errors.transaction_refused)
            raise refusal(said(refused)) from refused
        await register.accept(in_block=True)
    else:
        await register.accept(in_block=False)
    return Answer(data=Submission(read.tx_hash.hex(), read.invalid_hereafter))


async def _block_of(ask: ChainChange[Any, Any], tx_hash: bytes) -> BlockOf | None:
    """The indexed block that contains a transaction that the node has just refused. Raises Refusal.

    The node has each block some milliseconds before the index. A transaction in such a block is not refused: otherwise
    its caller might pay again with another one.
    """
    slot_no = await ask.services.nodes.of(ask.network).run(NodeConnection.tip_slot_no)
    give_up_at = time.monotonic() + INDEXED_WITHIN_S
    while True:
        async with ask.snapshot() as db:
            now, block = await tip.read(db), await submitted.block_of(db, tx_hash)
        if block is not None or now.slot_no >= slot_no or time.monotonic() >= give_up_at:
            return block
        await asyncio.sleep(_LOOK_EVERY_S)


def said(refused: NodeRefused) -> str:
    """The ledger's error: Ogmios' message, its code, and its data."""
    data = "" if refused.data is None else f" {json.dumps(refused.data)}"
    said = f"{refused.message} ({refused.code}){data}"
    return said if len(said) <= _MAX_SAID_LENGTH else said[:_MAX_SAID_LENGTH] + "…"
