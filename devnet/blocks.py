"""A chain as the node sees it: a list of blocks. Also recorded chains."""

import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from devnet.networks import BYRON_EPOCH_SLOTS, Network


class Point(NamedTuple):
    slot: int
    id: str


class Block(msgspec.Struct, frozen=True):
    """A block and its position. The `slot` of an epoch boundary block is the first slot of its epoch, as in its point.

    `content` is a dict if the block was generated, and is encoded for each version of Ogmios. If the block was recorded
    it is bytes, which are served unchanged.
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
    """Lovelace that exists before the first block, by address; vouchers (Byron's AVVM) by redeem key in hex."""

    byron_funds: dict[str, int] = {}
    byron_vouchers: dict[str, int] = {}
    shelley_funds: dict[str, int] = {}


Offer = Callable[[Any, str, int], Iterator[dict[str, Any]]]
"""Yields the submitted transactions for a block in an era and slot. The caller must apply each one to the ledger, the
first argument, before it requests the next."""


def nothing(_ledger: Any, _era: str, _slot: int) -> Iterator[dict[str, Any]]:
    """The offer of an empty mempool."""
    return iter(())


class Chain(Protocol):
    """A chain that a node can play: its blocks so far, and more on request."""

    network: Network
    genesis: Genesis
    blocks: list[Block]

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        """(name, first epoch) of each era, in order."""

    @property
    def forks(self) -> tuple[tuple[int, int], ...]:
        """(major protocol version, first epoch) of each fork within an era, in order."""

    def grow(self, count: int) -> list[Block]:
        """Append up to `count` blocks and return them; fewer if the chain ends."""


@runtime_checkable
class OpenChain(Chain, Protocol):
    """A chain whose new blocks can hold submitted transactions.

    With `on_time`, a new block has the current slot.
    """

    on_time: bool

    def grow(self, count: int, offer: Offer = nothing) -> list[Block]:
        """Append `count` blocks and return them. Each begins with the transactions offered for it."""


class Recorded:
    """Blocks from a file, `*.jsonl` or `*.jsonl.xz`, one per line as Ogmios sends them.

    The chain starts with the first `visible` blocks, or with all of them if None; `grow` adds the next ones.
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

    @property
    def forks(self) -> tuple[tuple[int, int], ...]:
        return self.network.forks

    def grow(self, count: int) -> list[Block]:
        known = len(self.blocks)
        self._append(islice(self._lines, count))
        return self.blocks[known:]

    def _append(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.blocks.append(_parse(line, self.blocks[-1] if self.blocks else None))


def write(path: Path, blocks: list[bytes]) -> None:
    """Write blocks to a file for `Recorded`; it is compressed if its name ends in `.xz`."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "wb") as file:
        file.writelines(block + b"\n" for block in blocks)


def write_genesis(path: Path, outputs: list[tuple[str, int]]) -> None:
    """Write genesis outputs, as (address, lovelace), to a file for `read_genesis`."""
    path.write_text(json.dumps([{"address": address, "lovelace": lovelace} for address, lovelace in outputs], indent=1))


def read_genesis(path: Path) -> Genesis:
    """Read genesis outputs from a JSON list of `{"address", "lovelace", ...}`. All become initial funds of Byron.

    NOTE: the transaction id of a genesis output depends on its address alone. So vouchers, whose keys are not in the
    file, can be served as initial funds, and inputs that spend them still resolve.
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
    if slot is None:  # an epoch boundary block: the slot of its point is the first of the epoch that it begins
        slot = 0 if previous is None else (previous.slot // BYRON_EPOCH_SLOTS + 1) * BYRON_EPOCH_SLOTS
    return Block(slot, header.id, header.height, header.ancestor, header.era, line)
