"""Reads from the bytes of a transaction what this service must know before a node sees it: docs/decisions/0053.

It checks the shape and the network, and reads the id, the size and the validity interval. The node judges all else.
"""

from hashlib import blake2b
from typing import NamedTuple

import msgspec

from api import errors
from shared import address
from shared.cbor import MAP, Malformed, Reader
from shared.network import Network

MAX_BYTES = 16_384
"""`maxTransactionSize` of all networks since 2021; docs/decisions/0040."""

MAX_SENT_BYTES = MAX_BYTES + 9
"""The longest encoding of a transaction of that size: the ledger counts one byte for the head of the array, which may
have nine, and none for the validity flag.
"""

_FLAGS = b"\xf4", b"\xf5"  # false and true
_SHAPE = (
    "a transaction must be an array of body, witnesses and auxiliary data, with or without the validity flag before the"
    " last"
)
_TEST, _MAIN = 0, 1  # `network_id` in the CDDL

# Keys of `transaction_body` in the CDDL, and those of `transaction_witness_set` whose contents may authorise a
# transaction: signatures, native scripts, signatures for Byron addresses.
_OUTPUTS, _INVALID_HEREAFTER, _NETWORK, _COLLATERAL_RETURN, _REFERENCES, _SUB_TRANSACTIONS = 1, 3, 15, 16, 18, 23
_BY_ACCOUNT = {5: "field 5 (withdrawals)", 25: "field 25 (direct deposits)"}
_AUTHORISING = 0, 1, 2


class ParsedTransaction(msgspec.Struct, frozen=True):
    """A transaction of the caller's network.

    `invalid_hereafter` is the first slot in which it is no longer valid. `signed` is false if nothing in it could
    authorise it: no signature, no native script, and no reference to an output that may hold such a script.
    """

    tx_hash: bytes
    invalid_hereafter: int | None
    signed: bool


class Contents(msgspec.Struct):
    """What a transaction and its sub-transactions say, whatever the network.

    `size_bytes` is the size as the ledger counts it. `networks` are those that they name, pay to and withdraw from;
    `ends` the ends of their validity intervals.
    """

    tx_hash: bytes
    size_bytes: int
    networks: set[int] = msgspec.field(default_factory=set)
    ends: list[int] = msgspec.field(default_factory=list)
    signed: bool = False


def read(sent: bytes, network: Network) -> ParsedTransaction:
    """Parse a transaction. Raises Refusal if these bytes are not one, or belong to another network."""
    if len(sent) > MAX_SENT_BYTES:
        raise errors.transaction_too_large(MAX_BYTES)
    try:
        parsed = contents(sent)
    except Malformed as cause:
        raise errors.invalid_transaction(str(cause)) from cause
    if parsed.size_bytes > MAX_BYTES:
        raise errors.transaction_too_large(MAX_BYTES)
    if parsed.networks - {_MAIN if network.is_mainnet else _TEST}:
        raise errors.foreign_transaction()
    return ParsedTransaction(parsed.tx_hash, min(parsed.ends, default=None), parsed.signed)


def contents(sent: bytes) -> Contents:
    """Parse a transaction: `[body, witnesses, auxiliary data]`, or with the validity flag before the last.

    Nodes take both forms in each era since Alonzo, and count the size of the first (`AlonzoTx` and `DijkstraTx` in
    cardano-ledger). Raises Malformed for any other shape.
    """
    reader = Reader(sent)
    parts = [_Part(reader.at, reader.skip()) for _ in reader.elements("a transaction")]
    reader.end()
    match parts:
        case [body, witnesses, flag, auxiliary] if flag.encoded in _FLAGS and auxiliary.encoded not in _FLAGS:
            pass
        case [body, witnesses, auxiliary] if auxiliary.encoded not in _FLAGS:
            pass
        case _:
            raise Malformed(_SHAPE)
    size_bytes = 1 + sum(len(part.encoded) for part in (body, witnesses, auxiliary))
    parsed = Contents(blake2b(body.encoded, digest_size=32).digest(), size_bytes)
    _read_body(Reader(sent, body.start), parsed, is_whole=True)
    _read_witnesses(Reader(sent, witnesses.start), parsed)
    return parsed


class _Part(NamedTuple):
    start: int
    encoded: bytes


def _read_body(reader: Reader, parsed: Contents, *, is_whole: bool) -> None:
    """Read a body, or that of a sub-transaction, which has no further ones (Dijkstra)."""
    has_outputs = False
    for key in reader.keys("the body"):
        if key == _OUTPUTS:
            has_outputs = True
            for number in reader.elements("field 1 (outputs)"):
                _read_output(reader, parsed, f"output {number}")
        elif key == _COLLATERAL_RETURN:
            _read_output(reader, parsed, "field 16 (collateral return)")
        elif key in _BY_ACCOUNT:
            for _ in reader.pairs(_BY_ACCOUNT[key]):
                _read_address(reader, parsed, f"an account of {_BY_ACCOUNT[key]}")
                reader.skip()
        elif key == _INVALID_HEREAFTER:
            parsed.ends.append(reader.unsigned("field 3 (end of the validity interval)"))
        elif key == _NETWORK:
            parsed.networks.add(reader.unsigned("field 15 (network id)"))
        elif key == _REFERENCES:
            parsed.signed |= _has_any(reader)
        elif key == _SUB_TRANSACTIONS and is_whole:
            reader.untag()
            for number in reader.elements("field 23 (sub-transactions)"):
                _read_sub_transaction(reader, parsed, f"sub-transaction {number}")
        else:
            reader.skip()
    if not has_outputs:
        raise Malformed("the body must have field 1 (outputs)")


def _read_sub_transaction(reader: Reader, parsed: Contents, name: str) -> None:
    for place in reader.elements(name):
        if place == 0:
            _read_body(reader, parsed, is_whole=False)
        elif place == 1:
            _read_witnesses(reader, parsed)
        else:
            reader.skip()


def _read_witnesses(reader: Reader, parsed: Contents) -> None:
    for key in reader.keys("the witness set"):
        if key in _AUTHORISING:
            parsed.signed |= _has_any(reader)
        else:
            reader.skip()


def _has_any(reader: Reader) -> bool:
    """Whether a set has elements. It may have the tag of sets."""
    reader.untag()
    return reader.skip() not in (b"\x80", b"\x9f\xff")


def _read_output(reader: Reader, parsed: Contents, name: str) -> None:
    """Read an output, which is an array or, since Babbage, a map. The address is number 0 of both."""
    for number in reader.keys(name) if reader.next_major() == MAP else reader.elements(name):
        if number == 0:
            _read_address(reader, parsed, f"the address of {name}")
        else:
            reader.skip()


def _read_address(reader: Reader, parsed: Contents, name: str) -> None:
    """Read the network of an address or of an account."""
    raw = reader.byte_string(name)
    try:
        parsed.networks.add(_MAIN if address.on_mainnet(raw) else _TEST)
    except ValueError as cause:
        raise Malformed(f"{name} must be an address") from cause
