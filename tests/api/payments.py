"""Addresses of preview, and transactions that pay to them."""

import zlib

import cbor2

from indexer.blocks.effects import PaidOutput
from shared import address
from tests.api.chains import Tx

KEY_HASH, OTHER_HASH = bytes(range(28)), bytes(range(28, 56))
ALICE = address.show(b"\x60" + KEY_HASH)
BOB = address.show(b"\x00" + OTHER_HASH + KEY_HASH)
NOBODY = address.show(b"\x60" + OTHER_HASH)
ON_MAINNET = address.show(b"\x61" + KEY_HASH)
STAKE = address.show_stake(b"\xe0" + KEY_HASH)


def byron(attributes: dict[int, bytes]) -> bytes:
    """The bytes of a Byron address (CDDL `byron_address`)."""
    payload = cbor2.dumps([KEY_HASH, attributes, 0])
    return cbor2.dumps([cbor2.CBORTag(24, payload), zlib.crc32(payload)])


BYRON = byron({2: cbor2.dumps(1)})
BYRON_ON_MAINNET = byron({})


def raw(text: str) -> bytes:
    """The bytes of a bech32 address of ours."""
    return address.of_node(text)


def pays(name: str, *texts: str) -> Tx:
    """A transaction that pays 1 ada to each address."""
    return Tx(name=name, outputs=[PaidOutput(raw(text), 1_000_000) for text in texts])
