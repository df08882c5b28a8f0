"""Metadata as plain JSON: from the detailed schema, which names the type of each value, to values alone.

Bytes become `0x` and hex digits. A key that is not text becomes text, a list or a map its JSON.
"""

import json
from typing import Any


def of_detailed(value: Any) -> Any:
    """The plain form of a value in the detailed schema."""
    match value:
        case {"int": number}:
            return number
        case {"string": text}:
            return text
        case {"bytes": digits}:
            return f"0x{digits}"
        case {"list": items}:
            return [of_detailed(item) for item in items]
    return {_key(of_detailed(pair["k"])): of_detailed(pair["v"]) for pair in value["map"]}


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)
