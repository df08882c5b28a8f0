"""CBOR with nothing lost: an item keeps its own bytes, and its parts in their order.

cbor2 makes Python's sets and dicts of sets and maps, and new bytes of what it has read. The order of certificates,
equal keys and indefinite lengths are lost, and the ledger depends on all three. Reading is a loop, since Plutus data
may be nested deeper than Python's stack allows.
"""

import struct
from collections.abc import Iterable
from typing import Any, Literal

import cbor2
import msgspec

SET = 258  # the tag of sets in the ledger's CDDL since Conway

_INDEFINITE = 31
_BREAK = 0xFF
_CONTAINERS = {2: "bytes", 3: "text", 4: "list", 5: "map", 6: "tag"}
_SIMPLE = {20: False, 21: True, 22: None, 23: None}
_BIGNUMS = (2, 3)

Kind = Literal["int", "bytes", "text", "list", "map", "tag", "simple"]


class Item(msgspec.Struct, frozen=True):
    """An item of CBOR. Each method raises ValueError if the item is something else.

    `value` is an int, bytes, text, a bool, None or a float, or the parts of a list, map or tag. Those of a map are its
    keys and values in turn. `tag` is the number of a tag.
    """

    kind: Kind
    value: Any
    source: bytes
    start: int
    end: int
    tag: int | None = None

    @property
    def cbor(self) -> bytes:
        """The item's own bytes, as they were sent."""
        return self.source[self.start : self.end]

    @property
    def is_null(self) -> bool:
        return self.kind == "simple" and self.value is None

    def number(self) -> int:
        return int(self._of("int"))

    def octets(self) -> bytes:
        return bytes(self._of("bytes"))

    def text(self) -> str:
        return str(self._of("text"))

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise ValueError(f"expected a boolean, not {self.kind}")
        return self.value

    def items(self) -> tuple["Item", ...]:
        """The items of a list."""
        return tuple(self._of("list"))

    def distinct(self) -> tuple["Item", ...]:
        """The items of a set, with or without its tag, in the order of their bytes. Equal ones are refused."""
        items = self.content(SET).items() if self.tag == SET else self.items()
        if len({definite(item) for item in items}) != len(items):
            raise ValueError("a set has equal items")
        return items

    def pairs(self) -> tuple[tuple["Item", "Item"], ...]:
        """The keys and values of a map, in their order, equal keys included."""
        parts = self._of("map")
        return tuple(zip(parts[::2], parts[1::2], strict=True))

    def entries(self) -> tuple[tuple["Item", "Item"], ...]:
        """The keys and values of a map, in their order. Equal keys are refused."""
        pairs = self.pairs()
        if len({definite(key) for key, _ in pairs}) != len(pairs):
            raise ValueError("a map has equal keys")
        return pairs

    def fields(self) -> dict[int, "Item"]:
        """The values of a map whose keys are numbers, by key."""
        return {key.number(): value for key, value in self.entries()}

    def content(self, tag: int) -> "Item":
        """What a tag encloses."""
        if self.tag != tag:
            raise ValueError(f"expected tag {tag}, not {self.kind} {self.tag or ''}".rstrip())
        return self.value[0]  # type: ignore[no-any-return]

    def _of(self, kind: Kind) -> Any:
        if self.kind != kind:
            raise ValueError(f"expected {kind}, not {self.kind}")
        return self.value


class _Open(msgspec.Struct):
    """A container whose end has not been read. `left` counts the parts to come; it is None for indefinite lengths."""

    kind: Kind
    start: int
    left: int | None
    tag: int | None = None
    parts: list[Item] = msgspec.field(default_factory=list)

    def add(self, part: Item) -> bool:
        """Whether the container is complete with this part."""
        if self.kind in ("bytes", "text") and part.kind != self.kind:
            raise ValueError(f"a piece of {self.kind} is {part.kind}")
        self.parts.append(part)
        if self.left is not None:
            self.left -= 1
        return self.left == 0

    def closed(self, source: bytes, end: int) -> Item:
        value: Any = tuple(self.parts)
        if self.kind in ("bytes", "text"):
            value = (b"" if self.kind == "bytes" else "").join(part.value for part in self.parts)
        elif self.tag in _BIGNUMS and value[0].kind == "bytes":
            magnitude = int.from_bytes(value[0].value)
            return Item("int", magnitude if self.tag == 2 else -1 - magnitude, source, self.start, end)
        return Item(self.kind, value, source, self.start, end, self.tag)


