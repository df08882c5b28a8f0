"""What Ogmios says, as Structs of the fields we use: versions 6.11 to 7.x, all eras.

Ogmios' own words stay in this file and in its callers' hands only as far as `effects`; unknown fields are skipped
without being looked at. The schema is Ogmios' `cardano.json` and `ogmios.json`.
"""

import json
import re
from typing import Annotated, Any

import msgspec

from shared.ledger import Point

NO_BYTES = msgspec.Raw()
Hash = Annotated[str, msgspec.Meta(min_length=64, max_length=64)]
"""The hash of a block or a transaction: 32 bytes in hex. The decoder looks at the length, `effects` at the rest."""

_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Lovelace = dict[str, dict[str, int]]
"""`{"ada": {"lovelace": n}}`."""


class Unreadable(Exception):
    """A frame that is not what Ogmios' schema says."""


class _Struct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What all frames share: camelCase on the wire, no cycles for the collector to look for."""


class _Id(_Struct, frozen=True):
    id: Hash


class Reference(_Struct, frozen=True):
    """An output reference; legal indexes reach 32 bits."""

    transaction: _Id
    index: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class Output(_Struct, frozen=True):
    """A transaction output. `value` holds `ada` and each policy, by name and quantity."""

    address: str
    value: dict[str, dict[str, int]]
    datum_hash: str | None = None
    datum: msgspec.Raw = NO_BYTES


class Label(_Struct, frozen=True):
    """A metadatum in the forms that the node's flags give it."""

    cbor: str | None = None
    json: msgspec.Raw = NO_BYTES


class Metadata(_Struct, frozen=True):
    """Metadata by label, a decimal number."""

    labels: dict[str, Label]


class Interval(_Struct, frozen=True):
    """The slots between which a transaction may be in a block."""

    invalid_before: int | None = None
    invalid_after: int | None = None


class Relay(_Struct, frozen=True):
    """How to reach a pool: an address, or a host name with (A, AAAA) or without (SRV) a port."""

    type: str | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    hostname: str | None = None
    port: int | None = None


class Anchor(_Struct, frozen=True):
    """Where a pool's metadata lies, and its hash."""

    url: str
    hash: str


class StakePool(_Struct, frozen=True):
    """A pool as certificates name it: the id alone, with a retirement epoch, or with all its parameters."""

    id: str
    retirement_epoch: int | None = None
    vrf_verification_key_hash: str | None = None
    pledge: Lovelace | None = None
    cost: Lovelace | None = None
    margin: str | None = None
    reward_account: str | None = None
    owners: list[str] = []
    relays: list[Relay] = []
    metadata: Anchor | None = None


class Certificate(_Struct, frozen=True):
    """A certificate of any kind; the kinds we don't know keep their type."""

    type: str
    credential: str | None = None
    origin: str | None = msgspec.field(name="from", default=None)
    stake_pool: StakePool | None = None
    deposit: Lovelace | None = None


class Proposal(_Struct, frozen=True):
    """A governance proposal, of which only the deposit moves value."""

    deposit: Lovelace | None = None


class Treasury(_Struct, frozen=True):
    """What a transaction gives to the treasury; `{}` from Ogmios 6.14 where there is nothing."""

    donation: Lovelace | None = None


class SubTransaction(_Struct, frozen=True):
    """What a Dijkstra sub-transaction and a transaction have in common."""

    id: Hash
    inputs: list[Reference] = []
    outputs: list[Output] = []
    certificates: list[Certificate] = []
    withdrawals: dict[str, Lovelace] = {}
    credits: dict[str, Lovelace] = {}
    mint: dict[str, dict[str, int]] = {}
    validity_interval: Interval = Interval()
    metadata: Metadata | None = None
    proposals: list[Proposal] = []
    treasury: Treasury | None = None
    datums: dict[str, msgspec.Raw] = {}
    cbor: msgspec.Raw = NO_BYTES


class Transaction(SubTransaction, frozen=True):
    """A transaction. Byron's have no fee; `spends` is `collaterals` where the scripts failed."""

    spends: str = "inputs"
    collaterals: list[Reference] = []
    collateral_return: Output | None = None
    total_collateral: Lovelace | None = None
    fee: Lovelace | None = None
    sub_transactions: list[SubTransaction] = []


class Issuer(_Struct, frozen=True):
    """The cold key of the block's pool; Byron's has 64 bytes."""

    verification_key: str


class Block(_Struct, frozen=True):
    """A block. An epoch boundary block (`ebb`) has no slot and no transactions."""

    type: str
    era: str
    id: Hash
    ancestor: str
    height: int
    slot: int | None = None
    issuer: Issuer | None = None
    transactions: list[Transaction] = []


