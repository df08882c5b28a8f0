"""The state before the first block, from the node's genesis configurations: outputs, deposits, pools, delegations."""

import base64
import hashlib
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import cbor2
import msgspec

from indexer.blocks.certificates import parameters_of, parse_pool_id
from indexer.ogmios import frames
from shared import address, packed
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT, Network

if TYPE_CHECKING:
    # NOTE: not at run time, since processes of verify need no node, and would take a third longer to start.
    from indexer.ogmios.connection import Ogmios


class GenesisOutput(NamedTuple):
    """An output of the genesis, whose index is 0. Its address is raw."""

    tx_hash: bytes
    address: bytes
    lovelace: int


_REDEEM = 2


class WrongNetwork(Exception):
    """The node follows a different network than this indexer."""


class Genesis(msgspec.Struct, frozen=True):
    """Genesis outputs, and the first deposits in lovelace of a stake credential and of a pool.

    Private networks may begin with pools, by pool_id, and with delegations to them, by reward account.
    """

    outputs: list[GenesisOutput]
    stake_deposit: int = STAKE_DEPOSIT
    pool_deposit: int = POOL_DEPOSIT
    pools: dict[bytes, packed.PoolParameters] = {}
    delegations: dict[bytes, bytes] = {}

    @property
    def accounts(self) -> set[bytes]:
        """The reward accounts of its delegations and pools."""
        rewarded = (pool.reward_account for pool in self.pools.values())
        return {*self.delegations, *(account for account in rewarded if account is not None)}


async def load(node: "Ogmios", network: Network) -> Genesis:
    """Query the genesis of the node's network. Raises WrongNetwork, frames.Unreadable and OSError.

    Raises Refused if the node can't answer yet: its ledger has Shelley's genesis only after Byron, which takes a new
    mainnet node hours. Without genesis outputs, transactions that spend them could not be indexed.
    """
    byron = await node.call("queryNetwork/genesisConfiguration", _Byron, era="byron")
    shelley = await node.call("queryNetwork/genesisConfiguration", _Shelley, era="shelley")
    for magic in (byron.network_magic, shelley.network_magic):
        if magic not in (None, network.magic):
            raise WrongNetwork(f"the node's network magic is {magic}, that of {network.name} is {network.magic}")
    if shelley.start_time not in (None, network.start_time):
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
        staking = shelley.initial_stake_pools
        pools = {parse_pool_id(pool.id): parameters_of(pool, network) for pool in staking.stake_pools.values()}
        delegations = {
            address.reward_account(bytes.fromhex(key_hash), "verificationKey", network): parse_pool_id(text)
            for key_hash, text in staking.delegators.items()
        }
    except ValueError as error:
        raise frames.Unreadable(f"genesis configuration: {error}") from error
    return Genesis(
        outputs=sorted(
            GenesisOutput(hashlib.blake2b(raw, digest_size=32).digest(), raw, lovelace)
            for raw, lovelace in funds + vouchers
        ),
        stake_deposit=frames.lovelace(shelley.initial_parameters.stake_credential_deposit),
        pool_deposit=frames.lovelace(shelley.initial_parameters.stake_pool_deposit),
        pools=pools,
        delegations=delegations,
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
    network_magic: int | None = None
    initial_funds: dict[str, frames.Lovelace] = {}
    initial_vouchers: dict[str, frames.Lovelace] = {}


def _ada(lovelace: int) -> frames.Lovelace:
    return {"ada": {"lovelace": lovelace}}


class _InitialParameters(msgspec.Struct, frozen=True, rename="camel"):
    stake_credential_deposit: frames.Lovelace = msgspec.field(default_factory=lambda: _ada(STAKE_DEPOSIT))
    stake_pool_deposit: frames.Lovelace = msgspec.field(default_factory=lambda: _ada(POOL_DEPOSIT))


class _InitialStakePools(msgspec.Struct, frozen=True, rename="camel"):
    """Pools by id, and the pool's id by the hash of a stake key."""

    stake_pools: dict[str, frames.StakePool] = {}
    delegators: dict[str, str] = {}


class _Shelley(msgspec.Struct, frozen=True, rename="camel"):
    network_magic: int | None = None
    start_time: datetime | None = None
    initial_parameters: _InitialParameters = _InitialParameters()
    initial_funds: dict[str, frames.Lovelace] = {}
    initial_stake_pools: _InitialStakePools = _InitialStakePools()
