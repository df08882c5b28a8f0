"""Cardano addresses (CIP-19; Byron: CDDL `byron_address`): raw bytes <-> text."""

import hashlib
import zlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import cbor2

from shared.cbor import Malformed, Reader
from shared.encoding import (
    base58_decode,
    base58_encode,
    bech32_decode,
    bech32_encode,
    bech32_encode_all,
    bech32_payload,
)
from shared.ledger import HASH28_BYTES, ScriptKey, script_key_of
from shared.network import Network
from shared.packed import CREDENTIAL_ORIGINS, Origin

MAX_TEXT_LENGTH = 16_000
"""Maximum characters of an address. The ledger sets no limit for Byron; the longest on mainnet has about 10,500."""

MAX_STAKE_TEXT_LENGTH = 64
"""Maximum characters of a stake address."""

MAX_CREDENTIAL_TEXT_LENGTH = 67
"""Maximum characters of a payment credential: `addr_vk1…` has 66."""

_PAYMENT_KEY_HASH, _PAYMENT_KEY, _SCRIPT = "addr_vkh", "addr_vk", "script"  # CIP-5
_KEY_BYTES = 32
_BYRON = 0b1000
_MAGIC = 2  # the attribute of a Byron address that names the magic of a test network
_SCRIPT_STAKE = (0b0010, 0b0011)
_STAKE_HEADERS = (0xE0, 0xF0)  # of a key's and of a script's reward account
_POINTERS = (0b0100, 0b0101)
# Byte lengths by address type (CIP-19): base, enterprise. The pointer after a header and a hash has any length.
_BASE_BYTES, _ENTERPRISE_BYTES = 1 + 2 * HASH28_BYTES, 1 + HASH28_BYTES
_SCRIPT_BIT = 0x10
_POINTER_BITS = (32, 16, 16)  # slot, transaction index, certificate index
_NO_POINTER = (0, 0, 0)


class InvalidAddress(ValueError):
    """The text is not a payment address."""


class ForeignAddress(ValueError):
    """The text is a payment address of a different network."""


def show(raw: bytes) -> str:
    """A payment address as text: bech32 `addr…` or `addr_test…`, or base58 for a Byron address."""
    if raw[0] >> 4 == _BYRON:
        return base58_encode(raw)
    return bech32_encode("addr" if raw[0] & 1 else "addr_test", raw)


def show_all(raws: Sequence[bytes]) -> list[str]:
    """`show` for many addresses, several times faster for a page of them."""
    shown: dict[bytes, str] = {}
    alike: dict[tuple[int, int], list[bytes]] = {}  # by network tag and length
    for raw in raws:
        if raw[0] >> 4 == _BYRON:
            shown[raw] = base58_encode(raw)
        else:
            alike.setdefault((raw[0] & 1, len(raw)), []).append(raw)
    for (tag, _), some in alike.items():
        shown |= zip(some, bech32_encode_all("addr" if tag else "addr_test", some), strict=True)
    return [shown[raw] for raw in raws]


def of_node(text: str) -> bytes:
    """The raw bytes of an address that the node wrote; the checksum is not verified again.

    A pointer has the form that nodes give it today, whatever the version of this one. Raises ValueError if the text is
    neither bech32 nor base58, or not as long as an address.
    """
    raw = bech32_payload(text) if text.startswith("addr") else base58_decode(text)
    if len(raw) < _ENTERPRISE_BYTES:
        raise ValueError(f"not an address: {text!r}")
    if raw[0] >> 4 not in _POINTERS:
        return raw
    if not _is_pointer(raw[_ENTERPRISE_BYTES:]):
        raise ValueError(f"not a pointer: {text!r}")
    return _with_pointer_of_node(raw)


def parse(text: str, network: Network) -> bytes:
    """The raw bytes of a payment address from a caller, a pointer address in the node's form: the one in the index.

    Raises InvalidAddress for anything but a bech32 payment address or a Byron address, ForeignAddress for an address
    of a different network. A Byron address of any test network is accepted on every test network.
    """
    if len(text) > MAX_TEXT_LENGTH or not text.isascii():
        raise InvalidAddress(text)
    raw = _parse_shelley(text) if text[:4].lower() == "addr" else _parse_byron(text)
    try:
        if on_mainnet(raw) != network.is_mainnet:
            raise ForeignAddress(text)
    except Malformed as error:
        raise InvalidAddress(text) from error
    return raw


class LedgerCredential(NamedTuple):
    """The credential that controls an address: the hash (28 bytes) of a key (`verificationKey`) or of a script."""

    hash: bytes
    origin: Origin


