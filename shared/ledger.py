"""Words of the ledger that both sides use: points, the row key of a transaction, fingerprints, CIP-67 labels."""

import hashlib
from typing import NewType

import msgspec

from shared.encoding import bech32_encode

TxId = NewType("TxId", int)
"""slot_no << 16 | index in the block: sorts by time and is known from one block alone."""

MAX_BLOCK_TRANSACTIONS = 1 << 16
MOST_SLOT = (1 << 47) - 1
"""The last slot whose row keys fit into 63 bits, four million years from now."""


class Point(msgspec.Struct, frozen=True):
    """Where a chain stands: the slot and the block hash (32 bytes). The origin is None."""

    slot_no: int
    block_hash: bytes

    def __str__(self) -> str:
        return f"slot {self.slot_no} block {self.block_hash.hex()}"


def tx_id(slot_no: int, index: int) -> TxId:
    """The row key of the transaction at `index` of the block at `slot_no`."""
    return TxId(slot_no << 16 | index)


def slot_of(key: int) -> int:
    """The slot of the transaction with this row key."""
    return key >> 16


def fingerprint(policy_id: bytes, asset_name: bytes) -> str:
    """The CIP-14 fingerprint of an asset, `asset1…`."""
    return bech32_encode("asset", hashlib.blake2b(policy_id + asset_name, digest_size=20).digest())


def pool_id_of(verification_key: bytes) -> bytes:
    """The pool id (CDDL pool_keyhash, 28 bytes) of a block issuer's cold verification key (32 bytes)."""
    return hashlib.blake2b(verification_key, digest_size=28).digest()


def label_prefix(label: int) -> bytes:
    """The four bytes that an asset name with a CIP-67 label begins with: 0, label, CRC-8, 0 in 4, 16, 8 and 4 bits."""
    return (label << 12 | _crc8(label.to_bytes(2)) << 4).to_bytes(4)


def label_of(asset_name: bytes) -> int | None:
    """The CIP-67 label of an asset name, None where it has none or its checksum is wrong."""
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
