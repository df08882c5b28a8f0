"""Where the items of CBOR begin and end (RFC 8949), for callers that need their own bytes, not a decoded copy.

A hash on the chain is that of the bytes that its author sent; decoding and encoding again may change them. No function
recurses, since items may be nested deeper than Python's stack allows; all raise ValueError for invalid CBOR.
"""

Span = tuple[int, int]
"""The position of the first byte of an item, and that after its last byte."""

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)  # major types
_INDEFINITE = 31
_BREAK = b"\xff"


def end_of(data: bytes, start: int) -> int:
    """The position after the item that begins at `start`."""
    to_come: list[int | None] = [1]  # for each container around this position; None if its length is indefinite
    at = start
    while to_come:
        if to_come[-1] == 0:
            to_come.pop()
            continue
        if to_come[-1] is None:
            if data[at : at + 1] == _BREAK:
                to_come.pop()
                at += 1
                continue
        else:
            to_come[-1] -= 1
        major, argument, at = _head(data, at)
        if argument is None:
            to_come.append(None)
        elif major in (_BYTES, _TEXT):
            at += argument
        elif major == _TAG:
            to_come.append(1)
        elif major in (_ARRAY, _MAP):
            to_come.append(argument * (1 + (major == _MAP)))
    if at > len(data):
        raise ValueError("bytes are missing at the end")
    return at


def parts_of(data: bytes, start: int = 0) -> list[Span]:
    """The items of the array or map that begins at `start`, after any tags. A map's are keys and values in turn."""
    major, argument, at = _head(data, start)
    while major == _TAG:
        major, argument, at = _head(data, at)
    if major not in (_ARRAY, _MAP):
        raise ValueError(f"expected an array or a map at byte {start}")
    left = None if argument is None else argument * (1 + (major == _MAP))
    found = list[Span]()
    while left != len(found) and not (left is None and data[at : at + 1] == _BREAK):
        found.append((at, end_of(data, at)))
        at = found[-1][1]
    return found


def unsigned(data: bytes, start: int) -> int | None:
    """The unsigned integer that begins at `start`; None if another item begins there."""
    major, argument, _ = _head(data, start)
    return argument if major == _UNSIGNED else None


def _head(data: bytes, at: int) -> tuple[int, int | None, int]:
    """The major type and the argument of the item at a position, None for an indefinite length, and what follows."""
    if at >= len(data):
        raise ValueError("bytes are missing at the end")
    major, short = data[at] >> 5, data[at] & 31
    if short < 24:
        return major, short, at + 1
    if short == _INDEFINITE and _BYTES <= major <= _MAP:
        return major, None, at + 1
    if short > 27:
        raise ValueError(f"an invalid head at byte {at}")
    after = at + 1 + (1 << short - 24)
    return major, int.from_bytes(data[at + 1 : after]), after
