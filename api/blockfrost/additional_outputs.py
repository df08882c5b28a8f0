"""Outputs that a transaction spends before they are on the chain: from Ogmios 5's format to that of Ogmios 6."""

from typing import Annotated, Any

import msgspec

from api.parameters import JsonSchema, Kind

Json = dict[str, Any]

MOST = 100

_Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-fA-F]{2})*$")]
_Quantity = Annotated[int, msgspec.Meta(ge=0)]


class _Input(msgspec.Struct, frozen=True):
    txId: Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$")]  # noqa: N815 - Ogmios' names
    index: Annotated[int, msgspec.Meta(ge=0, lt=2**16)]


class _Output(msgspec.Struct, frozen=True):
    """Ogmios has `assets` in `value`, by policy and name with a dot between them; Mesh has the policies themselves."""

    address: str
    value: dict[str, _Quantity | dict[str, _Quantity]]
    datumHash: _Hex | None = None  # noqa: N815 - as above
    datum: _Hex | None = None
    script: dict[str, _Hex] | None = None


class AdditionalOutputs(Kind[tuple[Json, ...]]):
    """Pairs of a reference to an output and the output."""

    def __init__(self) -> None:
        schema: JsonSchema = {
            "type": "array",
            "maxItems": MOST,
            "items": {"type": "array", "items": {"type": "object"}, "minItems": 2, "maxItems": 2},
        }
        expected = f"an array of at most {MOST} pairs of a reference {{txId, index}} and an output {{address, value}}"
        super().__init__(expected, schema)

    def of_json(self, value: object) -> tuple[Json, ...]:
        try:
            pairs = msgspec.convert(value, list[tuple[_Input, _Output]])
        except msgspec.ValidationError as cause:
            raise ValueError(value) from cause
        if len(pairs) > MOST:
            raise ValueError(value)
        return tuple(_translated(source, output) for source, output in pairs)


def _translated(source: _Input, output: _Output) -> Json:
    shown: Json = {
        "transaction": {"id": source.txId},
        "index": source.index,
        "address": output.address,
        "value": _value(output.value),
    }
    if output.datumHash is not None:
        shown["datumHash"] = output.datumHash
    if output.datum is not None:
        shown["datum"] = output.datum
    for language, cbor in (output.script or {}).items():
        shown["script"] = {"language": language, "cbor": cbor}
    return shown


def _value(given: dict[str, Any]) -> Json:
    """Raises ValueError."""
    value: Json = {}
    for name, part in given.items():
        if name == "coins" and isinstance(part, int):
            value["ada"] = {"lovelace": part}
        elif name == "assets" and isinstance(part, dict):
            for unit, quantity in part.items():
                policy, _, asset_name = unit.partition(".")
                value.setdefault(policy, {})[asset_name] = quantity
        elif isinstance(part, dict):
            value[name] = part
        else:
            raise ValueError(name)
    if "ada" not in value:
        raise ValueError("coins")
    return value
