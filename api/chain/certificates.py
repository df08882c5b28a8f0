"""Certificates of a transaction, as answers show them."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from api.answers import Quantity
from api.chain.pools import show_pool_id
from shared import address, packed
from shared.network import Network
from shared.packed import Origin


class LedgerCredential(msgspec.Struct, frozen=True):
    """The hash of a key or of a script."""

    id: str
    origin: Origin


class Representative(msgspec.Struct, frozen=True):
    """A delegate representative: a registered one, or a predefined one that always abstains or votes no confidence.

    Only a registered one has an id, the hash of a key or of a script.
    """

    type: Literal["registered", "abstain", "noConfidence"]
    id: str | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET


class Anchor(msgspec.Struct, frozen=True):
    """The URL and the hash of a document."""

    url: str
    hash: str


class PoolRelay(msgspec.Struct, frozen=True, omit_defaults=True):
    """A relay as registered. A host name without a port names an SRV record."""

    port: int | UnsetType = UNSET
    ipv4: str | UnsetType = UNSET
    ipv6: str | UnsetType = UNSET
    hostname: str | UnsetType = UNSET


class PoolRegistration(msgspec.Struct, frozen=True):
    """The registered parameters of a pool. `pledge` and `fixed_cost` are in lovelace, `margin` is the exact ratio."""

    vrf_key_hash: str
    pledge: Quantity
    fixed_cost: Quantity
    margin: str
    reward_account: str | None
    owners: list[str]
    relays: list[PoolRelay]
    metadata_url: str | None
    metadata_hash: str | None


class GenesisDelegation(msgspec.Struct, frozen=True):
    """The hashes of a genesis key, of its delegate's key, and of its delegate's VRF key."""

    genesis_key_hash: str
    delegate_key_hash: str
    vrf_key_hash: str


class Certificate(msgspec.Struct, frozen=True):
    """A certificate. `type` is Ogmios' name for its type, and determines which of the other fields it has.

    `stakeCredentialRegistration`, `stakeCredentialDeregistration`: `stake_address`, and `deposit` (lovelace) if it
    names one. `stakeDelegation`: `stake_address`, and `pool_id`, `delegate_representative`, or both.
    `stakePoolRegistration`: `pool_id`, `pool`. `stakePoolRetirement`: `pool_id`, `retirement_epoch`.
    `delegateRepresentativeRegistration`, `delegateRepresentativeUpdate`, `delegateRepresentativeRetirement`:
    `delegate_representative`, `deposit` except for an update, `anchor` if it has one.
    `constitutionalCommitteeDelegation`: `committee_member` (cold) and `committee_delegate` (hot).
    `constitutionalCommitteeRetirement`: `committee_member`, `anchor` if it has one. `genesisDelegation`:
    `genesis_delegation`.
    """

    type: str
    stake_address: str | UnsetType = UNSET
    pool_id: str | UnsetType = UNSET
    pool: PoolRegistration | UnsetType = UNSET
    retirement_epoch: int | UnsetType = UNSET
    delegate_representative: Representative | UnsetType = UNSET
    deposit: Quantity | UnsetType = UNSET
    committee_member: LedgerCredential | UnsetType = UNSET
    committee_delegate: LedgerCredential | UnsetType = UNSET
    genesis_delegation: GenesisDelegation | UnsetType = UNSET
    anchor: Anchor | UnsetType = UNSET


def show(certificate: packed.Certificate, network: Network) -> Certificate:
    """A certificate as answers show it."""
    genesis, anchor, party = certificate.genesis, certificate.anchor, certificate.representative
    return Certificate(
        type=certificate.type,
        stake_address=UNSET if certificate.stake is None else _stake_address(certificate.stake, network),
        pool_id=UNSET if certificate.pool_id is None else show_pool_id(certificate.pool_id),
        pool=UNSET if certificate.pool is None else _pool(certificate.pool),
        retirement_epoch=_set(certificate.retirement_epoch),
        delegate_representative=UNSET if party is None else show_representative(party),
        deposit=_set(certificate.deposit),
        committee_member=_credential(certificate.cold),
        committee_delegate=_credential(certificate.hot),
        genesis_delegation=UNSET if genesis is None else _genesis_delegation(*genesis),
        anchor=UNSET if anchor is None else Anchor(anchor.url, anchor.content_hash.hex()),
    )


def show_representative(representative: bytes) -> Representative:
    """A representative from its packed bytes."""
    fixed = packed.FIXED_REPRESENTATIVES.get(representative[0])
    if fixed is not None:
        return Representative(fixed)
    origin, digest = _origin_and_hash(representative)
    return Representative("registered", digest.hex(), origin)


def _set(number: int | None) -> int | UnsetType:
    return UNSET if number is None else number


def _stake_address(credential: bytes, network: Network) -> str:
    origin, digest = _origin_and_hash(credential)
    return address.show_stake(address.reward_account(digest, origin, network))


def _credential(credential: bytes | None) -> LedgerCredential | UnsetType:
    if credential is None:
        return UNSET
    origin, digest = _origin_and_hash(credential)
    return LedgerCredential(digest.hex(), origin)


def _origin_and_hash(credential: bytes) -> tuple[Origin, bytes]:
    """Take a credential apart: a byte for its origin, then the hash."""
    return packed.CREDENTIAL_ORIGINS[credential[0]], credential[1:]


def _genesis_delegation(key_hash: bytes, delegate_key_hash: bytes, vrf_key_hash: bytes) -> GenesisDelegation:
    return GenesisDelegation(key_hash.hex(), delegate_key_hash.hex(), vrf_key_hash.hex())


def _pool(pool: packed.PoolParameters) -> PoolRegistration:
    return PoolRegistration(
        vrf_key_hash=pool.vrf_key_hash.hex(),
        pledge=pool.pledge,
        fixed_cost=pool.fixed_cost,
        margin=pool.margin,
        reward_account=None if pool.reward_account is None else address.show_stake(pool.reward_account),
        owners=[address.show_stake(owner) for owner in pool.owners],
        relays=[
            PoolRelay(**{name: part for name, part in msgspec.structs.asdict(relay).items() if part is not None})
            for relay in pool.relays
        ],
        metadata_url=pool.metadata_url,
        metadata_hash=None if pool.metadata_hash is None else pool.metadata_hash.hex(),
    )
