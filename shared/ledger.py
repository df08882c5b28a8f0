"""Ledger concepts that the indexer and the API share: points, tx_ids, fingerprints, CIP-67 labels."""

import hashlib
import re
from collections.abc import Sequence
from typing import Literal, NewType

import msgspec

from shared.encoding import bech32_decode, bech32_encode, bech32_encode_all

TxId = NewType("TxId", int)
"""slot_no << 16 | index in the block: sorts by time, and follows from the block alone."""

# Row numbers of byte strings: one type per kind of byte string. They are valid in the database of one network only.
AddressNo = NewType("AddressNo", int)
StakeNo = NewType("StakeNo", int)
PoolNo = NewType("PoolNo", int)
PolicyNo = NewType("PolicyNo", int)
AssetNo = NewType("AssetNo", int)
LabelNo = NewType("LabelNo", int)

ScriptKey = NewType("ScriptKey", bytes)
"""See script_key_of."""

LOVELACE_NO = AssetNo(0)
"""Stands for lovelace in place of an asset_no: numbers begin at 1."""

MAX_BLOCK_TRANSACTIONS = 1 << 16
MAX_SLOT = (1 << 47) - 1
"""The last slot whose tx_ids fit into 63 bits, four million years from now."""

SECURITY_PARAMETER = 2_160
"""The longest rollback, in blocks, of a node that follows the protocol (k in the Shelley genesis).

A replaced node or `resync` may go back further.
"""

ERAS = ("byron", "shelley", "allegra", "mary", "alonzo", "babbage", "conway", "dijkstra")
"""The eras as Ogmios names them, oldest first."""
BEFORE_CONWAY = frozenset(ERAS[: ERAS.index("conway")])

ACTIVE_AFTER_EPOCHS = 2
"""A delegation is first active in the second epoch after its own (Shelley ledger specification: mark, set, go)."""

PAID_AFTER_EPOCHS = 2
"""Rewards are computed in the epoch after the one in which they are earned, and paid at the beginning of the next."""

HASH28_BYTES = 28
"""Length of a key or script hash (CDDL `hash28`, Blake2b-224): policy ids, pool ids, payment and stake credentials."""

SCRIPT_KEY_BYTES = 16
"""Two scripts with the same key take 2^64 attempts, one with that of a certain script takes 2^128."""

POOL_HRP = "pool"
"""The human-readable part of a pool id in bech32 (CIP-5)."""

ScriptLanguage = Literal["native", "plutus:v1", "plutus:v2", "plutus:v3", "plutus:v4"]
SCRIPT_LANGUAGES: tuple[ScriptLanguage, ...] = ("native", "plutus:v1", "plutus:v2", "plutus:v3", "plutus:v4")
"""The languages of scripts, by Ogmios' names. The position of each is its number in rows, and the byte that precedes
the script when it is hashed (CDDL `script_hash`).
"""
NATIVE = SCRIPT_LANGUAGES.index("native")


class Point(msgspec.Struct, frozen=True):
    """A position on the chain: the slot and the block hash (32 bytes). The origin is None."""

    slot_no: int
    block_hash: bytes

    def __str__(self) -> str:
        return f"slot {self.slot_no} block {self.block_hash.hex()}"


_FINGERPRINT, FINGERPRINT_START = "asset", "asset1"
_FINGERPRINT_LETTERS = 44
_BECH32 = re.compile("[A-Za-z_]+1[02-9ac-hj-np-zAC-HJ-NP-Z]*")


def tx_id_of(slot_no: int, index: int) -> TxId:
    """The tx_id of the transaction at `index` in the block at `slot_no`."""
    return TxId(slot_no << 16 | index)


def script_key_of(script_hash: bytes) -> ScriptKey:
    """The key under which the index lists the redeemers of a script: the first 16 bytes of its hash
    (docs/decisions/0081).
    """
    return ScriptKey(script_hash[:SCRIPT_KEY_BYTES])


def label_no_of(label: int) -> LabelNo:
    """The number of a metadata label: 64 bits without a sign become 64 bits with one, in the same order."""
    return LabelNo(label - (1 << 63))


def label_numbered(label_no: LabelNo) -> int:
    """The metadata label with this number."""
    return label_no + (1 << 63)


def slot_of(tx_id: int) -> int:
    """The slot of the transaction with this tx_id."""
    return tx_id >> 16


def index_of(tx_id: int) -> int:
    """The index in its block of the transaction with this tx_id."""
    return tx_id & (MAX_BLOCK_TRANSACTIONS - 1)


