"""What exists before the first block: genesis outputs and deposits, as the node's genesis configurations tell."""

import base64
import hashlib
import zlib
from datetime import datetime

import cbor2
import msgspec

from indexer import frames
from indexer.ogmios import Ogmios
from shared import address
from shared.network import Network

GenesisOutput = tuple[bytes, bytes, int]
"""Transaction hash, raw address, lovelace; the index is 0."""

_REDEEM = 2


class WrongNetwork(Exception):
    """The node follows another network than this indexer."""


class Genesis(msgspec.Struct, frozen=True):
    """Genesis outputs, and the deposits in lovelace of a stake credential and of a pool."""

    outputs: list[GenesisOutput]
    stake_deposit: int
    pool_deposit: int


async def load(node: Ogmios, network: Network) -> Genesis:
    """Ask the node for the genesis of its network. Raises WrongNetwork, ogmios.Refused and frames.Unreadable."""
    byron = await node.call("queryNetwork/genesisConfiguration", _Byron, era="byron")
    shelley = await node.call("queryNetwork/genesisConfiguration", _Shelley, era="shelley")
    for configuration in (byron, shelley):
        if configuration.network_magic != network.magic:
            raise WrongNetwork(
                f"the node's network magic is {configuration.network_magic}, {network.name} has {network.magic}"
            )
    if shelley.start_time != network.start_time:
        raise WrongNetwork(f"the node's network began {shelley.start_time}, {network.name} began {network.start_time}")
    try:
        funds = [
            (address.of_node(text), frames.lovelace(value))
            for text, value in (*byron.initial_funds.items(), *shelley.initial_funds.items())
        ]
        vouchers = [
            (redeem_address(_key(text), network), frames.lovelace(value))
            for text, value in byron.initial_vouchers.items()
        ]
    except ValueError as error:
        raise frames.Unreadable(f"genesis configuration: {error}") from error
    return Genesis(
        outputs=[(hashlib.blake2b(raw, digest_size=32).digest(), raw, lovelace) for raw, lovelace in funds + vouchers],
        stake_deposit=frames.lovelace(shelley.initial_parameters.stake_credential_deposit),
        pool_deposit=frames.lovelace(shelley.initial_parameters.stake_pool_deposit),
    )


def redeem_address(verification_key: bytes, network: Network) -> bytes:
    """The raw Byron address that a voucher's key redeems (Byron CDDL: `address`, type 2)."""
    attributes = {} if network.is_mainnet else {2: cbor2.dumps(network.magic)}
    spending = cbor2.dumps([_REDEEM, [_REDEEM, verification_key], attributes])
    root = hashlib.blake2b(hashlib.sha3_256(spending).digest(), digest_size=28).digest()
    payload = cbor2.dumps([root, attributes, _REDEEM])
    return cbor2.dumps([cbor2.CBORTag(24, payload), zlib.crc32(payload)])


def _key(text: str) -> bytes:
    """A voucher's key: hex as Ogmios' schema says, or base64url as in the genesis file. Raises ValueError."""
    key = bytes.fromhex(text) if len(text) == 64 else base64.urlsafe_b64decode(text)
    if len(key) != 32:
        raise ValueError(f"a voucher's key has 32 bytes, not {len(key)}")
    return key


class _Byron(msgspec.Struct, frozen=True, rename="camel"):
    network_magic: int
    initial_funds: dict[str, frames.Lovelace] = {}
    initial_vouchers: dict[str, frames.Lovelace] = {}


class _InitialParameters(msgspec.Struct, frozen=True, rename="camel"):
    stake_credential_deposit: frames.Lovelace
    stake_pool_deposit: frames.Lovelace


class _Shelley(msgspec.Struct, frozen=True, rename="camel"):
    network_magic: int
    start_time: datetime
    initial_parameters: _InitialParameters
    initial_funds: dict[str, frames.Lovelace] = {}
