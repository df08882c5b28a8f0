"""Answers to `submitTransaction` and `evaluateTransaction`."""

from typing import Any

import msgspec

from devnet import addresses, evaluation, outputs, parameters, submitted
from devnet.case import Case, references
from devnet.evaluation import Evaluable, Failed, Missing, Unclear, Units
from devnet.node import Node
from devnet.refusal import Refusal
from devnet.submitted import Submitted
from devnet.votes import Reference
from devnet.witnesses import Pointer

Json = dict[str, Any]

METHODS = ("submitTransaction", "evaluateTransaction")
_MAX_HEX_LENGTH = 2 * 1024**2
_SCRIPTS_SINCE = "conway"


class _Cbor(msgspec.Struct):
    cbor: str


class _Params(msgspec.Struct, rename="camel"):
    transaction: _Cbor
    additional_utxo: list[Json] | None = None


_params = msgspec.json.Decoder(_Params)


async def answer(node: Node, method: str, params: msgspec.Raw) -> Any:
    """The result of either method. Raises Refusal."""
    asked = _params.decode(params)
    tx = _read(asked.transaction.cbor, node.dialect.version)
    if method == "evaluateTransaction":
        used = await _evaluate(node, tx, _additional(asked.additional_utxo or []))
        return [
            {"validator": _shown(pointer), "budget": {"memory": units.memory, "cpu": units.cpu}}
            for pointer, units in used.items()
        ]
    node.check(tx)
    if tx.runs_plutus:
        await _run_scripts(node, tx)
    node.submit(tx)
    return {"transaction": {"id": tx.id}}


async def _run_scripts(node: Node, tx: Submitted) -> None:
    """Run the scripts of a transaction that breaks no other rule, each with the units that its redeemer pays for.

    Raises Refusal if the transaction states another outcome (rule UTXOS), or if the outcome is not known.
    """
    with node.case_of(tx, {}) as case:
        evaluable = _evaluable(case)
    try:
        async with node.submitting:
            used = await evaluation.evaluate(evaluable) if tx.redeemers else {}
    except Failed as failed:
        failure = "{}:{}: {}".format(*failed.pointer, failed.error)
    except (Missing, Unclear) as cause:
        message = "The transaction's Plutus scripts can't be evaluated. `data.error` has the reason."
        raise Refusal(3997, message, {"error": str(cause)}) from cause
    else:
        failure = _overspent(tx, used)
    if bool(failure) == tx.is_valid:
        message = "The transaction states another outcome of its Plutus scripts than they have."
        reason = failure or "all scripts succeed"
        raise Refusal(3136, message, {"declaredSpending": tx.content["spends"], "mismatchReason": reason})


def _overspent(tx: Submitted, used: dict[Pointer, Units]) -> str:
    """Which script uses more units than its redeemer has; empty if none does."""
    for redeemer in tx.redeemers:
        units = used[redeemer.pointer]
        if units.memory > redeemer.memory or units.cpu > redeemer.cpu:
            uses, has = _in_words(units.memory, units.cpu), _in_words(redeemer.memory, redeemer.cpu)
            return f"{redeemer.purpose}:{redeemer.index}: the script uses {uses}; its redeemer has {has}"
    return ""


def _in_words(memory: int, cpu: int) -> str:
    return f"{memory} of memory and {cpu} of cpu"


async def _evaluate(node: Node, tx: Submitted, additional: dict[Reference, Json]) -> dict[Pointer, Units]:
    """The units that the scripts use, by redeemer. No other rule is checked. Raises Refusal."""
    with node.case_of(tx, additional) as case:
        _refuse_unevaluable(case, additional, node.dialect.version)
        evaluable = _evaluable(case)
    if not tx.redeemers:
        return {}
    try:
        async with node.evaluating:
            return await evaluation.evaluate(evaluable)
    except Failed as failed:
        data = {"validationError": failed.error, "traces": failed.traces}
        raise _failures({failed.pointer: _error(3012, "The script fails.", data)}) from failed
    except (Missing, Unclear) as cause:
        raise _no_context(str(cause)) from cause


