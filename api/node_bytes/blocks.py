"""Blocks as the node has them, at a place that the index knows: their headers, and the bytes of their transactions."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec

from api.errors import Refusal
from api.node_bytes.connection import Connection, Unreadable
from api.node_bytes.lanes import Lanes
from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import NodeAway, NodeRefused
from shared.cbor import Malformed, Reader
from shared.ledger import Point

READINGS = 2
"""The most blocks that are read at a time, per process and network; one of them with one credential."""

BLOCK_WITHIN_S = 8.0
HEADERS_WITHIN_S, HEADERS_TURN_WITHIN_S = 4.0, 1.0
"""A block's answer is complete without its header, so it waits less for it, and for the turn to read it."""

PAUSE_S = 10.0
"""After a reading failed, the node is not asked for headers for so long, so that a lost node delays few answers."""

MAX_CACHED_BYTES = 8 * 1024 * 1024
MAX_CACHED_HEADERS = 4_096
_TRANSACTION_BYTES, _BLOCK_BYTES = 200, 1_000  # memory of each apart from its CBOR
_NO_INTERSECTION = 1000
_BOUNDARY = "ebb"

Block = TypeVar("Block", bound="_Header")


class NotThere(Exception):
    """The node's chain has no such block at that place: one of the two has seen a fork that the other has not, or the
    node is behind.
    """


class NoCbor(Exception):
    """Ogmios sends no CBOR of transactions: it runs without `--include-transaction-cbor`."""


class WrongBytes(Exception):
    """The CBOR of a transaction does not have its id."""


class Header(msgspec.Struct, frozen=True):
    """What a block's header says of its maker; None in Byron.

    `vrf_key` is the verification key of the maker's VRF and `op_cert` the KES key that its operational certificate
    names, both 32 bytes; `op_cert_counter` is the number of that certificate.
    """

    vrf_key: bytes | None
    op_cert: bytes | None
    op_cert_counter: int | None


class Transactions:
    """The transactions of one block, with the bytes that the node has for each, in their order."""

    def __init__(self, found: Sequence["_Transaction"]) -> None:
        """Raises NoCbor, NodeAway."""
        self._cbor: dict[bytes, bytes] = {}
        for tx in (part for whole in found for part in whole.parts):
            if tx.cbor is None:
                raise NoCbor
            self._cbor[_bytes(tx.id)] = _bytes(tx.cbor)
        self._checked: set[bytes] = set()
        self.size_bytes = _BLOCK_BYTES + sum(len(cbor) + _TRANSACTION_BYTES for cbor in self._cbor.values())

    @property
    def hashes(self) -> list[bytes]:
        """The ids, in the order of the block."""
        return list(self._cbor)

    def cbor(self, tx_hash: bytes) -> bytes:
        """The bytes of a transaction, whose body has this hash. Raises NotThere, WrongBytes."""
        cbor = self._cbor.get(tx_hash)
        if cbor is None:
            raise NotThere
        if tx_hash not in self._checked:
            if _id_of(cbor) != tx_hash:
                raise WrongBytes(f"the bytes of transaction {tx_hash.hex()} have another id")
            self._checked.add(tx_hash)
        return cbor


class BlockReader:
    """Reads blocks from one node. The last ones read are kept, within a bound of bytes."""

    def __init__(self, network: str, addresses: NodeAddresses) -> None:
        self._lanes = Lanes(network, addresses, READINGS, "readings of blocks")
        self._headers: OrderedDict[bytes, Header] = OrderedDict()
        self._transactions: OrderedDict[bytes, Transactions] = OrderedDict()
        self._cached_bytes = 0
        self._headers_again_at = 0.0

    async def transactions(self, key: Hashable, block: Point, before: Point | None) -> Transactions:
        """The transactions of a block, which follows `before`; None: it is the first one.

        Raises Refusal after too long a wait for a turn of the credential `key`, NodeAway, NotThere, NoCbor.
        """

        async def read(connection: Connection) -> Transactions:
            kept = self._kept(block)
            if kept is not None:  # another request has read it during the wait
                return kept
            (found,) = [each async for each in _read(connection, [block], before, _WithTransactions)]
            self._keep_header(block, found)
            return self._keep(block, Transactions(found.transactions))

        kept = self._kept(block)
        if kept is not None:
            return kept
        try:
            return await self._lanes.read(key, BLOCK_WITHIN_S, read)
        except NodeAway:
            self._pause_headers()
            raise

    async def headers(self, key: Hashable, blocks: Sequence[Point], before: Point | None) -> Mapping[bytes, Header]:
        """The headers of blocks that follow each other, the first one `before`, by hash.

        Those that the node does not give now are omitted, and all of them if there is no turn soon.
        """

        async def read(connection: Connection) -> None:
            missing = self._missing(blocks)
            if missing and time.monotonic() >= self._headers_again_at:
                first, last = missing[0], missing[-1]
                run, start = blocks[first : last + 1], before if first == 0 else blocks[first - 1]
                place = iter(run)
                async for found in _read(connection, run, start, _Header):
                    self._keep_header(next(place), found)

        if self._missing(blocks) and time.monotonic() >= self._headers_again_at:
            try:
                await self._lanes.read(key, HEADERS_WITHIN_S, read, turn_within_s=HEADERS_TURN_WITHIN_S)
            except NodeAway:
                self._pause_headers()
            except (NotThere, Refusal):
                pass
        return {block.block_hash: found for block in blocks if (found := self._headers.get(block.block_hash))}

    async def close(self) -> None:
        await self._lanes.close()

    def _pause_headers(self) -> None:
        self._headers_again_at = time.monotonic() + PAUSE_S

    def _missing(self, blocks: Sequence[Point]) -> list[int]:
        return [at for at, block in enumerate(blocks) if block.block_hash not in self._headers]

    def _kept(self, block: Point) -> Transactions | None:
        kept = self._transactions.get(block.block_hash)
        if kept is not None:
            self._transactions.move_to_end(block.block_hash)
        return kept

    def _keep(self, block: Point, found: Transactions) -> Transactions:
        replaced = self._transactions.pop(block.block_hash, None)  # two requests have read it at the same time
        self._transactions[block.block_hash] = found
        self._cached_bytes += found.size_bytes - (0 if replaced is None else replaced.size_bytes)
        while self._cached_bytes > MAX_CACHED_BYTES:
            _, oldest = self._transactions.popitem(last=False)
            self._cached_bytes -= oldest.size_bytes
        return found

    def _keep_header(self, block: Point, found: "_Header") -> None:
        self._headers[block.block_hash] = found.shown
        while len(self._headers) > MAX_CACHED_HEADERS:
            self._headers.popitem(last=False)


