"""Metadata as plain JSON: from the detailed schema, which names the type of each value, to values alone.

Bytes become `0x` and hex digits. A key that is not text becomes text; a list or a map becomes its JSON.
"""

import json
from typing import Any

_MAX_KEYS_IN_KEYS = 3
"""The maximum depth of keys nested in keys. Each level escapes the quotes and backslashes below it again, which doubles
them: a hundred bytes of metadata could become gigabytes.
"""


def of_detailed(value: Any, levels: int = _MAX_KEYS_IN_KEYS) -> Any:
    """The plain form of a value in the detailed schema. Raises ValueError if keys are nested too deeply in keys."""
    match value:
        case {"int": number}:
            return number
        case {"string": text}:
            return text
        case {"bytes": digits}:
            return f"0x{digits}"
        case {"list": items}:
            return [of_detailed(item, levels) for item in items]
    return {_key(pair["k"], levels): of_detailed(pair["v"], levels) for pair in value["map"]}


def _key(key: Any, levels: int) -> str:
    if not levels and not key.keys().isdisjoint(("list", "map")):
        raise ValueError("keys are nested too deeply in keys")
    shown = of_detailed(key, levels - 1)
    return shown if isinstance(shown, str) else json.dumps(shown)
