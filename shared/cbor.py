"""Walks over the bytes of CBOR (RFC 8949) at any depth: where items begin and end, and the few values a caller wants.

It builds no values, so nothing is lost: bytes can be hashed as they were sent, maps keep their order and their
duplicate keys, and an item may nest as deep as its bytes allow. cbor2 decodes items into values; it gives no positions,
and stops after 400 levels.
"""

from collections.abc import Iterator

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
"""Major types (RFC 8949, section 3.1). SIMPLE includes floats, and the break that ends an indefinite length."""

_NAMES = (
    "an unsigned integer",
    "a negative integer",
    "a byte string",
    "a text",
    "an array",
    "a map",
    "a tag",
    "a value",
)
_BREAK = 0xFF
_INDEFINITE = 31
_FIRST_WIDE_SIMPLE = 32  # simple values below have no second form, of two bytes


class Malformed(ValueError):
    """Bytes that are not what they should be. The message names the position and what was expected."""


class Reader:
    """Reads items one after the other. `at` is the position of the next byte.

    All methods raise Malformed for bytes that are not well-formed, and for an item of another type than the method
    reads; `name` is what the message then calls it.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def skip(self) -> bytes:
        """The bytes of a whole item."""
        start = self.at
        left = 1  # items that the innermost containers of definite length still lack
        open_: list[_Indefinite] = []
        while left or open_:
            if not left:
                if self._ends():
                    left = open_.pop().close(self.at)
                    continue
                open_[-1].items += 1
                left = 1
            major, argument = self.head()
            left -= 1
            if major in (ARRAY, MAP):
                if argument is None:
                    open_.append(_Indefinite(major, left))
                    left = 0
                else:
                    left += argument if major == ARRAY else 2 * argument
            elif major == TAG:
                left += 1
            elif major in (BYTES, TEXT):
                self._content(major, argument)
        return self.data[start : self.at]

    def head(self) -> tuple[int, int | None]:
        """The major type of an item, and its number, length, count or tag: None if its length is indefinite.

        What follows the head is left to the caller.
        """
        data, at = self.data, self.at
        if at >= len(data):
            raise Malformed(f"the bytes end where an item was expected, at byte {at}")
        major, argument = divmod(data[at], 32)
        self.at = at + 1
        if argument < 24:
            return major, argument
        if argument < 28:
            self.at += 1 << argument - 24
            if self.at > len(data):
                raise Malformed(f"the bytes end within the item at byte {at}")
            argument = int.from_bytes(data[at + 1 : self.at])
            if major == SIMPLE and self.at == at + 2 and argument < _FIRST_WIDE_SIMPLE:
                raise Malformed(f"byte {at} begins a simple value in a form that does not exist")
            return major, argument
        if argument == _INDEFINITE and BYTES <= major <= MAP:
            return major, None
        if data[at] == _BREAK:
            raise Malformed(f"byte {at} is a break, but an item was expected")
        raise Malformed(f"byte {at} does not begin an item")

    def next_major(self) -> int:
        """The major type of the next item, which is not read."""
        if self.at >= len(self.data):
            raise Malformed(f"the bytes end where an item was expected, at byte {self.at}")
        return self.data[self.at] >> 5

    def untag(self) -> None:
        """Read the tags before an item, if any."""
        while self.next_major() == TAG:
            self.head()

    def unsigned(self, name: str) -> int:
        """An unsigned integer."""
        value = self._begin(UNSIGNED, name)
        assert value is not None, "only strings and containers have an indefinite length"
        return value

    def byte_string(self, name: str) -> bytes:
        """The content of a byte string, which may be in chunks."""
        return self._content(BYTES, self._begin(BYTES, name))

    def elements(self, name: str) -> Iterator[int]:
        """The elements of an array, by number. The caller reads each of them before it asks for the next."""
        return self._each(self._begin(ARRAY, name))

    def pairs(self, name: str) -> Iterator[int]:
        """The pairs of a map, by number. The caller reads a key and a value before it asks for the next."""
        return self._each(self._begin(MAP, name))

    def keys(self, name: str) -> Iterator[int]:
        """The keys of a map, which are unsigned integers. The caller reads a value before it asks for the next key."""
        for _ in self.pairs(name):
            yield self.unsigned(f"a key of {name}")

    def end(self) -> None:
        """Raises Malformed if bytes are left."""
        if self.at != len(self.data):
            raise Malformed(f"it ends at byte {self.at}, but {len(self.data) - self.at} bytes follow")

    def _begin(self, major: int, name: str) -> int | None:
        start = self.at
        present, argument = self.head()
        if present != major:
            raise Malformed(f"{name} must be {_NAMES[major]}, not {_NAMES[present]} (byte {start})")
        return argument

    def _each(self, count: int | None) -> Iterator[int]:
        number = 0
        while number != count and not (count is None and self._ends()):
            yield number
            number += 1

    def _content(self, major: int, length: int | None) -> bytes:
        """The content of a string after its head."""
        if length is None:
            chunks = []
            while not self._ends():
                start = self.at
                chunk, size = self.head()
                if chunk != major or size is None:
                    raise Malformed(f"byte {start} must begin a chunk of {_NAMES[major]} with its length")
                chunks.append(self._content(major, size))
            return b"".join(chunks)
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise Malformed(f"the bytes end within the string at byte {start}")
        return self.data[start : self.at]

    def _ends(self) -> bool:
        """Whether an indefinite length ends here; its end is read."""
        ends = self.at < len(self.data) and self.data[self.at] == _BREAK
        self.at += ends
        return ends


def end_of(data: bytes, start: int) -> int:
    """The position after the item that begins at `start`. Raises Malformed."""
    reader = Reader(data, start)
    reader.skip()
    return reader.at


def parts_of(data: bytes, start: int = 0) -> list[slice]:
    """The places of the items of the array or map that begins at `start`, after any tags. A map's are keys and values
    in turn.

    Raises Malformed.
    """
    reader = Reader(data, start)
    reader.untag()
    begin = reader.pairs if reader.next_major() == MAP else reader.elements
    per_part = 2 if reader.next_major() == MAP else 1
    parts: list[slice] = []
    for _ in begin(f"the item at byte {start}"):
        for _ in range(per_part):
            at = reader.at
            reader.skip()
            parts.append(slice(at, reader.at))
    return parts


def unsigned(data: bytes, start: int) -> int | None:
    """The unsigned integer that begins at `start`; None if another item begins there. Raises Malformed."""
    major, argument = Reader(data, start).head()
    return argument if major == UNSIGNED else None


class _Indefinite:
    """An open array or map of indefinite length. `left` is what the container around it still lacks."""

    def __init__(self, major: int, left: int) -> None:
        self.major, self.left, self.items = major, left, 0

    def close(self, at: int) -> int:
        if self.major == MAP and self.items % 2:
            raise Malformed(f"the map that ends at byte {at} has a key without a value")
        return self.left