class _Kes(msgspec.Struct, frozen=True, rename="camel"):
    verification_key: str


class _OperationalCertificate(msgspec.Struct, frozen=True):
    count: int
    kes: _Kes


class _Issuer(msgspec.Struct, frozen=True, rename="camel"):
    vrf_verification_key: str | None = None
    operational_certificate: _OperationalCertificate | None = None


class _Header(msgspec.Struct, frozen=True):
    """A block without its transactions. An epoch boundary block has no issuer."""

    type: str
    id: str
    issuer: _Issuer = _Issuer()

    @property
    def shown(self) -> Header:
        key, certificate = self.issuer.vrf_verification_key, self.issuer.operational_certificate
        return Header(
            vrf_key=None if key is None else _bytes(key),
            op_cert=None if certificate is None else _bytes(certificate.kes.verification_key),
            op_cert_counter=None if certificate is None else certificate.count,
        )


class _Transaction(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    cbor: str | None = None
    spends: str = "inputs"
    sub_transactions: list["_Transaction"] = []

    @property
    def parts(self) -> list["_Transaction"]:
        """It and its sub-transactions (Dijkstra), as the index has them: before it, unless its scripts failed."""
        return [*(self.sub_transactions if self.spends == "inputs" else ()), self]


class _WithTransactions(_Header, frozen=True):
    transactions: list[_Transaction] = []


class _Intersection(msgspec.Struct, frozen=True):
    intersection: Any
    tip: Any


class _NextBlock(msgspec.Struct, Generic[Block], frozen=True):
    tip: Any
    block: Block | None = None


async def _read(
    connection: Connection, blocks: Sequence[Point], before: Point | None, kind: type[Block]
) -> AsyncIterator[Block]:
    """The blocks that the node has after `before`, which must be these. Raises NodeAway, NotThere.

    Ogmios' first answer after an intersection goes back to it. An epoch boundary block, which the index does not have,
    may come before any other. Raises NodeRefused as well.
    """
    start = "origin" if before is None else {"slot": before.slot_no, "id": before.block_hash.hex()}
    try:
        found = await connection.call("findIntersection", _Intersection, points=[start])
    except NodeRefused as refused:
        if refused.code == _NO_INTERSECTION:
            raise NotThere from refused
        raise
    if found.tip == found.intersection or _is(found.tip, before):
        raise NotThere  # a request for the next block would wait until there is one
    for _ in range(1 + len(blocks)):
        await connection.send("nextBlock")
    read = 0
    is_first = True
    while read < len(blocks):
        answer: _NextBlock[Block] = await connection.receive(_NextBlock[kind])  # type: ignore[valid-type]
        if answer.block is None:
            if not is_first:
                raise NotThere  # a fork, at this moment
        elif answer.block.type == _BOUNDARY:
            await connection.send("nextBlock")
        elif answer.block.id != blocks[read].block_hash.hex():
            raise NotThere
        else:
            yield answer.block
            read += 1
            if _is(answer.tip, blocks[read - 1]) and read < len(blocks):
                raise NotThere
        is_first = False


def _bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError as cause:
        raise Unreadable(f"bytes that can't be read: {cause}") from cause


def _is(tip: Any, block: Point | None) -> bool:
    return isinstance(tip, dict) and block is not None and tip.get("id") == block.block_hash.hex()


def _id_of(cbor: bytes) -> bytes | None:
    """The hash of a transaction's body, its first element, over its own bytes; None if it has none."""
    reader = Reader(cbor)
    try:
        for _ in reader.elements("a transaction"):
            return blake2b(reader.skip(), digest_size=32).digest()
    except Malformed:
        pass
    return None