def read(cbor: bytes) -> Item:
    """The only item in these bytes. Raises ValueError."""
    position, opened = 0, list[_Open]()
    while True:
        item, position = _next(cbor, position, opened)
        while item is not None:
            if not opened:
                if position != len(cbor):
                    raise ValueError(f"{len(cbor) - position} bytes after the item")
                return item
            item = opened.pop().closed(cbor, position) if opened[-1].add(item) else None


def definite(item: Item) -> bytes:
    """The item as the ledger's encoders write it: with definite lengths and the shortest numbers, in the same order."""
    match item.kind:
        case "list":
            return _head(4, len(item.value)) + b"".join(map(definite, item.value))
        case "map":
            return _head(5, len(item.value) // 2) + b"".join(map(definite, item.value))
        case "tag":
            return _head(6, item.tag or 0) + b"".join(map(definite, item.value))
        case _:
            return bytes(cbor2.dumps(item.value))


def map_of(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A map of keys and values that are CBOR already, in their order."""
    parts = [key + value for key, value in pairs]
    return _head(5, len(parts)) + b"".join(parts)


def _next(cbor: bytes, position: int, opened: list[_Open]) -> tuple[Item | None, int]:
    """The item that ends here, and its end. No item if a container opens, which goes to `opened`."""
    start, initial = position, _byte(cbor, position)
    if initial == _BREAK:
        if not opened or opened[-1].left is not None or (opened[-1].kind == "map" and len(opened[-1].parts) % 2):
            raise ValueError(f"an unexpected break at byte {position}")
        return opened.pop().closed(cbor, position + 1), position + 1
    major, short = initial >> 5, initial & 31
    if short == _INDEFINITE and 2 <= major <= 5:
        opened.append(_Open(_CONTAINERS[major], start, None))  # type: ignore[arg-type]
        return None, position + 1
    argument, position = _argument(cbor, position + 1, short)
    if major < 2:
        return Item("int", -1 - argument if major else argument, cbor, start, position), position
    if major < 4:
        content = cbor[position : position + argument]
        if len(content) != argument:
            raise ValueError("bytes are missing at the end")
        position += argument
        value = content if major == 2 else content.decode()
        return Item(_CONTAINERS[major], value, cbor, start, position), position  # type: ignore[arg-type]
    if major == 7:
        return Item("simple", _simple(short, argument), cbor, start, position), position
    container = _Open(_CONTAINERS[major], start, argument)  # type: ignore[arg-type]
    if major == 5:
        container.left = 2 * argument
    elif major == 6:
        container.tag, container.left = argument, 1
    if container.left == 0:
        return container.closed(cbor, position), position
    opened.append(container)
    return None, position


def _argument(cbor: bytes, position: int, short: int) -> tuple[int, int]:
    """The argument of an item's head, and the position after it."""
    if short < 24:
        return short, position
    if short > 27:
        raise ValueError(f"an invalid head at byte {position - 1}")
    end = position + (1 << short - 24)
    if end > len(cbor):
        raise ValueError("bytes are missing at the end")
    return int.from_bytes(cbor[position:end]), end


def _simple(short: int, argument: int) -> Any:
    if short in (25, 26, 27):
        return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[short], argument.to_bytes(1 << short - 24))[0]
    if argument not in _SIMPLE:
        raise ValueError(f"an unknown simple value: {argument}")
    return _SIMPLE[argument]


def _byte(cbor: bytes, position: int) -> int:
    if position >= len(cbor):
        raise ValueError("bytes are missing at the end")
    return cbor[position]


def _head(major: int, argument: int) -> bytes:
    head = bytearray(cbor2.dumps(argument))
    head[0] |= major << 5
    return bytes(head)
