"""Transaction metadata as JSON in the detailed schema of Ogmios and cardano-cli: each value is an object with its type.

`{"int": 1}`, `{"string": "a"}`, `{"bytes": "00ff"}`, `{"list": [...]}`, `{"map": [{"k": ..., "v": ...}]}`. If a map has
the same key twice, which the ledger allows, only the last value is shown; nothing else is lost. Values that are nested
deeper than MAX_LEVELS are not shown.
"""

import json
from typing import Any

import cbor2

from api.chain.plutus_data import MAX_LEVELS


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


def detailed(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Raises ValueError for a value that metadata can't have, or that is nested deeper than `levels`."""
    if not levels:
        raise ValueError("nested too deeply")
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
            return {"list": [detailed(item, levels - 1) for item in value]}
    if not hasattr(value, "items"):  # a map used as a key is a frozen one
        raise ValueError(value)
    return {"map": [{"k": detailed(key, levels - 1), "v": detailed(item, levels - 1)} for key, item in value.items()]}


def _is_detailed(value: Any, levels: int = MAX_LEVELS) -> bool:
    """Whether a value follows the detailed schema and is not nested deeper than `levels`."""
    if not levels:
        return False
    match value:
        case {"int": int(), **others}:
            return not others
        case {"string": str(), **others} | {"bytes": str(), **others}:
            return not others
        case {"list": list(items), **others}:
            return not others and all(_is_detailed(item, levels - 1) for item in items)
        case {"map": list(pairs), **others}:
            return not others and all(_is_pair(pair, levels - 1) for pair in pairs)
    return False


def _is_pair(pair: Any, levels: int) -> bool:
    match pair:
        case {"k": key, "v": value, **others}:
            return not others and _is_detailed(key, levels) and _is_detailed(value, levels)
    return False
