"""What a chain is to a node that serves it: a row of blocks, each with its point and its content."""

import json
import lzma
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from devnet.networks import BYRON_EPOCH_SLOTS, Network


class Point(NamedTuple):
    slot: int
    id: str


class Block(msgspec.Struct, frozen=True):
    """A block and its place. `slot` of an epoch boundary block is the first of its epoch, as in its point.

    `content` is a dict for a generated block, rendered for each version of Ogmios, and bytes for a recorded one, which
    pass as they are.
    """

    slot: int
    id: str
    height: int
    ancestor: str
    era: str
    content: dict[str, Any] | bytes

    @property
    def point(self) -> Point:
        return Point(self.slot, self.id)

    def decoded(self) -> dict[str, Any]:
        if isinstance(self.content, bytes):
            decoded: dict[str, Any] = msgspec.json.decode(self.content)
            return decoded
        return self.content


class Genesis(msgspec.Struct, frozen=True):
    """Lovelace that exists before the first block, by address; vouchers by redeem key in hex (Byron's AVVM)."""

    byron_funds: dict[str, int] = {}
    byron_vouchers: dict[str, int] = {}
    shelley_funds: dict[str, int] = {}


class Chain(Protocol):
    """What the server plays: blocks that are there, and more of them on request."""

    network: Network
    genesis: Genesis
    blocks: list[Block]

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        """(name, first epoch) of each era, in order."""

    def grow(self, count: int) -> list[Block]:
        """Append up to `count` blocks and return them; fewer, or none, where the chain has an end."""


class Recorded:
    """Blocks from a file, `*.jsonl` or `*.jsonl.xz`, one a line as Ogmios sends them.

    The first `visible` of them are the chain; `grow` uncovers the next. All are when it is None.
    """

    def __init__(
        self, path: Path, network: Network, genesis: Genesis | None = None, visible: int | None = None
    ) -> None:
        self.network = network
        self.genesis = genesis or Genesis()
        self._lines = _lines(path)
        self.blocks: list[Block] = []
        if visible is None:
            self._append(self._lines)
        else:
            self.grow(visible)

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        return self.network.eras

    def grow(self, count: int) -> list[Block]:
        known = len(self.blocks)
        self._append(islice(self._lines, count))
        return self.blocks[known:]

    def _append(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.blocks.append(_parse(line, self.blocks[-1] if self.blocks else None))


def write(path: Path, blocks: list[bytes]) -> None:
    """Blocks to a file that `Recorded` reads; a name ending in `.xz` compresses."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "wb") as file:
        file.writelines(block + b"\n" for block in blocks)


def write_genesis(path: Path, outputs: list[tuple[str, int]]) -> None:
    """Genesis outputs, as (address, lovelace), to a file that `read_genesis` reads."""
    path.write_text(json.dumps([{"address": address, "lovelace": lovelace} for address, lovelace in outputs], indent=1))


def read_genesis(path: Path) -> Genesis:
    """Genesis outputs from a list of `{"address", "lovelace", ...}`, all served as Byron's initial funds.

    NOTE: a genesis output's transaction id is the hash of its address alone, so that vouchers whose keys nobody
    recorded resolve just as well when served as funds.
    """
    return Genesis(byron_funds={output["address"]: output["lovelace"] for output in json.loads(path.read_text())})


class _Header(msgspec.Struct):
    id: str
    height: int
    ancestor: str
    era: str
    slot: int | None = None


_header = msgspec.json.Decoder(_Header)


def _lines(path: Path) -> Iterator[bytes]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rb") as file:
        for line in file:
            if content := line.strip():
                yield content


def _parse(line: bytes, previous: Block | None) -> Block:
    header = _header.decode(line)
    slot = header.slot
    if slot is None:  # an epoch boundary block: its point has the first slot of the epoch that it opens
        slot = 0 if previous is None else (previous.slot // BYRON_EPOCH_SLOTS + 1) * BYRON_EPOCH_SLOTS
    return Block(slot, header.id, header.height, header.ancestor, header.era, line)
