"""Outputs that a transaction spends before they are on the chain: from Ogmios 5's format to that of Ogmios 6.

Nothing is dropped on the way: a member that this service doesn't know is refused by name. The format is that of `Utxo`
in `docs/static/api/v5.6/ogmios.wsp.json` of https://github.com/CardanoSolutions/ogmios, with two additions: Blockfrost
documents `datum_hash`, and SDKs send policies as members of `value`.
"""

import re
from typing import Annotated, Any

import msgspec

from api import errors
from api.parameters import JsonSchema, Kind
from shared.address import MAX_TEXT_LENGTH

Json = dict[str, Any]

MAX_PAIRS = 100

_MAX_QUANTITY = 2**64 - 1
_NAME = "additionalUtxoSet"
_POLICY = re.compile("[0-9a-fA-F]{56}")
_ASSET_NAME = re.compile("([0-9a-fA-F]{2}){0,32}")
_NATIVE, _PLUTUS = "native", ("plutus:v1", "plutus:v2", "plutus:v3")

_Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{2})+\\Z")]
_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}\\Z")]
_KeyHash = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{56}\\Z")]
_Slot = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    txId: _Hash  # noqa: N815 - Ogmios' names
    index: Annotated[int, msgspec.Meta(ge=0, lt=2**16)]


class _Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    address: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT_LENGTH)]
    value: Json
    datumHash: _Hash | None = None  # noqa: N815 - as above
    datum_hash: _Hash | None = None
    datum: _Hex | None = None
    script: Json | None = None


class AdditionalOutputs(Kind[tuple[Json, ...]]):
    """Pairs of a reference to an output and the output."""

    def __init__(self) -> None:
        schema: JsonSchema = {
            "type": "array",
            "maxItems": MAX_PAIRS,
            "items": {"type": "array", "items": {"type": "object"}, "minItems": 2, "maxItems": 2},
        }
        expected = (
            f"an array of at most {MAX_PAIRS} pairs of a reference {{txId, index}} and an output {{address, value}}"
        )
        super().__init__(expected, schema)

    def of_json(self, value: object) -> tuple[Json, ...]:
        """Raises Refusal, which names the member that is wrong, or ValueError if the whole is not an array of pairs."""
        if not isinstance(value, list) or len(value) > MAX_PAIRS:
            raise ValueError(value)
        pairs = _converted(value, list[tuple[_Input, _Output]], "")
        return tuple(_translated(source, output, f"[{place}][1]") for place, (source, output) in enumerate(pairs))


def _translated(source: _Input, output: _Output, at: str) -> Json:
    """An output in the format of Ogmios 6. `at` is its place in the whole."""
    shown: Json = {
        "transaction": {"id": source.txId},
        "index": source.index,
        "address": output.address,
        "value": _value(output.value, f"{at}.value"),
    }
    data = {name: getattr(output, name) for name in ("datumHash", "datum_hash", "datum")}
    given = [name for name, part in data.items() if part is not None]
    if len(given) > 1:
        raise _refusal(f"{at}.{given[1]}", f"is given beside {given[0]}; an output has one datum or the hash of one")
    if given:
        shown["datum" if given[0] == "datum" else "datumHash"] = data[given[0]]
    if output.script is not None:
        shown["script"] = _script(output.script, f"{at}.script")
    return shown


def _value(given: Json, at: str) -> Json:
    """A value by policy and name."""
    if "coins" not in given:
        raise _refusal(f"{at}.coins", "is required")
    value: Json = {"ada": {"lovelace": _quantity(given["coins"], f"{at}.coins")}}
    for name, part in given.items():
        if name == "coins":
            continue
        if name != "assets" and not _POLICY.fullmatch(name):
            raise _refusal(f"{at}.{name}", "is unknown: members are coins, assets, and policies of 56 hex digits")
        if not isinstance(part, dict):
            raise _refusal(f"{at}.{name}", "must be an object of quantities")
        for unit, quantity in part.items():
            where = f"{at}.{name}.{unit}"
            policy, dot, asset_name = unit.partition(".") if name == "assets" else (name, ".", unit)
            if not _POLICY.fullmatch(policy) or not _ASSET_NAME.fullmatch(asset_name) or (dot and unit.endswith(".")):
                raise _refusal(where, _UNIT if name == "assets" else _HEX_NAME)
            of_policy = value.setdefault(policy.lower(), {})
            if asset_name.lower() in of_policy:
                raise _refusal(where, "is given twice")
            of_policy[asset_name.lower()] = _quantity(quantity, where)
    return value


_HEX_NAME = "is not an asset name: expected at most 64 hex digits"
_UNIT = "is not an asset: expected a policy of 56 hex digits and, after a dot, the name in at most 64, unless empty"


def _quantity(given: object, at: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _MAX_QUANTITY:
        raise _refusal(at, f"must be an integer from 0 to {_MAX_QUANTITY}")
    return given


def _script(given: Json, at: str) -> Json:
    """A script by its only member, which names its language."""
    if len(given) != 1:
        raise _refusal(at, "must have one member, the language")
    [(language, body)] = given.items()
    if language == _NATIVE:
        return {"language": language, "json": _clause(body, f"{at}.{language}")}
    if language not in _PLUTUS:
        raise _refusal(f"{at}.{language}", f"is unknown: languages are {_NATIVE}, {', '.join(_PLUTUS)}")
    return {"language": language, "cbor": _converted(body, _Hex, f"{at}.{language}")}


def _clause(given: object, at: str) -> Json:
    """A native script: the hash of a key, or an object whose only member names the kind; of `n` parts, the number."""
    if isinstance(given, str):
        return {"clause": "signature", "from": _converted(given, _KeyHash, at)}
    if not isinstance(given, dict) or len(given) != 1:
        raise _refusal(at, "must be the hash of a key, or an object with one member")
    [(kind, part)] = given.items()
    at = f"{at}.{kind}"
    if kind in ("startsAt", "expiresAt"):
        return {"clause": "after" if kind == "startsAt" else "before", "slot": _converted(part, _Slot, at)}
    if kind not in ("all", "any") and not re.fullmatch("[0-9]{1,9}", kind):
        raise _refusal(at, "is unknown: kinds are all, any, a number of parts, startsAt and expiresAt")
    parts = [_clause(clause, f"{at}[{place}]") for place, clause in enumerate(_converted(part, list[Any], at))]
    return {"clause": kind, "from": parts} if kind in ("all", "any") else {
        "clause": "some", "atLeast": int(kind), "from": parts,
    }  # fmt: skip


def _converted(given: object, kind: Any, at: str) -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as cause:
        said, _, path = str(cause).partition(" - at `$")
        raise _refusal(f"{at}{path.rstrip('`')}", f"is wrong: {said}") from cause


def _refusal(at: str, said: str) -> errors.Refusal:
    return errors.invalid_parameter(f"{_NAME}{at} {said}")
