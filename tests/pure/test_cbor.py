"""Where items of CBOR begin and end, compared with cbor2."""

import io
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import cbor


def _head(major: int, argument: int, width: int) -> bytes:
    """The head of an item, with an argument of at least `width` bytes: 0 is the shortest form."""
    if argument < 24 and not width:
        return bytes((major << 5 | argument,))
    size = next(size for size in (1, 2, 4, 8) if size >= width and argument < 1 << 8 * size)
    return bytes((major << 5 | 23 + size.bit_length(),)) + argument.to_bytes(size)


widths = st.sampled_from([0, 0, 1, 2, 4, 8])
numbers = st.builds(_head, st.sampled_from([0, 1]), st.integers(0, 2**64 - 1), widths)
strings = st.builds(lambda content, width: _head(2, len(content), width) + content, st.binary(max_size=40), widths)
chunked = st.lists(strings).map(lambda pieces: b"\x5f" + b"".join(pieces) + b"\xff")
simple = st.sampled_from([b"\xf4", b"\xf5", b"\xf6", b"\xfb" + bytes(8), b"\x63abc", b"\x7f\x61a\xff"])


def _containers(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    some = st.lists(inner, max_size=30)
    array = st.builds(lambda parts, width: _head(4, len(parts), width) + b"".join(parts), some, widths)
    endless = some.map(lambda parts: b"\x9f" + b"".join(parts) + b"\xff")
    entries = st.dictionaries(numbers, inner, max_size=5)
    fixed = st.builds(lambda found, width: _head(5, len(found), width) + _joined(found), entries, widths)
    open_map = entries.map(lambda found: b"\xbf" + _joined(found) + b"\xff")
    tagged = inner.map(lambda part: _head(6, 121, 0) + part)
    return array | endless | fixed | open_map | tagged


def _joined(entries: dict[bytes, bytes]) -> bytes:
    return b"".join(key + value for key, value in entries.items())


items = st.recursive(numbers | strings | chunked | simple, _containers, max_leaves=20)


@given(items, st.binary(max_size=3), st.binary(max_size=3))
def test_an_item_ends_where_cbor2_ends_it(item: bytes, before: bytes, after: bytes) -> None:
    file = io.BytesIO(before + item + after)
    file.seek(len(before))
    cbor2.CBORDecoder(file).decode()
    assert cbor.end_of(before + item + after, len(before)) == file.tell() == len(before) + len(item)


@given(st.lists(items, max_size=30), st.sampled_from([b"", b"\xd9\x01\x02"]), st.booleans())
def test_the_parts_of_an_array_are_its_items(parts: list[bytes], tag: bytes, endless: bool) -> None:
    array = b"\x9f" + b"".join(parts) + b"\xff" if endless else _head(4, len(parts), 0) + b"".join(parts)
    whole = tag + array
    assert [whole[start:end] for start, end in cbor.parts_of(whole)] == parts


def test_the_parts_of_a_map_are_its_keys_and_values() -> None:
    whole = bytes.fromhex("a2016161028103")
    assert [whole[start:end].hex() for start, end in cbor.parts_of(whole)] == ["01", "6161", "02", "8103"]


def test_depth_is_no_limit() -> None:
    whole = b"\x81" * 100_000 + b"\x00"
    assert cbor.end_of(whole, 0) == len(whole)


@pytest.mark.parametrize("wrong", ["", "81", "9f", "5820aa", "19aa", "1c", "ff", "df00", "9f01", "a101"])
def test_what_is_no_cbor_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        cbor.end_of(bytes.fromhex(wrong), 0)


@pytest.mark.parametrize("other", ["00", "40", "f6", "c100", ""])
def test_only_arrays_and_maps_have_parts(other: Any) -> None:
    with pytest.raises(ValueError):
        cbor.parts_of(bytes.fromhex(other))