def fingerprint(policy_id: bytes, asset_name: bytes) -> str:
    """The CIP-14 fingerprint of an asset, `asset1…`."""
    return bech32_encode(_FINGERPRINT, fingerprint_digest(policy_id + asset_name))


def fingerprint_digest(asset: bytes) -> bytes:
    """The 20 bytes in the fingerprint of an asset, which is its policy id and its name."""
    return hashlib.blake2b(asset, digest_size=20).digest()


def fingerprint_number(digest: bytes) -> int:
    """The column `asset.fingerprint`, by which an asset is looked up, for the 20 bytes in a fingerprint."""
    return int.from_bytes(digest[:8], signed=True)


def is_like_fingerprint(text: str) -> bool:
    """Whether text begins like a fingerprint or, with the same letters, like another identifier in bech32."""
    return text.lower().startswith(FINGERPRINT_START) or _BECH32.fullmatch(text) is not None


def parse_fingerprint(text: str) -> bytes:
    """The 20 bytes in a fingerprint, in all lower or all upper case. Raises ValueError, which says what is wrong."""
    if not text.lower().startswith(FINGERPRINT_START):
        raise ValueError(f"it does not begin with {FINGERPRINT_START}")
    if text not in (text.lower(), text.upper()):
        raise ValueError("upper and lower case are mixed")
    if len(text) != _FINGERPRINT_LETTERS:
        raise ValueError(f"it has {len(text)} characters instead of {_FINGERPRINT_LETTERS}")
    if not _BECH32.fullmatch(text):
        raise ValueError("it has a character that bech32 does not use")
    try:
        return bech32_decode(text)[1]
    except ValueError:
        raise ValueError("its checksum is wrong, so at least one character is") from None


def fingerprints(policy_id: bytes, asset_names: Sequence[bytes]) -> list[str]:
    """The CIP-14 fingerprints of some assets of a policy."""
    of_policy = hashlib.blake2b(policy_id, digest_size=20)
    digests = []
    for asset_name in asset_names:
        of_asset = of_policy.copy()
        of_asset.update(asset_name)
        digests.append(of_asset.digest())
    return bech32_encode_all(_FINGERPRINT, digests)


def parse_pool_id(text: str) -> bytes:
    """A pool id of 28 bytes from bech32, `pool1…`, or hex, in upper or lower case. Raises ValueError."""
    if re.fullmatch(f"[0-9a-fA-F]{{{2 * HASH28_BYTES}}}", text):
        return bytes.fromhex(text)
    hrp, pool = bech32_decode(text)
    if hrp != POOL_HRP or len(pool) != HASH28_BYTES:
        raise ValueError("not a pool id")
    return pool


def pool_id_of(verification_key: bytes) -> bytes:
    """The pool id (CDDL pool_keyhash, 28 bytes) of a block issuer's cold verification key (32 bytes)."""
    return hashlib.blake2b(verification_key, digest_size=HASH28_BYTES).digest()


def genesis_key_hash_of(verification_key: bytes) -> bytes:
    """The name of the issuer of a block of Byron, from its genesis key (32 bytes, which a chain code may follow).

    That is the first 28 bytes of the key's hash, since other issuers have as many (cardano-db-sync `slotLeaderHash`).
    """
    return hashlib.blake2b(verification_key[:32], digest_size=32).digest()[:HASH28_BYTES]


def datum_hash_of(body: bytes) -> bytes:
    """The hash of a datum (CDDL `datum_hash`, 32 bytes) from its CBOR."""
    return hashlib.blake2b(body, digest_size=32).digest()


def script_hash_of(language_no: int, body: bytes) -> bytes:
    """The hash of a script (CDDL `script_hash`, 28 bytes) from a native script's CBOR or a Plutus script's bytes."""
    return hashlib.blake2b(bytes((language_no,)) + body, digest_size=HASH28_BYTES).digest()


def label_prefix(label: int) -> bytes:
    """The four bytes that start an asset name with a CIP-67 label: 0, label, CRC-8, 0 in 4, 16, 8 and 4 bits."""
    return (label << 12 | _crc8(label.to_bytes(2)) << 4).to_bytes(4)


def label_of(asset_name: bytes) -> int | None:
    """The CIP-67 label of an asset name, or None if it has none or its checksum is wrong."""
    prefix = int.from_bytes(asset_name[:4])
    label = prefix >> 12
    if len(asset_name) < 4 or label >> 16 or label_prefix(label) != asset_name[:4]:
        return None
    return label


def _crc8(data: bytes) -> int:
    """CRC-8 with the polynomial 0x07, as CIP-67 prescribes."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07 if crc & 0x80 else crc << 1) & 0xFF
    return crc
