"""Cardano addresses (CIP-19; Byron: CDDL `byron_address`): raw bytes inside, text at the rim."""

import zlib

import cbor2

from shared.encoding import base58_decode, base58_encode, bech32_decode, bech32_encode, bech32_payload
from shared.network import Network

LONGEST_TEXT = 16_000
"""Letters of the longest address: nothing bounds Byron's, and mainnet has one of about 10,500."""

_BYRON = 0b1000
_SCRIPT_STAKE = (0b0010, 0b0011)
_HASH_BYTES = 28
# Byte lengths by address type (CIP-19): base, pointer (a header, a hash and three variable-length numbers), enterprise.
_BASE_BYTES, _ENTERPRISE_BYTES = 1 + 2 * _HASH_BYTES, 1 + _HASH_BYTES
_POINTER_BYTES = range(_ENTERPRISE_BYTES + 3, _ENTERPRISE_BYTES + 31)


class InvalidAddress(ValueError):
    """The text is no payment address."""


class ForeignAddress(ValueError):
    """The text is a payment address of another network."""


def show(raw: bytes) -> str:
    """A payment address as text: bech32 `addr…` or `addr_test…`, base58 where it is Byron's."""
    if raw[0] >> 4 == _BYRON:
        return base58_encode(raw)
    return bech32_encode("addr" if raw[0] & 1 else "addr_test", raw)


def of_node(text: str) -> bytes:
    """The raw bytes of an address as the node writes it, whose checksum is not looked at again.

    Raises ValueError where it is neither bech32 nor base58, or too short for an address.
    """
    raw = bech32_payload(text) if text.startswith("addr") else base58_decode(text)
    if len(raw) < _ENTERPRISE_BYTES:
        raise ValueError(f"no address: {text!r}")
    return raw


def parse(text: str, network: Network) -> bytes:
    """The raw bytes of a payment address that a caller gave.

    Raises InvalidAddress for anything but a bech32 payment address or a Byron address, ForeignAddress for one of
    another network. A Byron address of any test network belongs to all of them (contract).
    """
    if len(text) > LONGEST_TEXT or not text.isascii():
        raise InvalidAddress(text)
    raw = _parse_shelley(text) if text[:4].lower() == "addr" else _parse_byron(text)
    if _on_mainnet(raw) != network.is_mainnet:
        raise ForeignAddress(text)
    return raw


def stake_of(raw: bytes) -> bytes | None:
    """The stake credential of a base address as the 29 bytes of its reward account, None for every other kind.

    NOTE: pointer addresses count for no stake since Conway, and here in no era (docs/decisions/0011).
    """
    kind = raw[0] >> 4
    if kind > 0b0011:
        return None
    header = (0xF0 if kind in _SCRIPT_STAKE else 0xE0) | raw[0] & 0x0F
    # NOTE: mainnet has a base address with bytes after its two hashes, which mean nothing.
    return bytes((header,)) + raw[1 + _HASH_BYTES : _BASE_BYTES]


def show_stake(reward_account: bytes) -> str:
    """The 29 bytes of a reward account as a stake address, `stake…` or `stake_test…`."""
    return bech32_encode("stake" if reward_account[0] & 1 else "stake_test", reward_account)


def stake_address(raw: bytes) -> str | None:
    """The stake address that a payment address pays into, None where it has none."""
    account = stake_of(raw)
    return None if account is None else show_stake(account)


def reward_account(key_hash: bytes, origin: str, network: Network) -> bytes:
    """The 29 bytes of the reward account of a stake credential; `origin` is `verificationKey` or `script`."""
    header = (0xF0 if origin == "script" else 0xE0) | network.is_mainnet
    return bytes((header,)) + key_hash


def _parse_shelley(text: str) -> bytes:
    try:
        hrp, raw = bech32_decode(text)
    except ValueError as error:
        raise InvalidAddress(text) from error
    kind, tag = raw[0] >> 4 if raw else 15, raw[0] & 0x0F if raw else 15
    if kind < 0b0100:
        fits = len(raw) == _BASE_BYTES
    elif kind < 0b0110:
        fits = len(raw) in _POINTER_BYTES and _is_pointer(raw[_ENTERPRISE_BYTES:])
    else:
        fits = kind < _BYRON and len(raw) == _ENTERPRISE_BYTES
    if not fits or tag > 1 or hrp != ("addr" if tag else "addr_test"):
        raise InvalidAddress(text)
    return raw


def _is_pointer(tail: bytes) -> bool:
    """Whether bytes are three variable-length numbers: each ends with its first byte below 128 (CIP-19)."""
    return sum(byte < 128 for byte in tail) == 3 and tail[-1] < 128


def _parse_byron(text: str) -> bytes:
    try:
        raw = base58_decode(text)
        payload, checksum = cbor2.loads(raw)
        root, attributes, kind = cbor2.loads(payload.value)
    except Exception as error:  # NOTE: cbor2 raises errors of many kinds for bytes that are no CBOR of this shape
        raise InvalidAddress(text) from error
    known = isinstance(root, bytes) and len(root) == _HASH_BYTES and isinstance(attributes, dict) and kind in (0, 2)
    if not known or zlib.crc32(payload.value) != checksum or raw != cbor2.dumps([payload, checksum]):
        raise InvalidAddress(text)
    return raw


def _on_mainnet(raw: bytes) -> bool:
    """Whether an address is mainnet's: by its network tag, or Byron's by having no network magic (CDDL attribute 2)."""
    if raw[0] >> 4 != _BYRON:
        return raw[0] & 1 == 1
    payload, _ = cbor2.loads(raw)
    _, attributes, _ = cbor2.loads(payload.value)
    return 2 not in attributes