def _refuse_unevaluable(case: Case, additional: dict[Reference, Json], version: tuple[int, int]) -> None:
    """Raises Refusal for what Ogmios finds before it runs a script."""
    eras = tuple(parameters.PROTOCOL_MAJOR)
    if eras.index(case.era) < eras.index(_SCRIPTS_SINCE):
        message = "The ledger is not in an era in which this node evaluates scripts."
        raise Refusal(3003, message, {"currentNodeEra": case.era, "minimumRequiredEra": _SCRIPTS_SINCE})
    overlapping = [reference for reference in additional if reference in case.ledger.unspent]
    if overlapping and version < (7, 0):
        shown = [{"transaction": {"id": id_}, "index": index} for id_, index in overlapping]
        raise Refusal(3002, "Some additional outputs are on the chain already.", {"overlappingOutputReferences": shown})
    if unknown := case.unknown("inputs", "references"):
        named = ", ".join(f"{id_}#{index}" for id_, index in references(unknown))
        raise _no_context(f"unknown output references: {named}")
    expected = {purpose.pointer: purpose for purpose in case.purposes}
    failures: dict[Pointer, Json] = {}
    given = set(case.content.get("datums", ()))
    for pointer in (redeemer.pointer for redeemer in case.tx.redeemers):
        purpose = expected.get(pointer)
        if purpose is None:
            data: Json = {"extraneousRedeemers": [_shown(pointer)]}
            failures[pointer] = _error(3110, "The redeemer points to no script.", data)
        elif purpose.script not in case.scripts:
            failures[pointer] = _error(3011, "The script is missing.", {"missingScripts": [_shown(pointer)]})
        elif purpose.output and purpose.output.get("datumHash", "") not in {*given, ""}:
            data = {"missingDatums": [purpose.output["datumHash"]]}
            failures[pointer] = _error(3111, "The datum of the output is missing.", data)
    if failures:
        raise _failures(failures)


def _evaluable(case: Case) -> Evaluable:
    names = ("inputs", "references")
    used = [reference for name in names for reference in references(case.content.get(name, []))]
    held = [output for name in names for output in case.outputs(name)]
    return Evaluable(
        transaction=case.tx.cbor,
        redeemers=tuple(redeemer.pointer for redeemer in case.tx.redeemers),
        outputs=tuple(
            (outputs.reference(source), outputs.encoded(output)) for source, output in zip(used, held, strict=True)
        ),
        cost_models=tuple(parameters.cost_models(case.ledger.major).values()),
        network=case.network,
    )


def _additional(entries: list[Json]) -> dict[Reference, Json]:
    """Additional outputs by their references. Raises Refusal."""
    unspent = {}
    for place, entry in enumerate(entries):
        try:
            outputs.encoded(entry)
            unspent[str(entry["transaction"]["id"]), int(entry["index"])] = entry
            addresses.payment_part(entry["address"])
        except (KeyError, TypeError, ValueError, IndexError) as cause:
            reason = f"Invalid request: additionalUtxo[{place}] is not an output with its reference."
            raise Refusal(-32602, reason) from cause
    return unspent


def _no_context(reason: str) -> Refusal:
    message = "Unable to create the evaluation context from the transaction."
    return Refusal(3004, message, {"reason": reason})


def _failures(errors: dict[Pointer, Json]) -> Refusal:
    data = [{"validator": _shown(pointer), "error": error} for pointer, error in errors.items()]
    return Refusal(3010, "Some scripts of the transaction fail.", data)


def _error(code: int, message: str, data: Json) -> Json:
    return {"code": code, "message": message, "data": data}


def _shown(pointer: Pointer) -> Json:
    purpose, index = pointer
    return {"purpose": purpose, "index": index}


def _read(text: str, version: tuple[int, int]) -> Submitted:
    try:
        if len(text) > _MAX_HEX_LENGTH:
            raise ValueError
        content = bytes.fromhex(text)
    except ValueError:
        raise Refusal(-32602, "Invalid request: failed to decode payload from base16.") from None
    return submitted.read(content, version)
