"""`/tx/submit` and `/utils/txs/evaluate`: submitting transactions, and evaluating them first."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from api import errors
from api.ask import ChainAsk, ChainChange, ChainPost, Nothing, PrimaryAsk
from api.blockfrost import ledger_failures
from api.blockfrost.additional_outputs import AdditionalOutputs
from api.blockfrost.transactions import TransactionQuestion
from api.chain import block_bytes, submission, submitted, transaction_cbor
from api.chain.submission import Cbor, TransactionBody
from api.errors import Refusal
from api.parameters import Body, Choice, JsonSchema, Kind, Question
from api.sources.nodes import NodeRefused

Json = dict[str, Any]

_PURPOSES = {"publish": "certificate", "withdraw": "withdrawal"}
_SCRIPTS_FAILED = 3010
_FOUND_HERE = {"transaction_not_signed": ledger_failures.NOT_SIGNED, "transaction_expired": ledger_failures.EXPIRED}
_V5 = {"type": "jsonwsp/response", "version": "1.0", "servicename": "ogmios", "methodname": "EvaluateTx"}
_V6 = {"jsonrpc": "2.0", "method": "evaluateTransaction"}


class TransactionCbor(msgspec.Struct, frozen=True):
    """A transaction in hex."""

    cbor: str


class EncodedCbor(Kind[bytes]):
    """The CBOR of a transaction in hex or base64."""

    def __init__(self, max_bytes: int) -> None:
        schema: JsonSchema = {"type": "string", "maxLength": 4 * max_bytes}
        super().__init__("the CBOR of a transaction in hex digits or base64", schema)
        self._cbor = Cbor(max_bytes)

    def of_text(self, text: str) -> bytes:
        sent = text.strip()
        try:
            return self._cbor.of_text(sent)
        except ValueError:
            if not sent:
                raise
            return base64.b64decode(sent, validate=True)


class SentCbor(EncodedCbor):
    """The same as a whole body, whose bytes arrive in hex."""

    def of_text(self, text: str) -> bytes:
        return super().of_text(bytes.fromhex(text).decode("ascii"))


class EvaluationQuestion(Question, frozen=True, kw_only=True):
    """The version of Ogmios whose answer is wanted."""

    version: Annotated[Literal["5", "6"], Choice("5", "6")] = "5"


class EvaluationBody(Body, frozen=True, kw_only=True):
    """A transaction as text in a body of `application/cbor`."""

    cbor: Annotated[bytes, SentCbor(transaction_cbor.MAX_SENT_BYTES)]


class Unread(Kind[None]):
    """A field of a body whose value is not read."""

    def of_json(self, value: object) -> None:
        """Nothing, whatever is sent."""


class EvaluationWithOutputs(Body, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transaction, and outputs that it uses before they are on the chain. A misspelt field would lose the outputs.

    `@blaze-cardano/query` sends all outputs of a wallet as `additionalUtxoset`, which Blockfrost does not read, in a
    form that no Ogmios reads: values as strings, and addresses and assets as the empty objects that JSON makes of them.
    """

    cbor: Annotated[bytes, EncodedCbor(transaction_cbor.MAX_SENT_BYTES)]
    additional: Annotated[tuple[Json, ...], AdditionalOutputs()] = msgspec.field(name="additionalUtxoSet", default=())
    misspelt: Annotated[None, Unread("anything", {})] = msgspec.field(name="additionalUtxoset", default=None)


async def submit(ask: ChainChange[Nothing, TransactionBody]) -> str:
    """Submit a signed transaction, and get its hash."""
    try:
        return (await submission.submit_transaction(ask)).data.tx_hash
    except Refusal as refusal:
        cause = refusal.__cause__
        if isinstance(cause, NodeRefused):
            raise _reworded(refusal, cause.code, cause.data) from cause
        if refusal.code in _FOUND_HERE:
            raise _reworded(refusal, _FOUND_HERE[refusal.code], None) from refusal
        raise


async def evaluate(ask: ChainPost[EvaluationQuestion, EvaluationBody]) -> Json:
    """Evaluate the scripts of a transaction. The answer is the node's, even if scripts fail."""
    return await _evaluate(ask, ask.body.cbor, ())


async def evaluate_with_outputs(ask: ChainPost[EvaluationQuestion, EvaluationWithOutputs]) -> Json:
    """Evaluate the scripts of a transaction that uses outputs before they are on the chain."""
    return await _evaluate(ask, ask.body.cbor, ask.body.additional)


async def as_cbor(ask: PrimaryAsk[TransactionQuestion]) -> TransactionCbor:
    """Get the CBOR of a transaction in a block, as the caller's account has submitted it or as the node has it."""
    async with ask.snapshot() as db:
        known, block = await submitted.find(db, ask.key, ask.question.hash)
    if block is None:
        raise errors.transaction_not_found()
    if known is not None:
        return TransactionCbor(known.cbor.hex())
    _, cbor = await block_bytes.read_transaction(ask, ask.question.hash)
    return TransactionCbor(cbor.hex())


async def _evaluate(ask: ChainAsk[EvaluationQuestion], cbor: bytes, additional: Sequence[Json]) -> Json:
    as_v5 = ask.question.version == "5"
    try:
        _, results = await submission.evaluated(ask.about(Nothing()), cbor, additional)
    except NodeRefused as refused:
        if as_v5:
            return {**_V5, "result": {"EvaluationFailure": _failure(refused)}, "reflection": None}
        return {**_V6, "error": {"code": refused.code, "message": refused.message, "data": refused.data}, "id": None}
    if not as_v5:
        return {**_V6, "result": results, "id": None}
    budgets = {
        _pointer(result["validator"]): {"memory": result["budget"]["memory"], "steps": result["budget"]["cpu"]}
        for result in results
    }
    return {**_V5, "result": {"EvaluationResult": budgets}, "reflection": None}


def _reworded(refusal: Refusal, code: int, data: Any) -> Refusal:
    message = ledger_failures.message(code, data, refusal.message)
    return Refusal(refusal.status, refusal.code, message, refusal.headers)


def _failure(refused: NodeRefused) -> Json:
    """The node's reason for refusing, in the format of Ogmios 5."""
    if refused.code == _SCRIPTS_FAILED and isinstance(refused.data, list):
        failures: Json = {}
        for failed in refused.data:
            failure = {"validatorFailed": {"error": failed["error"]["message"], "traces": []}}
            failures.setdefault(_pointer(failed["validator"]), []).append(failure)
        return {"ScriptFailures": failures}
    return {"CannotCreateEvaluationContext": {"reason": submission.said(refused)}}


def _pointer(validator: Json) -> str:
    """A redeemer as Ogmios 5 names it."""
    return f"{_PURPOSES.get(validator['purpose'], validator['purpose'])}:{validator['index']}"
