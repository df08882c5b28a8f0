"""Datums and native scripts as JSON, from their CBOR.

A datum (CDDL `plutus_data`) follows the detailed schema of cardano-cli and Ogmios: `{"int": 1}`, `{"bytes": "00ff"}`,
`{"list": [...]}`, `{"map": [{"k": ..., "v": ...}]}`, `{"constructor": 0, "fields": [...]}`. Nothing is lost: a map
keeps its order and repeated keys, which a decoder into Python's dicts would not, and integers are exact.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import cbor2

Part = TypeVar("Part")

MAX_LEVELS = 100
"""The maximum nesting of JSON in answers. Datums and metadata may have 16,000 levels, more than JSON parsers accept."""

_BREAK = 0xFF
_INDEFINITE = 31
_BIG_TAGS = (2, 3)
_GENERAL_CONSTRUCTOR = 102


class _Unreadable(Exception):
    """Not the CBOR of a datum, or nested too deeply."""


def of_cbor(data: bytes) -> Any:
    """A datum as JSON; None if it is not one, or nested too deeply."""
    reader = _Reader(data)
    try:
        value = reader.value(MAX_LEVELS)
    except (_Unreadable, IndexError, RecursionError):
        return None
    return value if reader.at == len(data) else None


def fields_of(data: bytes) -> list[bytes] | None:
    """The CBOR of each field of a constructor, None for anything else."""
    return _parts(data, _Reader.fields)


def pairs_of(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """The CBOR of each key of a map and of its value, None for anything else."""
    return _parts(data, _Reader.pairs)


def native_script(data: bytes) -> Any:
    """A native script in the JSON of cardano-cli; None if it is of an unknown kind, or nested too deeply."""
    try:
        return _clause(cbor2.loads(data), MAX_LEVELS)
    except (_Unreadable, cbor2.CBORError, RecursionError):
        return None


def _parts(data: bytes, read: "Callable[[_Reader], Part]") -> Part | None:
    try:
        return read(_Reader(data))
    except (_Unreadable, IndexError, RecursionError, ValueError):
        return None


def _clause(clause: Any, levels: int) -> Any:
    if not levels:
        raise _Unreadable
    match clause:
        case [0, bytes(key_hash)]:
            return {"type": "sig", "keyHash": key_hash.hex()}
        case [1 | 2 as kind, list(parts)]:
            return {"type": "all" if kind == 1 else "any", "scripts": [_clause(part, levels - 1) for part in parts]}
        case [3, int(required), list(parts)]:
            return {"type": "atLeast", "required": required, "scripts": [_clause(part, levels - 1) for part in parts]}
        case [4 | 5 as kind, int(slot)]:
            return {"type": "after" if kind == 4 else "before", "slot": slot}
    raise _Unreadable


class _Reader:
    """Reads the kinds of CBOR that a datum consists of. Raises _Unreadable or IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def fields(self) -> list[bytes]:
        """The CBOR of each field of a constructor."""
        major, tag = self._head()
        if major != 6:
            raise _Unreadable
        major, length = self._head()
        if tag == _GENERAL_CONSTRUCTOR and major == 4:
            self.value(MAX_LEVELS)  # the constructor's number
            major, length = self._head()
        if major != 4:
            raise _Unreadable
        return self._spans(length)

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The CBOR of the keys and values of a map."""
        major, length = self._head()
        if major != 5:
            raise _Unreadable
        parts = self._spans(None if length is None else 2 * length)
        return list(zip(parts[::2], parts[1::2], strict=True))

    def _spans(self, length: int | None) -> list[bytes]:
        """The CBOR of each of the next items."""
        spans: list[bytes] = []
        while not self._ends() if length is None else len(spans) < length:
            start = self.at
            self.value(MAX_LEVELS)
            spans.append(self._data[start : self.at])
        return spans

    def value(self, levels: int) -> Any:
        if not levels:
            raise _Unreadable
        major, length = self._head()
        match major:
            case 0:
                return {"int": self._definite(length)}
            case 1:
                return {"int": -1 - self._definite(length)}
            case 2:
                return {"bytes": self._bytes(length).hex()}
            case 4:
                return {"list": self._items(length, levels - 1)}
            case 5:
                return {"map": self._pairs(length, levels - 1)}
            case 6:
                return self._tagged(self._definite(length), levels)
        raise _Unreadable

    def _tagged(self, tag: int, levels: int) -> Any:
        major, length = self._head()
        if tag in _BIG_TAGS and major == 2:
            number = int.from_bytes(self._bytes(length))
            return {"int": number if tag == _BIG_TAGS[0] else -1 - number}
        if major != 4:
            raise _Unreadable
        if tag == _GENERAL_CONSTRUCTOR:
            match self._items(length, levels):
                case [{"int": int(constructor)}, {"list": list(fields)}] if constructor >= 0:
                    return {"constructor": constructor, "fields": fields}
            raise _Unreadable
        return {"constructor": _constructor(tag), "fields": self._items(length, levels - 1)}

    def _head(self) -> tuple[int, int | None]:
        """The major type and the argument of the next item, None for an indefinite length."""
        first = self._data[self.at]
        self.at += 1
        major, short = first >> 5, first & 31
        if short < 24:
            return major, short
        if short == _INDEFINITE:
            return major, None
        if short > 27:
            raise _Unreadable
        return major, int.from_bytes(self._take(1 << short - 24))

    def _definite(self, argument: int | None) -> int:
        if argument is None:
            raise _Unreadable
        return argument

    def _bytes(self, length: int | None) -> bytes:
        """A byte string, which may be in chunks."""
        if length is not None:
            return self._take(length)
        chunks = []
        while not self._ends():
            major, part = self._head()
            if major != 2:
                raise _Unreadable
            chunks.append(self._take(self._definite(part)))
        return b"".join(chunks)

    def _items(self, length: int | None, levels: int) -> list[Any]:
        if length is not None:
            return [self.value(levels) for _ in range(length)]
        items = []
        while not self._ends():
            items.append(self.value(levels))
        return items

    def _pairs(self, length: int | None, levels: int) -> list[Any]:
        if length is not None:
            return [{"k": self.value(levels), "v": self.value(levels)} for _ in range(length)]
        pairs = []
        while not self._ends():
            pairs.append({"k": self.value(levels), "v": self.value(levels)})
        return pairs

    def _ends(self) -> bool:
        """Whether a list, map or byte string of indefinite length ends here."""
        ends = self._data[self.at] == _BREAK
        self.at += ends
        return ends

    def _take(self, length: int) -> bytes:
        taken = self._data[self.at : self.at + length]
        if len(taken) != length:
            raise _Unreadable
        self.at += length
        return taken


def _constructor(tag: int) -> int:
    """The number of a constructor (CDDL `constr`)."""
    if 121 <= tag <= 127:
        return tag - 121
    if 1280 <= tag <= 1400:
        return tag - 1280 + 7
    raise _Unreadable
