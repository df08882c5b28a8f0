"""Ogmios' messages as Structs of the fields that we use, for versions 6.11 to 7.x and all eras.

`blocks/` translates Ogmios' names into ours, with two exceptions. The node's tip stays a `NodePoint`. A certificate
stays a `Certificate` until its rows are built. Our API shows its type as Ogmios names it.
Fields that we do not use are skipped. The schema is in Ogmios' `cardano.json` and `ogmios.json`.
"""

import json
import re
from typing import Annotated, Any, TypeVar

import msgspec

from shared.ledger import Point

NO_BYTES = msgspec.Raw()
Hash = Annotated[str, msgspec.Meta(min_length=64, max_length=64)]
"""The hash of a block or a transaction: 32 bytes in hex. The decoder checks the length, `effects` the rest."""

_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Lovelace = dict[str, dict[str, int]]
"""`{"ada": {"lovelace": n}}`."""


Decoded = TypeVar("Decoded")


class Unreadable(Exception):
    """A frame that does not follow Ogmios' schema."""


class _Struct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all frames: camelCase names, and not tracked by the garbage collector."""


class _Id(_Struct, frozen=True):
    id: Hash


class Reference(_Struct, frozen=True):
    """An output reference; legal indexes reach 32 bits."""

    transaction: _Id
    index: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class Script(_Struct, frozen=True):
    """A script. A native one has `json`, and `cbor` only with the flag `--include-script-cbor`; the others `cbor`."""

    language: str
    cbor: str | None = None
    json: msgspec.Raw = NO_BYTES


class Output(_Struct, frozen=True):
    """A transaction output. `value` maps `ada` and each policy to quantities by name."""

    address: str
    value: dict[str, dict[str, int]]
    datum_hash: str | None = None
    datum: str | None = None
    script: Script | None = None


class Metadatum(_Struct, frozen=True):
    """A metadatum; the node's flags determine its form."""

    cbor: str | None = None
    json: msgspec.Raw = NO_BYTES


class TransactionMetadata(_Struct, frozen=True):
    """Metadata by label, a decimal number."""

    labels: dict[str, Metadatum]


class Interval(_Struct, frozen=True):
    """The slots between which a transaction may be in a block."""

    invalid_before: int | None = None
    invalid_after: int | None = None


class Relay(_Struct, frozen=True):
    """A pool's relay: an address, or a host name with (A, AAAA) or without (SRV) a port."""

    type: str | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    hostname: str | None = None
    port: int | None = None


class Anchor(_Struct, frozen=True):
    """The address and the hash of a document, such as a pool's metadata."""

    url: str
    hash: str


class StakePool(_Struct, frozen=True):
    """A pool in a certificate: the id alone, with a retirement epoch, or with all its parameters."""

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


class Party(_Struct, frozen=True):
    """A certificate's representative, member or delegate of the committee, genesis key or genesis delegate.

    Representatives that always vote the same have no id. Genesis keys and delegates have no origin.
    """

    id: str | None = None
    origin: str | None = msgspec.field(name="from", default=None)
    type: str | None = None
    vrf_verification_key_hash: str | None = None


class Certificate(_Struct, frozen=True):
    """A certificate of any type, known or not."""

    type: str
    credential: str | None = None
    origin: str | None = msgspec.field(name="from", default=None)
    stake_pool: StakePool | None = None
    deposit: Lovelace | None = None
    delegate_representative: Party | None = None
    member: Party | None = None
    delegate: Party | None = None
    issuer: Party | None = None
    metadata: Anchor | None = None


class Action(_Struct, frozen=True):
    """The action of a proposal."""

    type: str


class Proposal(_Struct, frozen=True):
    """A governance proposal; only its deposit moves value. Before Conway, it may be a certificate."""

    deposit: Lovelace | None = None
    action: Action | None = None


class TreasuryDonation(_Struct, frozen=True):
    """A donation to the treasury; without one, `{}` since Ogmios 6.14."""

    donation: Lovelace | None = None


class Validator(_Struct, frozen=True):
    """What a script decides on: a purpose, and a place among the things of it, in the ledger's order."""

    purpose: str
    index: int


class Redeemer(_Struct, frozen=True):
    """A redeemer."""

    validator: Validator


class SubTransaction(_Struct, frozen=True):
    """A Dijkstra sub-transaction, and the common fields of a transaction."""

    id: Hash
    inputs: list[Reference] = []
    references: list[Reference] = []
    outputs: list[Output] = []
    certificates: list[Certificate] = []
    withdrawals: dict[str, Lovelace] = {}
    credits: dict[str, Lovelace] = {}
    mint: dict[str, dict[str, int]] = {}
    validity_interval: Interval = Interval()
    metadata: TransactionMetadata | None = None
    proposals: list[Proposal] = []
    treasury: TreasuryDonation | None = None
    datums: dict[str, str] = {}
    scripts: dict[str, Script] = {}
    redeemers: list[Redeemer] = []
    cbor: msgspec.Raw = NO_BYTES

    @property
    def sent(self) -> bytes | None:
        """The transaction's CBOR, None without the flag `--include-transaction-cbor`. Raises ValueError."""
        return bytes.fromhex(bytes(self.cbor)[1:-1].decode()) if self.cbor else None


