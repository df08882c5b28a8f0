"""Reads a transaction with pycardano before a node sees it: nothing else reaches the node.

NOTE: pycardano takes a second and 60 MB to import, so only the first transaction of a process imports it, in the thread
that talks to the node.
"""

import io
import os
from hashlib import blake2b
from typing import Any

import cbor2
import msgspec

from api import errors
from shared.network import Network

MOST_BYTES = 16_384
"""`maxTransactionSize` of all three networks since 2021; docs/decisions/0040."""

_TEST, _MAIN = 0, 1  # the network bits of addresses (CIP-19), and `network_id` in the CDDL
_BYRON = 8  # the header of a Byron address, which has no network bits

# Keys of `transaction_body` and `transaction_witness_set` in the CDDL.
_OUTPUTS, _TTL, _WITHDRAWALS, _NETWORK = 1, 3, 5, 15
_KEY_WITNESSES, _BYRON_WITNESSES = 0, 2


class ParsedTransaction(msgspec.Struct, frozen=True):
    """A transaction of the caller's network.

    `invalid_hereafter` is the first slot in which it is no longer valid. `signed` is true if it has a key witness.
    """

    tx_hash: bytes
    invalid_hereafter: int | None
    signed: bool


def read(cbor: bytes, network: Network) -> ParsedTransaction:
    """Parse a transaction. Raises Refusal if these bytes are not one, or belong to another network."""
    if len(cbor) > MOST_BYTES:
        raise errors.transaction_too_large(MOST_BYTES)
    try:
        tx_hash, body, witnesses = _parsed(cbor)
        networks = _networks(body)
    except Exception as cause:
        raise errors.invalid_transaction() from cause
    if networks - {_MAIN if network.is_mainnet else _TEST}:
        raise errors.foreign_transaction()
    signed = bool(witnesses.get(_KEY_WITNESSES) or witnesses.get(_BYRON_WITNESSES))
    return ParsedTransaction(tx_hash, body.get(_TTL), signed)


def _parsed(cbor: bytes) -> tuple[bytes, dict[int, Any], dict[int, Any]]:
    """The hash of a transaction, its body and its witnesses. The hash is that of the body's bytes as they were sent."""
    os.environ.setdefault("CBOR_C_EXTENSION", "1")  # pycardano's default decoder is slower
    import pycardano

    pycardano.Transaction.from_cbor(cbor)
    if cbor[:1] not in (b"\x84", b"\x9f"):
        raise ValueError("a transaction is an array of four items")
    file = io.BytesIO(cbor)
    file.seek(1)
    decoder = cbor2.CBORDecoder(file)
    body = decoder.decode()
    body_bytes = cbor[1 : file.tell()]
    witnesses = decoder.decode()
    decoder.decode()
    decoder.decode()
    if cbor[file.tell() :] != (b"\xff" if cbor[:1] == b"\x9f" else b""):
        raise ValueError("bytes after the transaction")
    return blake2b(body_bytes, digest_size=32).digest(), dict(body), dict(witnesses)


def _networks(body: dict[int, Any]) -> set[int]:
    """The networks that a transaction names: in its network id, its outputs and its withdrawals."""
    addresses = [output[0] for output in body[_OUTPUTS]] + list(body.get(_WITHDRAWALS) or ())
    stated = set() if body.get(_NETWORK) is None else {body[_NETWORK]}
    return stated | {address[0] & 15 for address in addresses if address[0] >> 4 != _BYRON}