class Parts(NamedTuple):
    """The kind of an address, and its credentials, if any."""

    kind: Literal["base", "pointer", "enterprise", "byron"]
    payment: LedgerCredential | None
    stake: LedgerCredential | None


def parts_of(raw: bytes) -> Parts:
    """The parts of a payment address (CIP-19). Byron addresses have no credential of their own."""
    number = raw[0] >> 4
    if number == _BYRON:
        return Parts("byron", None, None)
    payment = LedgerCredential(raw[1:_ENTERPRISE_BYTES], CREDENTIAL_ORIGINS[number & 1])
    account = stake_of(raw)
    if account is None:
        return Parts("pointer" if number < 0b0110 else "enterprise", payment, None)
    return Parts("base", payment, credential_of(account))


def parse_payment_credential(text: str) -> bytes:
    """The hash (28 bytes) in a payment credential (CIP-5): `addr_vkh1…`, `script1…`, or the key `addr_vk1…`.

    It belongs to no network. Raises InvalidAddress for anything else.
    """
    if len(text) > MAX_CREDENTIAL_TEXT_LENGTH or not text.isascii():
        raise InvalidAddress(text)
    try:
        hrp, raw = bech32_decode(text)
    except ValueError as error:
        raise InvalidAddress(text) from error
    if hrp == _PAYMENT_KEY and len(raw) == _KEY_BYTES:
        return hashlib.blake2b(raw, digest_size=HASH28_BYTES).digest()
    if hrp not in (_PAYMENT_KEY_HASH, _SCRIPT) or len(raw) != HASH28_BYTES:
        raise InvalidAddress(text)
    return raw


def names_payment_credential(text: str) -> bool:
    """Whether text begins like a payment credential, not like an address."""
    return text.lower().startswith((f"{_PAYMENT_KEY_HASH}1", f"{_PAYMENT_KEY}1", f"{_SCRIPT}1"))


def show_payment_credential(digest: bytes, text: str) -> str:
    """The hash in a payment credential in the form of this text; a key as its hash."""
    return bech32_encode(_SCRIPT if text.lower().startswith(f"{_SCRIPT}1") else _PAYMENT_KEY_HASH, digest)


def payment_hash_of(raw: bytes) -> bytes | None:
    """The hash in the payment credential of an address, of a key or of a script: the function payment_hash of the
    schema. None for an address of Byron.
    """
    return None if raw[0] >> 4 == _BYRON else raw[1:_ENTERPRISE_BYTES]


def script_key(raw: bytes) -> ScriptKey | None:
    """The key of the script in the payment credential of an address, None if that is a key, and in Byron."""
    return script_key_of(raw[1:]) if raw[0] & _SCRIPT_BIT else None


def credential_of(reward_account: bytes) -> LedgerCredential:
    """The stake credential in the 29 bytes of a reward account."""
    return LedgerCredential(reward_account[1:], CREDENTIAL_ORIGINS[reward_account[0] >> 4 & 1])


def is_reward_account(raw: bytes) -> bool:
    """Whether bytes are those of a reward account, not of a payment address."""
    return raw[0] & 0xF0 in _STAKE_HEADERS


def parse_stake(text: str, network: Network) -> bytes:
    """The 29 bytes of a reward account from the stake address of a caller.

    Raises InvalidAddress for anything but a stake address, ForeignAddress for one of a different network.
    """
    if len(text) > MAX_STAKE_TEXT_LENGTH or not text.isascii():
        raise InvalidAddress(text)
    try:
        hrp, raw = bech32_decode(text)
    except ValueError as error:
        raise InvalidAddress(text) from error
    if len(raw) != _ENTERPRISE_BYTES or not is_reward_account(raw) or raw[0] & 0x0F > 1:
        raise InvalidAddress(text)
    if hrp != ("stake" if raw[0] & 1 else "stake_test"):
        raise InvalidAddress(text)
    if bool(raw[0] & 1) != network.is_mainnet:
        raise ForeignAddress(text)
    return raw


def stake_of(raw: bytes) -> bytes | None:
    """The stake credential of a base address, as the 29 bytes of its reward account; None for every other kind.

    NOTE: pointer addresses have not counted as stake since Conway; here they never do (docs/decisions/0011).
    """
    kind = raw[0] >> 4
    if kind > 0b0011:
        return None
    header = (0xF0 if kind in _SCRIPT_STAKE else 0xE0) | raw[0] & 0x0F
    # NOTE: one base address on mainnet has extra bytes after its two hashes; they mean nothing.
    return bytes((header,)) + raw[1 + HASH28_BYTES : _BASE_BYTES]


