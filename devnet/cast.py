"""The actors of a generated chain: people with addresses of every kind, pools, policies, representatives.

All of them are derived from the seed. Keys are hashes of the right length, not points on a curve: nothing checks them.
"""

import hashlib
from functools import cached_property
from random import Random
from typing import Any

import cbor2
import msgspec

from devnet import addresses
from devnet.addresses import LedgerCredential
from devnet.blocks import Genesis
from devnet.networks import Network

Json = dict[str, Any]

PEOPLE = 400
POOLS = 12
POLICIES = 9
REPRESENTATIVES = 8
POPULARITY = 1.1  # the address of rank n acts n ** -POPULARITY times as often as that of rank 1
FAUCETS = 3
VOUCHERS = 6
LOST_VOUCHERS = 2  # nobody redeems them
_ABSURD_POINTER = (18_446_744_073_709_551_615, 4_294_967_296, 12_345)


def _plutus(version: int, number: int) -> tuple[str, Json]:
    """The always-succeeding script of Plutus' examples, with a number in it, and its hash."""
    body = bytes.fromhex("4e4d01000033222220051200120011")[:-1] + bytes([number])
    return addresses.script_hash(version, body), {"language": f"plutus:v{version}", "cbor": body.hex()}


SCRIPTS: dict[str, Json] = dict(_plutus(1 + number // 2, number) for number in range(4))
"""The scripts of `Cast.script_addresses`, by hash, in the same order."""


class PoolKeys(msgspec.Struct, frozen=True):
    """A pool's id, the keys that its blocks carry, and its owner."""

    id: str
    cold_key: str
    vrf_key: str
    vrf_hash: str
    owner: LedgerCredential


class Cast:
    """The actors for a seed and a network; equal for equal arguments."""

    def __init__(self, seed: int, network: Network) -> None:
        self.seed = seed
        self.network = network
        self.stakers = [
            LedgerCredential("script" if number % 7 == 6 else "verificationKey", self.hash_of("stake", number))
            for number in range(PEOPLE // 2)
        ]
        self.people = [self._address(number) for number in range(PEOPLE)]
        self.policies = [self._policy(number) for number in range(POLICIES)]
        self.script_addresses = [
            addresses.enterprise_address(network.address_tag, LedgerCredential("script", hash_)) for hash_ in SCRIPTS
        ]
        self.representatives = [
            LedgerCredential("script" if number % 3 == 2 else "verificationKey", self.hash_of("drep", number))
            for number in range(REPRESENTATIVES)
        ]
        self.pools = [self._pool(number) for number in range(POOLS)]
        self.delegates = [self.key("genesis delegate", number) for number in range(7)]
        self._weights = list(_accumulated((rank + 1) ** -POPULARITY for rank in range(PEOPLE)))

    @cached_property
    def genesis(self) -> Genesis:
        """Almost all funds belong to the faucets. On networks that began in Byron, some belong to vouchers, and one
        output has no lovelace, as in preprod's genesis.
        """
        byron = [self.byron(number) for number in range(FAUCETS)]
        vouchers = [self.key("voucher", number) for number in range(VOUCHERS if self.network.byron_epochs else 0)]
        shelley = {} if self.network.byron_epochs else {self.faucets[0]: 9_000_000_000_000_000}
        return Genesis(
            byron_funds=dict.fromkeys(byron, 6_000_000_000_000_000) | ({self.byron(99): 0} if vouchers else {}),
            byron_vouchers={key: 7_000_000_000_000 + rank for rank, key in enumerate(vouchers)},
            shelley_funds=shelley,
        )

    @cached_property
    def faucets(self) -> list[str]:
        """Addresses that pay if no other can: an enterprise address, and the Byron addresses that genesis funds."""
        shelley = LedgerCredential("verificationKey", self.hash_of("faucet", 0))
        return [addresses.enterprise_address(self.network.address_tag, shelley), *map(self.byron, range(FAUCETS))]

    @cached_property
    def voucher_addresses(self) -> list[str]:
        magic = None if self.network.address_tag else self.network.magic
        return [addresses.byron_address(magic, bytes.fromhex(key)) for key in self.genesis.byron_vouchers]

    @cached_property
    def byron_people(self) -> list[str]:
        return [self.byron(number) for number in range(100, 130)]

    def minting_script(self, policy: str) -> Json:
        """The native script of a policy: a signature."""
        number = self.policies.index(policy)
        return {"language": "native", "json": {"clause": "signature", "from": self.hash_of("policy", number)}}

    def _policy(self, number: int) -> str:
        return addresses.script_hash(0, cbor2.dumps([0, bytes.fromhex(self.hash_of("policy", number))]))

    def somebody(self, random: Random) -> str:
        """A random person's address; a few are far more likely than the others."""
        return random.choices(self.people, cum_weights=self._weights)[0]

    def reward_address(self, credential: LedgerCredential) -> str:
        return addresses.stake_address(self.network.address_tag, credential)

    def byron(self, number: int) -> str:
        magic = None if self.network.address_tag else self.network.magic
        path = self._digest("path", number, 28) * (number % 4)
        return addresses.byron_address(magic, self._digest("byron", number, 64), path)

    def key(self, kind: str, number: int) -> str:
        """A verification key, 32 bytes in hex."""
        return self._digest(kind, number, 32).hex()

    def hash_of(self, kind: str, number: int) -> str:
        """The hash of a credential, policy or script, 28 bytes in hex."""
        return self._digest(kind, number, 28).hex()

    def _digest(self, kind: str, number: int, size: int) -> bytes:
        name = f"{self.network.name} {self.seed} {kind} {number}".encode()
        return hashlib.blake2b(name, digest_size=size).digest()

    def _address(self, number: int) -> str:
        """Six in ten people have a base address with keys, the rest a rarer kind. Two people share each stake key.

        Some use the payment key of a base address at another kind of address, too. All with a script in their payment
        part share the same script, as with an exchange whose orders stay delegated.
        """
        address_tag = self.network.address_tag
        holder = {6: number - 1, 7: 7, 9: number - 6}.get(number % 10, number)
        payment = LedgerCredential("verificationKey", self.hash_of("payment", holder))
        stake = self.stakers[number // 2]
        match number % 10:
            case 6:
                return addresses.enterprise_address(address_tag, payment)
            case 7:
                return addresses.base_address(address_tag, LedgerCredential("script", payment.hash), stake)
            case 8:
                return self.byron(number)
            case 9:
                pointer = _ABSURD_POINTER if number % 20 == 9 else (2_498_243, 27, number)
                return addresses.pointer_address(address_tag, payment, pointer)
            case _:
                return addresses.base_address(address_tag, payment, stake)

    def _pool(self, number: int) -> PoolKeys:
        cold_key = self.key("pool", number)
        vrf_key = self.key("vrf", number)
        return PoolKeys(
            addresses.pool_id(bytes.fromhex(cold_key)),
            cold_key,
            vrf_key,
            addresses.blake2b_256(bytes.fromhex(vrf_key)),
            self.stakers[number * 3],
        )


def _accumulated(weights: Any) -> Any:
    total = 0.0
    for weight in weights:
        total += weight
        yield total