class NodePoint(_Struct, frozen=True):
    """A point of the chain; `height` only where it is a tip."""

    slot: _Number
    id: Hash
    height: _Number = 0

    @property
    def point(self) -> Point:
        """The same in our words."""
        return Point(self.slot, bytes.fromhex(self.id))


class NextBlock(_Struct, frozen=True):
    """The answer to `nextBlock`: a block forward, or a point to go back to; `origin` is the empty chain."""

    direction: str
    tip: NodePoint | str
    block: Block | None = None
    point: NodePoint | str | None = None


class Intersection(_Struct, frozen=True):
    """The answer to `findIntersection`."""

    intersection: NodePoint | str
    tip: NodePoint | str


class Fault(_Struct, frozen=True):
    """What Ogmios answers where it can't do what was asked."""

    code: int
    message: str


class _Answer(_Struct, frozen=True):
    method: str | None = None
    result: msgspec.Raw = NO_BYTES
    error: Fault | None = None


class _Forward(_Struct, frozen=True):
    """An answer to `nextBlock`, decoded in one pass: it is most of what arrives."""

    result: NextBlock | None = None
    error: Fault | None = None


class _RawNextBlock(_Struct, frozen=True):
    block: msgspec.Raw


class _RawForward(_Struct, frozen=True):
    result: _RawNextBlock


_next_block = msgspec.json.Decoder(_Forward)
_intersection = msgspec.json.Decoder(Intersection)
_answer = msgspec.json.Decoder(_Answer)


def read(frame: bytes) -> NextBlock | Fault:
    """An answer to `nextBlock`. Raises Unreadable."""
    try:
        answer = _decode_next_block(frame)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreadable(f"{error} in {excerpt(frame)}") from error
    result = answer.result
    if result is None:
        if answer.error is None:
            raise Unreadable(f"neither result nor error in {excerpt(frame)}")
        return answer.error
    if result.direction == "forward" and result.block is not None:
        return result
    if result.direction == "backward" and result.point is not None:
        return result
    raise Unreadable(f"direction {result.direction!r} without its block or point in {excerpt(frame)}")


def _decode_next_block(frame: bytes) -> _Forward:
    """Decode a frame, and where it can't be, once more without what our decoder is stricter about than JSON is.

    NOTE: an escaped lone surrogate in a metadatum is JSON, but no text; each becomes a question mark.
    """
    try:
        return _next_block.decode(frame)
    except RecursionError:
        return _decode_next_block(_shallow(frame))
    except msgspec.DecodeError:
        if b"\\ud" not in frame and b"\\uD" not in frame:
            raise
        return _next_block.decode(json.dumps(json.loads(_shallow(frame)), ensure_ascii=False).encode(errors="replace"))


def _shallow(frame: bytes) -> bytes:
    """The frame with `null` for whatever is nested deeper than _DEEPEST, which nothing that we use is.

    NOTE: metadata of a 16 kB transaction may be nested 16,000 deep, scripts some thousand, and decoders recurse.
    """
    kept, depth, kept_until = [], 0, 0
    for token in _BRACKETS.finditer(frame):
        if token[0] in b"[{":
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(frame[kept_until : token.start()])
        elif token[0] in b"]}":
            depth -= 1
            if depth == _DEEPEST:
                kept.append(b"null")
                kept_until = token.end()
    return b"".join((*kept, frame[kept_until:]))


_DEEPEST = 200
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)


def read_raw_block(frame: bytes) -> tuple[int | None, bytes] | None:
    """The slot and the JSON of a block forward, None for anything else that is readable. Raises Unreadable."""
    answer = read(frame)
    if isinstance(answer, Fault) or answer.block is None:
        return None
    try:
        raw = msgspec.json.decode(frame, type=_RawForward)
    except RecursionError:
        raw = msgspec.json.decode(_shallow(frame), type=_RawForward)
    return answer.block.slot, bytes(raw.result.block)


def read_result(frame: bytes, method: str, kind: type[Any]) -> Any:
    """The result of any other call as `kind`, or the Fault that came instead. Raises Unreadable."""
    try:
        answer = _answer.decode(frame)
        if answer.error is not None:
            return answer.error
        if answer.method not in (None, method):
            raise Unreadable(f"an answer to {answer.method} where {method} was asked")
        return msgspec.json.decode(answer.result, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unreadable(f"{error} in {excerpt(frame)}") from error


def lovelace(value: Lovelace) -> int:
    """The lovelace of an ada-only value. Raises Unreadable where there is none."""
    try:
        return value["ada"]["lovelace"]
    except KeyError:
        raise Unreadable(f"expected lovelace, not {value}") from None


def excerpt(frame: bytes) -> str:
    """The first bytes of a frame for a message."""
    return repr(frame[:120].decode(errors="replace")) + ("…" if len(frame) > 120 else "")
