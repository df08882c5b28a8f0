"""Transaction metadata as JSON by the detailed schema of Ogmios and cardano-cli: each value is an object with its type.

`{"int": 1}`, `{"string": "a"}`, `{"bytes": "00ff"}`, `{"list": [...]}`, `{"map": [{"k": ..., "v": ...}]}`. If a map has
the same key twice, which the ledger allows, only the last value is shown; nothing else is lost.
"""

import json
from typing import Any

import cbor2


def of_cbor(data: bytes) -> Any:
    """The metadata under one label from its CBOR; None if it is not metadata or nested too deeply."""
    try:
        return detailed(cbor2.loads(data))
    except Exception:  # noqa: BLE001  NOTE: cbor2's tag decoders raise many kinds of errors
        return None


def of_json(text: bytes) -> Any:
    """The same from the JSON of a node without CBOR, which follows either of Ogmios' schemas.

    In the plain schema, keys are text even if they were numbers.
    """
    try:
        value = json.loads(text)
        return value if _is_detailed(value) else detailed(value)
    except (ValueError, RecursionError):
        return None


def detailed(value: Any) -> Any:
    """Raises ValueError for a value that metadata can't have."""
    match value:
        case bool() | None:
            raise ValueError(value)
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case bytes():
            return {"bytes": value.hex()}
        case list() | tuple():
            return {"list": [detailed(item) for item in value]}
    if not hasattr(value, "items"):  # a map that is a key is a frozen one
        raise ValueError(value)
    return {"map": [{"k": detailed(key), "v": detailed(item)} for key, item in value.items()]}


def _is_detailed(value: Any) -> bool:
    match value:
        case {"int": int(), **others}:
            return not others
        case {"string": str(), **others} | {"bytes": str(), **others}:
            return not others
        case {"list": list(items), **others}:
            return not others and all(_is_detailed(item) for item in items)
        case {"map": list(pairs), **others}:
            return not others and all(_is_pair(pair) for pair in pairs)
    return False


def _is_pair(pair: Any) -> bool:
    match pair:
        case {"k": key, "v": value, **others}:
            return not others and _is_detailed(key) and _is_detailed(value)
    return False