class Transaction(SubTransaction, frozen=True):
    """A transaction. In Byron its fee is computed, whatever the node sends; `spends` is `collaterals` if its scripts
    failed.
    """

    spends: str = "inputs"
    collaterals: list[Reference] = []
    collateral_return: Output | None = None
    total_collateral: Lovelace | None = None
    fee: Lovelace | None = None
    sub_transactions: list[SubTransaction] = []


class Issuer(_Struct, frozen=True):
    """The cold key of the block's pool; Byron's has 64 bytes."""

    verification_key: str


class NumberOfBytes(_Struct, frozen=True):
    """A size."""

    bytes: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Block(_Struct, frozen=True):
    """A block. An epoch boundary block (`ebb`) has no slot, no size and no transactions."""

    type: str
    era: str
    id: Hash
    ancestor: str
    height: int
    slot: int | None = None
    size: NumberOfBytes | None = None
    issuer: Issuer | None = None
    transactions: list[Transaction] = []


class NodePoint(_Struct, frozen=True):
    """A point of the chain. Ogmios sends a `height` only for a tip."""

    slot: _Number
    id: Hash
    height: _Number = 0

    @property
    def point(self) -> Point:
        """The same as a Point."""
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
    """An error that Ogmios returns."""

    code: int
    message: str


class _Answer(_Struct, frozen=True):
    method: str | None = None
    result: msgspec.Raw = NO_BYTES
    error: Fault | None = None


class _Forward(_Struct, frozen=True):
    """An answer to `nextBlock`, decoded in one pass, since most frames are such answers."""

    result: NextBlock | None = None
    error: Fault | None = None


class _RawNextBlock(_Struct, frozen=True):
    block: msgspec.Raw


class _RawForward(_Struct, frozen=True):
    result: _RawNextBlock


_next_block = msgspec.json.Decoder(_Forward)
_raw_forward = msgspec.json.Decoder(_RawForward)
_intersection = msgspec.json.Decoder(Intersection)
_answer = msgspec.json.Decoder(_Answer)


def read(frame: bytes) -> NextBlock | Fault:
    """An answer to `nextBlock`. Raises Unreadable."""
    try:
        answer = _decode(_next_block, frame)
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


def _decode(decoder: msgspec.json.Decoder[Decoded], frame: bytes) -> Decoded:
    """Decode a frame; if that fails, replace the valid JSON that our decoder rejects, and retry.

    NOTE: a metadatum may contain an escaped lone surrogate, which is not valid text; it becomes a question mark.
    """
    try:
        return decoder.decode(frame)
    except RecursionError:
        return _decode(decoder, _shallow(frame))
    except msgspec.DecodeError:
        if b"\\ud" not in frame and b"\\uD" not in frame:
            raise
        return decoder.decode(json.dumps(json.loads(_shallow(frame)), ensure_ascii=False).encode(errors="replace"))


def _shallow(frame: bytes) -> bytes:
    """The frame with `null` in place of values nested deeper than _MAX_DEPTH; the fields that we use are not that deep.

    NOTE: metadata of a 16 kB transaction may be nested 16,000 levels deep, scripts some thousand, and decoders recurse.
    """
    kept, depth, kept_until = [], 0, 0
    for token in _BRACKETS.finditer(frame):
        if token[0] in b"[{":
            depth += 1
            if depth == _MAX_DEPTH + 1:
                kept.append(frame[kept_until : token.start()])
        elif token[0] in b"]}":
            depth -= 1
            if depth == _MAX_DEPTH:
                kept.append(b"null")
                kept_until = token.end()
    return b"".join((*kept, frame[kept_until:]))


_MAX_DEPTH = 200
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)


def raw_block(frame: bytes) -> bytes:
    """The JSON of the block in a frame in which `read` has found one."""
    return bytes(_decode(_raw_forward, frame).result.block)


def read_result(frame: bytes, method: str, kind: type[Any]) -> Any:
    """The result of any other call as `kind`, or the Fault instead. Raises Unreadable."""
    try:
        answer = _answer.decode(frame)
        if answer.error is not None:
            return answer.error
        if answer.method not in (None, method):
            raise Unreadable(f"an answer to {answer.method} instead of {method}")
        return msgspec.json.decode(answer.result, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unreadable(f"{error} in {excerpt(frame)}") from error


def lovelace(value: Lovelace) -> int:
    """The lovelace of an ada-only value. Raises Unreadable if it has none."""
    try:
        return value["ada"]["lovelace"]
    except KeyError:
        raise Unreadable(f"expected lovelace, not {value}") from None


def hash_bytes(text: str, size: int = 32) -> bytes:
    """The bytes of a hash. Raises ValueError. NOTE: `fromhex` skips blanks, so text of the right length may be too
    short.
    """
    raw = bytes.fromhex(text)
    if len(raw) != size:
        raise ValueError(f"{text!r} is not a hash of {size} bytes")
    return raw


def excerpt(frame: bytes) -> str:
    """The first bytes of a frame for a message."""
    return repr(frame[:120].decode(errors="replace")) + ("…" if len(frame) > 120 else "")
