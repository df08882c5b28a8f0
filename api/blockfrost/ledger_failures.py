"""The ledger's reasons for refusing a transaction, in the form and words of Blockfrost's `/tx/submit`.

The message of the error is JSON in which cardano-node's submit API nests the failures as Haskell shows them. Clients
parse it, or search it for a name such as `OutsideValidityIntervalUTxO`. Ogmios' codes are translated back by
`server/src/Ogmios/Data/Ledger/PredicateFailure` of https://github.com/CardanoSolutions/ogmios. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

Json = dict[str, Any]

_WITNESSES = {  # failures of the rule UTXOW
    3100: "InvalidWitnessesUTXOW",
    3101: "MissingVKeyWitnessesUTXOW",
    3102: "MissingScriptWitnessesUTXOW",
    3103: "ScriptWitnessNotValidatingUTXOW",
    3104: "ExtraneousScriptWitnessesUTXOW",
    3105: "MissingTxBodyMetadataHash",
    3106: "MissingTxMetadata",
    3107: "ConflictingMetadataHash",
    3108: "InvalidMetadata",
    3109: "MissingRedeemers",
    3110: "ExtraRedeemers",
    3111: "MissingRequiredDatums",
    3112: "NotAllowedSupplementalDatums",
    3113: "PPViewHashesDontMatch",
    3114: "UnspendableUTxONoDatumHash",
}
_OUTPUTS = {  # failures of the rule UTXO, which UTXOW wraps
    3117: "BadInputsUTxO",
    3118: "OutsideValidityIntervalUTxO",
    3119: "MaxTxSizeUTxO",
    3120: "OutputTooBigUTxO",
    3121: "InputSetEmptyUTxO",
    3122: "FeeTooSmallUTxO",
    3123: "ValueNotConservedUTxO",
    3125: "BabbageOutputTooSmallUTxO",
    3126: "OutputBootAddrAttrsTooBig",
    3128: "InsufficientCollateral",
    3129: "ScriptsNotPaidUTxO",
    3130: "OutsideForecast",
    3131: "TooManyCollateralInputs",
    3132: "NoCollateralInputs",
    3133: "CollateralContainsNonADA",
    3134: "ExUnitsTooBigUTxO",
    3135: "IncorrectTotalCollateralField",
    3136: "ValidationTagMismatch",
    3164: "BabbageNonDisjointRefInputs",
}
NOT_SIGNED, EXPIRED = 3101, 3118
"""The codes of what this service finds before the node is asked."""


def message(code: int | None, data: Any, sentence: str) -> str:
    """The message of a refusal with one of Ogmios' codes and its data. A failure without a name has its sentence.

    `sentence` is this service's own message.
    """
    failure = sentence
    if code in _WITNESSES:
        failure = f"ConwayUtxowFailure ({_shown(code, _WITNESSES[code], data)})"
    elif code in _OUTPUTS:
        failure = f"ConwayUtxowFailure (UtxoFailure ({_shown(code, _OUTPUTS[code], data)}))"
    applied = {"era": "ShelleyBasedEraConway", "error": [failure], "kind": "ShelleyTxValidationError"}
    validated = {"contents": applied, "tag": "TxValidationErrorInCardanoMode"}
    submitted = {"contents": validated, "tag": "TxCmdTxSubmitValidationError"}
    return msgspec.json.encode({"contents": submitted, "tag": "TxSubmitFail", "message": sentence}).decode()


def _shown(code: int, name: str, data: Any) -> str:
    """A failure, with what it says if its data have the form that is known."""
    try:
        return f"{name} {_SHOW[code](data)}" if code in _SHOW else name
    except (KeyError, TypeError, AttributeError):
        return name


def _signatories(data: Json) -> str:
    return _set(f'KeyHash {{unKeyHash = "{key_hash}"}}' for key_hash in data["missingSignatories"])


def _inputs(data: Json) -> str:
    return _set(
        f'TxIn (TxId {{unTxId = SafeHash "{reference["transaction"]["id"]}"}}) (TxIx {{unTxIx = {reference["index"]}}})'
        for reference in data["unknownOutputReferences"]
    )


def _interval(data: Json) -> str:
    told = data["validityInterval"]
    before, after = (_maybe(told.get(name)) for name in ("invalidBefore", "invalidAfter"))
    interval = f"ValidityInterval {{invalidBefore = {before}, invalidHereafter = {after}}}"
    return f"({interval}) (SlotNo {data['currentSlot']})"


def _fee(data: Json) -> str:
    paid, least = (_coin(data[name]) for name in ("providedFee", "minimumRequiredFee"))
    return f"(Mismatch {{mismatchSupplied = {paid}, mismatchExpected = {least}}})"


def _values(data: Json) -> str:
    consumed, produced = (_value(data[name]) for name in ("valueConsumed", "valueProduced"))
    return f"(Mismatch {{mismatchSupplied = {consumed}, mismatchExpected = {produced}}})"


_SHOW: Mapping[int, Callable[[Any], str]] = {
    3101: _signatories,
    3117: _inputs,
    3118: _interval,
    3122: _fee,
    3123: _values,
}


def _value(told: Json) -> str:
    policies = [
        f'(PolicyID {{policyID = ScriptHash "{policy}"}},fromList ['
        + ",".join(f'("{name}",{quantity})' for name, quantity in names.items())
        + "])"
        for policy, names in told.items()
        if policy != "ada"
    ]
    return f"MaryValue ({_coin(told)}) (MultiAsset (fromList [{','.join(policies)}]))"


def _coin(told: Json) -> str:
    return f"Coin {told['ada']['lovelace']}"


def _maybe(slot_no: int | None) -> str:
    return "SNothing" if slot_no is None else f"SJust (SlotNo {slot_no})"


def _set(items: Iterable[str]) -> str:
    return f"(fromList [{','.join(items)}])"
