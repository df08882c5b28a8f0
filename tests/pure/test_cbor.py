"""The walk over CBOR against cbor2, for what cbor2 can read, and at depths that it can't."""

import io
from collections.abc import Callable

import cbor2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.cbor import ARRAY, BYTES, MAP, UNSIGNED, Malformed, Reader, end_of, parts_of, unsigned
from tests.pure.cbor_items import chunked, head, items, widths

DEEP = 40_000


@given(items, st.binary(max_size=3))
def test_an_item_is_skipped_to_its_last_byte_and_not_beyond(item: bytes, rest: bytes) -> None:
    assert Reader(item + rest).skip() == item
    for shorter in {len(item) - 1, len(item) // 2, 0}:
        with pytest.raises(Malformed):
            Reader(item[:shorter]).skip()


spliced = st.tuples(items, st.binary(max_size=4), st.integers(0, 60)).map(
    lambda of: of[0][: of[2]] + of[1] + of[0][of[2] :]
)


@given(st.binary(max_size=30) | spliced)
@example(b"\xf8\x00")
@example(b"\x82\x00\xff")
@example(b"\xa1\xff\xff")
@example(b"\x5f\x61a\xff")
@example(b"\x5f\x5f\xff\xff")
@example(b"\xbf\x00\xff")
@example(b"\x1c")
def test_what_cbor2_reads_is_well_formed(data: bytes) -> None:
    """cbor2 refuses more, such as texts that are not UTF-8, and tags whose content is of another type.

    NOTE: it is laxer than RFC 8949 (appendix C) in two ways: it reads the two-byte form of simple values below 32, and
    a break within a container of definite length.
    """
    file = io.BytesIO(data)
    try:
        cbor2.CBORDecoder(file).decode()
    except Exception:  # noqa: BLE001 - its tag decoders raise many kinds
        return
    try:
        assert end_of(data, 0) == file.tell()
    except Malformed as refused:
        assert "is a break" in str(refused) or "a simple value" in str(refused)


@given(st.lists(items, max_size=5), st.booleans())
def test_elements_and_pairs_are_those_of_cbor2(some: list[bytes], indefinite: bool) -> None:
    whole = b"\x9f" + b"".join(some) + b"\xff" if indefinite else head(ARRAY, len(some), 0) + b"".join(some)
    reader = Reader(whole)
    assert [reader.skip() for _ in reader.elements("it")] == some
    reader.end()
    if len(some) % 2 == 0:
        whole = b"\xbf" + b"".join(some) + b"\xff" if indefinite else head(MAP, len(some) // 2, 0) + b"".join(some)
        reader = Reader(whole)
        assert [part for _ in reader.pairs("it") for part in (reader.skip(), reader.skip())] == some
        reader.end()


@given(st.integers(0, 2**64 - 1), widths, st.binary(max_size=300))
def test_numbers_and_byte_strings_have_the_values_of_cbor2(number: int, width: int, content: bytes) -> None:
    assert Reader(head(UNSIGNED, number, width)).unsigned("it") == number == cbor2.loads(head(UNSIGNED, number, width))
    for data in (head(BYTES, len(content), width) + content, chunked(BYTES, [content[:9], content[9:]], width)):
        assert Reader(data).byte_string("it") == content == cbor2.loads(data)


@pytest.mark.parametrize(
    "nested",
    [
        lambda levels: b"\x81" * levels + b"\x00",
        lambda levels: b"\x9f" * levels + b"\xff" * levels,
        lambda levels: b"\xa1\x00" * levels + b"\x00",
        lambda levels: b"\xbf\x00" * levels + b"\x00" + b"\xff" * levels,
        lambda levels: b"\xd8\x79\x9f" * levels + b"\xff" * levels,
        lambda levels: b"\xc1" * levels + b"\x00",
    ],
    ids=["arrays", "indefinite arrays", "maps", "indefinite maps", "constructors", "tags"],
)
def test_depth_is_bounded_by_the_bytes_alone(nested: Callable[[int], bytes]) -> None:
    data = nested(DEEP)
    assert end_of(data, 0) == len(data)
    with pytest.raises(Malformed, match="end"):
        end_of(data[:-1], 0)


@pytest.mark.parametrize("data", [b"\x9b" + b"\xff" * 8, b"\xbb" + b"\xff" * 8, b"\x5b" + b"\xff" * 8 + b"abc"])
def test_a_count_beyond_the_bytes_is_refused_at_their_end(data: bytes) -> None:
    with pytest.raises(Malformed, match="the bytes end"):
        end_of(data, 0)


def test_a_refusal_names_the_field_what_was_expected_and_what_was_found() -> None:
    with pytest.raises(Malformed, match=r"^the fee must be an unsigned integer, not a text \(byte 1\)$"):
        Reader(b"\x00\x61a", 1).unsigned("the fee")
    with pytest.raises(Malformed, match=r"^it ends at byte 1, but 2 bytes follow$"):
        reader = Reader(b"\x00\x00\x00")
        reader.skip()
        reader.end()


@given(st.binary(max_size=3), st.lists(items, max_size=5), st.sampled_from([b"", b"\xd9\x01\x02"]), st.booleans())
def test_parts_are_found_at_their_places(before: bytes, some: list[bytes], tag: bytes, indefinite: bool) -> None:
    content = b"".join(some)
    array = b"\x9f" + content + b"\xff" if indefinite else head(ARRAY, len(some), 0) + content
    whole = before + tag + array
    assert [whole[part] for part in parts_of(whole, len(before))] == some
    assert end_of(whole, len(before)) == len(whole)


def test_the_parts_of_a_map_are_its_keys_and_values() -> None:
    whole = bytes.fromhex("a2016161028103")
    assert [whole[part].hex() for part in parts_of(whole)] == ["01", "6161", "02", "8103"]
    assert [unsigned(whole, part.start) for part in parts_of(whole)] == [1, None, 2, None]


@pytest.mark.parametrize("wrong", ["", "81", "9f", "5820aa", "19aa", "1c", "ff", "df00", "9f01", "a101"])
def test_what_is_no_cbor_is_refused(wrong: str) -> None:
    with pytest.raises(Malformed):
        end_of(bytes.fromhex(wrong), 0)


@pytest.mark.parametrize("other", ["00", "40", "f6", "c100", ""])
def test_only_arrays_and_maps_have_parts(other: str) -> None:
    with pytest.raises(Malformed):
        parts_of(bytes.fromhex(other))
