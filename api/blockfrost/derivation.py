"""`/utils/addresses/xpub`: addresses of a wallet, from the public key of its account (CIP-1852)."""

import hmac
from hashlib import blake2b, sha512
from typing import Annotated

import msgspec
from nacl import bindings

from api.ask import ChainAsk
from api.blockfrost import refusals
from api.blockfrost.paging import InPath
from api.parameters import Hex, Question
from shared import address
from shared.ledger import HASH28_BYTES
from shared.network import Network

_KEY_BYTES = 32
_STAKE_ROLE = 2


class DerivationQuestion(Question, frozen=True, kw_only=True):
    """The public key of an account with its chain code, and the path of an address below it."""

    xpub: Annotated[bytes, Hex(2 * _KEY_BYTES, refusals.invalid_xpub)]
    role: Annotated[int, InPath("role")]
    index: Annotated[int, InPath("index")]


class DerivedAddress(msgspec.Struct, frozen=True):
    """An address of the account: with its first stake key or, for role 2, a stake address."""

    xpub: str
    role: int
    index: int
    address: str


async def derived(ask: ChainAsk[DerivationQuestion]) -> DerivedAddress:
    """Derive an address of an account."""
    asked = ask.question
    try:
        shown = derive(asked.xpub, asked.role, asked.index, ask.network)
    except RuntimeError as error:  # libsodium's, for bytes that are no point of the curve
        raise refusals.invalid_xpub() from error
    return DerivedAddress(asked.xpub.hex(), asked.role, asked.index, shown)


def derive(xpub: bytes, role: int, index: int, network: Network) -> str:
    """The address of a path below an account's public key and chain code. Raises RuntimeError if it is no key."""
    if role == _STAKE_ROLE:
        return address.show_stake(address.reward_account(_key_hash(xpub, role, index), "verificationKey", network))
    header = bytes((network.is_mainnet,))  # a base address of two keys (CIP-19)
    return address.show(header + _key_hash(xpub, role, index) + _key_hash(xpub, _STAKE_ROLE, 0))


def _key_hash(xpub: bytes, *path: int) -> bytes:
    for index in path:
        xpub = _child(xpub, index)
    return blake2b(xpub[:_KEY_BYTES], digest_size=HASH28_BYTES).digest()


def _child(xpub: bytes, index: int) -> bytes:
    """The public key and chain code of a child that is not hardened (BIP32-Ed25519, V.D)."""
    key, chain_code = xpub[:_KEY_BYTES], xpub[_KEY_BYTES:]
    number = index.to_bytes(4, "little")
    left = hmac.digest(chain_code, b"\x02" + key + number, sha512)[:28]
    scalar = (8 * int.from_bytes(left, "little")).to_bytes(_KEY_BYTES, "little")
    child = bindings.crypto_core_ed25519_add(key, bindings.crypto_scalarmult_ed25519_base_noclamp(scalar))
    return child + hmac.digest(chain_code, b"\x03" + key + number, sha512)[_KEY_BYTES:]
