"""Any CBOR, in all encodings of its heads, for tests that compare what is read with cbor2."""

import struct

from hypothesis import strategies as st

from shared.cbor import ARRAY, BYTES, MAP, TAG, TEXT


def head(major: int, argument: int, width: int) -> bytes:
    """A head whose argument has the given number of bytes, or the least number if that is too small."""
    if width == 0 and argument < 24:
        return bytes((major << 5 | argument,))
    for code, size in enumerate((1, 2, 4, 8)):
        if size >= width and argument < 1 << 8 * size:
            return bytes((major << 5 | 24 + code,)) + argument.to_bytes(size)
    raise AssertionError(argument)


def chunked(major: int, chunks: list[bytes], width: int) -> bytes:
    return bytes((major << 5 | 31,)) + b"".join(head(major, len(one), width) + one for one in chunks) + b"\xff"


def containers(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Arrays, maps and tags, in every form that their heads have."""
    many, widths = st.lists(items, max_size=4), st.sampled_from((0, 1, 2, 4, 8))
    pairs = st.lists(st.tuples(items, items), max_size=3).map(lambda pairs: [part for pair in pairs for part in pair])
    return st.one_of(
        st.tuples(many, widths).map(lambda of: head(ARRAY, len(of[0]), of[1]) + b"".join(of[0])),
        many.map(lambda of: b"\x9f" + b"".join(of) + b"\xff"),
        st.tuples(pairs, widths).map(lambda of: head(MAP, len(of[0]) // 2, of[1]) + b"".join(of[0])),
        pairs.map(lambda of: b"\xbf" + b"".join(of) + b"\xff"),
        # NOTE: tags without a meaning, of which cbor2 does not demand a type
        st.tuples(st.sampled_from((102, 121, 1280, 1_000_000)), widths, items).map(
            lambda of: head(TAG, of[0], of[1]) + of[2]
        ),
    )


widths = st.sampled_from((0, 1, 2, 4, 8))
integers = st.tuples(st.integers(0, 1), st.integers(0, 2**64 - 1), widths).map(lambda of: head(*of))
strings = st.tuples(st.binary(max_size=40), widths).map(lambda of: head(BYTES, len(of[0]), of[1]) + of[0])
texts = st.tuples(st.text(max_size=10).map(str.encode), widths).map(lambda of: head(TEXT, len(of[0]), of[1]) + of[0])
in_chunks = st.one_of(
    st.tuples(st.lists(st.binary(max_size=9), max_size=3), widths).map(lambda of: chunked(BYTES, *of)),
    st.tuples(st.lists(st.text(max_size=4).map(str.encode), max_size=3), widths).map(lambda of: chunked(TEXT, *of)),
)
simple = st.one_of(
    st.sampled_from((b"\xf4", b"\xf5", b"\xf6", b"\xf7", b"\xe5", b"\xf8\x20", b"\xf8\xff")),
    st.floats().map(lambda number: b"\xfb" + struct.pack(">d", number)),
)
items = st.recursive(st.one_of(integers, strings, texts, in_chunks, simple), containers, max_leaves=30)