def show_stake(reward_account: bytes) -> str:
    """The 29 bytes of a reward account as a stake address, `stake…` or `stake_test…`."""
    return bech32_encode("stake" if reward_account[0] & 1 else "stake_test", reward_account)


def show_stakes(reward_accounts: Sequence[bytes], network: Network) -> list[str]:
    """`show_stake` for reward accounts of a network, several times faster for a page of them."""
    return bech32_encode_all("stake" if network.is_mainnet else "stake_test", reward_accounts)


def reward_account(key_hash: bytes, origin: str, network: Network) -> bytes:
    """The 29 bytes of the reward account of a stake credential; `origin` is `verificationKey` or `script`."""
    header = (0xF0 if origin == "script" else 0xE0) | network.is_mainnet
    return bytes((header,)) + key_hash


def on_mainnet(raw: bytes) -> bool:
    """Whether an address or a reward account belongs to mainnet: by its network tag, or, in Byron, by the absence of a
    network magic (CDDL attribute 2).

    Raises ValueError if it has no network tag and is not a Byron address.
    """
    if raw and raw[0] >> 4 != _BYRON:
        return raw[0] & 1 == 1
    outer = Reader(raw)
    outer.head()  # of the array [payload, checksum]
    outer.untag()
    inner = Reader(outer.byte_string("the payload of a Byron address"))
    inner.head()  # of the array [root, attributes, type]
    inner.skip()
    has_magic = False
    for key in inner.keys("the attributes of a Byron address"):
        has_magic |= key == _MAGIC
        inner.skip()
    return not has_magic


def _parse_shelley(text: str) -> bytes:
    try:
        hrp, raw = bech32_decode(text)
    except ValueError as error:
        raise InvalidAddress(text) from error
    kind, tag = raw[0] >> 4 if raw else 15, raw[0] & 0x0F if raw else 15
    if kind < 0b0100:
        fits = len(raw) == _BASE_BYTES
    elif kind in _POINTERS:
        fits = _is_pointer(raw[_ENTERPRISE_BYTES:])
    else:
        fits = kind < _BYRON and len(raw) == _ENTERPRISE_BYTES
    if not fits or tag > 1 or hrp != ("addr" if tag else "addr_test"):
        raise InvalidAddress(text)
    return _with_pointer_of_node(raw) if kind in _POINTERS else raw


def _is_pointer(tail: bytes) -> bool:
    """Whether bytes are three variable-length numbers: each ends with its first byte below 128 (CIP-19)."""
    return sum(byte < 128 for byte in tail) == 3 and tail[-1] < 128


def _with_pointer_of_node(raw: bytes) -> bytes:
    """A pointer address as a node has it once it has read it in a block: as short as can be, and 0, 0, 0 in place of a
    pointer whose numbers do not all fit their bits (cardano-ledger `decodePtrLenient`, docs/decisions/0057).
    """
    numbers, number = [], 0
    for byte in raw[_ENTERPRISE_BYTES:]:
        number = (number << 7 | byte & 0x7F) & 0xFFFF_FFFF_FFFF_FFFF  # NOTE: the node drops higher bits
        if byte < 0x80:
            numbers.append(number)
            number = 0
    fits = all(number >> bits == 0 for number, bits in zip(numbers, _POINTER_BITS, strict=True))
    return raw[:_ENTERPRISE_BYTES] + b"".join(map(_variable_length, numbers if fits else _NO_POINTER))


def _variable_length(number: int) -> bytes:
    """A number of a pointer: seven bits a byte, of which all but the last are at least 128 (CIP-19)."""
    reversed_ = [number & 0x7F]
    while number := number >> 7:
        reversed_.append(number & 0x7F | 0x80)
    return bytes(reversed_[::-1])


def _parse_byron(text: str) -> bytes:
    try:
        raw = base58_decode(text)
        payload, checksum = cbor2.loads(raw)
        root, attributes, kind = cbor2.loads(payload.value)
    except Exception as error:  # NOTE: cbor2 raises many kinds of errors for bytes of any other shape
        raise InvalidAddress(text) from error
    known = isinstance(root, bytes) and len(root) == HASH28_BYTES and isinstance(attributes, dict) and kind in (0, 2)
    if not known or zlib.crc32(payload.value) != checksum or raw != cbor2.dumps([payload, checksum]):
        raise InvalidAddress(text)
    return raw
