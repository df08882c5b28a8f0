"""Writes and reads addresses: CIP-19 in bech32 with the prefixes of CIP-5, Byron addresses in base58."""

import hashlib
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import cbor2

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_PREFIXES = ("addr", "addr_test", "stake", "stake_test", "stake_vkh", "script", "pool")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_POINTER_BITS = (32, 16, 16)  # of the slot, the transaction's index and the certificate's
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


class LedgerCredential(NamedTuple):
    """The hash of a key or script, 28 bytes in hex; `origin` is verificationKey or script, as in Ogmios."""

    origin: str
    hash: str

    @property
    def is_script(self) -> bool:
        return self.origin == "script"


def blake2b_224(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=28).hexdigest()


def blake2b_256(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def script_hash(language_no: int, body: bytes) -> str:
    """The hash of a script: 0 and its CBOR for a native one, the version and the bytes of a Plutus script."""
    return blake2b_224(bytes([language_no]) + body)


def base_address(address_tag: int, payment: LedgerCredential, stake: LedgerCredential) -> str:
    header = (payment.is_script | stake.is_script << 1) << 4 | address_tag
    return _payment(address_tag, header, payment.hash + stake.hash)


def pointer_address(address_tag: int, payment: LedgerCredential, pointer: tuple[int, int, int]) -> str:
    """An address whose stake part points to a certificate by slot, transaction and index, as nodes show it.

    Wallets wrote any numbers. A node that reads a block replaces a pointer that does not fit into 32, 16 and 16 bits
    with zeros (`mkPtrNormalized` in the ledger's `Credential.hs`), so no chain shows such a pointer.
    """
    fits = all(number < 1 << bits for number, bits in zip(pointer, _POINTER_BITS, strict=True))
    header = (4 | payment.is_script) << 4 | address_tag
    tail = b"".join(map(_variable_length, pointer if fits else (0, 0, 0)))
    return _payment(address_tag, header, payment.hash + tail.hex())


def enterprise_address(address_tag: int, payment: LedgerCredential) -> str:
    return _payment(address_tag, (6 | payment.is_script) << 4 | address_tag, payment.hash)


def stake_address(address_tag: int, stake: LedgerCredential) -> str:
    prefix = "stake" if address_tag else "stake_test"
    header = (14 | stake.is_script) << 4 | address_tag
    return _bech32(prefix, bytes([header]) + bytes.fromhex(stake.hash))


def pool_id(verification_key: bytes) -> str:
    """The hash of the operator's cold key, which the pool's blocks name as their issuer."""
    return _bech32("pool", hashlib.blake2b(verification_key, digest_size=28).digest())


def pool_of_hash(hash_: bytes) -> str:
    """The id of the pool whose operator's key has this hash."""
    return _bech32("pool", hash_)


def byron_root(key: bytes, attributes: object) -> str:
    """The root of the address of an extended public key (64 bytes). It serves as the credential."""
    root = hashlib.sha3_256(cbor2.dumps([0, [0, key], attributes])).digest()
    return blake2b_224(root)


def shown(content: bytes) -> str:
    """The text form of an address in bytes."""
    kind, address_tag = content[0] >> 4, content[0] & 15
    if kind == 8:
        return base58(content)
    if kind in (14, 15):
        return _bech32("stake" if address_tag else "stake_test", content)
    return _bech32("addr" if address_tag else "addr_test", content)


def must_be_payable(content: bytes) -> None:
    """Raises ValueError if these bytes are not an address to which an output may be in Conway.

    See `fromCborRigorousBothAddr` in the ledger's `Address.hs`: nothing may follow an address, and the numbers of a
    pointer must fit. Earlier eras allowed both.
    """
    if content[:1] == b"\x82":
        payload, checksum = cbor2.loads(content)
        if zlib.crc32(payload.value) != checksum:
            raise ValueError("the checksum of a Byron address is wrong")
        return
    if not content or content[0] & 0b1000_1100:
        raise ValueError("the header of an address is invalid")
    match content[0] >> 4 & 6:
        case 4:
            fits = _is_pointer(content[29:])
        case 6:
            fits = len(content) == 29
        case _:
            fits = len(content) == 57
    if not fits:
        raise ValueError("an address is too long or too short, or its pointer is invalid")


def must_be_account(content: bytes) -> None:
    """Raises ValueError if these bytes are not a stake address."""
    if len(content) != 29 or content[0] & 0b1110_1110 != 0b1110_0000:
        raise ValueError("not a stake address")


def byron_address(magic: int | None, key: bytes, path: bytes = b"") -> str:
    """The address of an extended public key (64 bytes), or of a voucher's redeem key (32 bytes).

    `magic` is the network magic of a test network, and None on mainnet. `path` is the encrypted derivation path that
    old wallets put into their addresses. See `address` in the ledger's Byron CDDL.
    """
    kind = 2 if len(key) == 32 else 0
    attributes = {1: cbor2.dumps(path)} if path else {}
    if magic is not None:
        attributes[2] = cbor2.dumps(magic)
    root = hashlib.sha3_256(cbor2.dumps([kind, [kind, key], attributes])).digest()
    payload = cbor2.dumps([hashlib.blake2b(root, digest_size=28).digest(), attributes, kind])
    return base58(cbor2.dumps([cbor2.CBORTag(24, payload), zlib.crc32(payload)]))


@lru_cache(maxsize=100_000)
def is_voucher(address: str) -> bool:
    """Whether a Byron address is that of a redeem key: its type is 2."""
    return bool(cbor2.loads(cbor2.loads(raw(address))[0].value)[2] == 2)


def genesis_output_id(address: str) -> str:
    """The transaction id of a genesis output: the hash of its address, since no transaction made it. Its index is 0."""
    return blake2b_256(raw(address))


@lru_cache(maxsize=100_000)
def stake_part(address: str) -> LedgerCredential | None:
    """The stake credential of outputs at this address. Pointers have no effect, as in Conway."""
    if not address.startswith("addr"):
        return None
    content = raw(address)
    kind = content[0] >> 4
    return LedgerCredential("script" if kind & 2 else "verificationKey", content[29:].hex()) if kind < 4 else None


def payment_part(address: str) -> LedgerCredential:
    """The credential that spends from an address. For a Byron address: its root, as a key hash."""
    content = raw(address)
    if content[0] >> 4 == 8:
        return LedgerCredential("verificationKey", cbor2.loads(cbor2.loads(content)[0].value)[0].hex())
    return LedgerCredential("script" if content[0] & 0x10 else "verificationKey", content[1:29].hex())


def network_of(address: str) -> int | None:
    """The network bits in the header of an address; None for a Byron address."""
    content = raw(address)
    return None if content[0] >> 4 == 8 else content[0] & 15


@lru_cache(maxsize=100_000)
def reward_credential(address: str) -> LedgerCredential:
    """The credential of a stake address."""
    content = raw(address)
    return LedgerCredential("script" if content[0] & 0x10 else "verificationKey", content[1:].hex())


def raw(address: str) -> bytes:
    """The bytes of an address in bech32 or base58. It must be well-formed: checksums are not verified."""
    if "1" in address and address.partition("1")[0] in _PREFIXES:
        digits = [_BECH32.index(letter) for letter in address.rpartition("1")[2][:-6]]
        return bytes(_regroup(digits, 5, 8))
    number = 0
    for letter in address:
        number = number * 58 + _BASE58.index(letter)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def base58(data: bytes) -> str:
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def _payment(address_tag: int, header: int, rest: str) -> str:
    return _bech32("addr" if address_tag else "addr_test", bytes([header]) + bytes.fromhex(rest))


def _variable_length(number: int) -> bytes:
    """Seven bits per byte, the most significant first; every byte except the last has its top bit set (CIP-19)."""
    digits = [number & 0x7F]
    while number := number >> 7:
        digits.append(number & 0x7F | 0x80)
    return bytes(reversed(digits))


def _is_pointer(tail: bytes) -> bool:
    """Whether these bytes are three numbers that fit. The first byte of each may be padding of zeros."""
    digits = iter(tail)
    for bits in _POINTER_BITS:
        number, more, count = 0, True, 0
        while more:
            digit = next(digits, None)
            if digit is None:
                return False
            number, more, count = number << 7 | digit & 0x7F, digit > 0x7F, count + 1
        if number >= 1 << bits or count > -(-bits // 7):
            return False
    return next(digits, None) is None


@lru_cache(maxsize=100_000)
def _bech32(prefix: str, data: bytes) -> str:
    digits = [*_regroup(data, 8, 5, pad=True)]
    expanded = [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]
    remainder = _polymod(expanded + digits + [0] * 6) ^ 1
    digits += [remainder >> 5 * (5 - place) & 31 for place in range(6)]
    return prefix + "1" + "".join(_BECH32[digit] for digit in digits)


def _polymod(values: list[int]) -> int:
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATORS):
            if top >> place & 1:
                checksum ^= generator
    return checksum


def _regroup(data: Iterable[int], width: int, into: int, pad: bool = False) -> Iterable[int]:
    buffer = bits = 0
    for value in data:
        buffer = buffer << width | value
        bits += width
        while bits >= into:
            bits -= into
            yield buffer >> bits & (1 << into) - 1
    if pad and bits:
        yield buffer << into - bits & (1 << into) - 1
