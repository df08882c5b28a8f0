"""Certificates about stake credentials and pools, in our words. Pure."""

from collections.abc import Iterator

import msgspec

from indexer import frames
from indexer.effects import BlockEffects
from shared import packed
from shared.address import reward_account
from shared.encoding import bech32_payload
from shared.network import Network

CERTIFICATES = frozenset(
    (
        "stakeCredentialRegistration",
        "stakeCredentialDeregistration",
        "stakeDelegation",
        "stakePoolRegistration",
        "stakePoolRetirement",
        "genesisDelegation",
        "constitutionalCommitteeDelegation",
        "constitutionalCommitteeRetirement",
        "delegateRepresentativeRegistration",
        "delegateRepresentativeUpdate",
        "delegateRepresentativeRetirement",
    )
)
"""Every type that Ogmios 6 and 7 know; the last six move no stake. Of others a delegation that they carry counts."""

_HASH_BYTES = 28


class StakeChange(msgspec.Struct, frozen=True, gc=False):
    """A stake credential, as its reward account, comes, goes (both leave it without a pool) or delegates to `pool`."""

    kind: str
    account: bytes
    pool: bytes | None = None


class PoolUpdate(msgspec.Struct, frozen=True, gc=False):
    """A pool is registered, or its parameters change; either takes a retirement back."""

    pool: bytes
    parameters: packed.PoolParameters


class PoolRetirement(msgspec.Struct, frozen=True, gc=False):
    """A pool is to end where an epoch begins."""

    pool: bytes
    epoch_no: int


Change = StakeChange | PoolUpdate | PoolRetirement


def named_by(block: BlockEffects, network: Network) -> tuple[set[bytes], set[bytes]]:
    """The reward accounts and the pools that certificates, withdrawals, credits and the issuer of a block name.

    Raises frames.Unreadable.
    """
    accounts: set[bytes] = set()
    pools = set[bytes]() if block.pool is None else {block.pool}
    for tx in (tx for group in block.transactions for tx in group):
        if tx.extra.withdrawals or tx.extra.credits:
            accounts.update(tx.extra.withdrawals, tx.extra.credits)
        for change in changes_of(tx.certificates, tx.tx_hash, network) if tx.certificates else ():
            if isinstance(change, StakeChange):
                accounts.add(change.account)
            if change.pool is not None:
                pools.add(change.pool)
    return accounts, pools


def changes_of(certificates: list[frames.Certificate], tx_hash: bytes, network: Network) -> list[Change]:
    """What a transaction's certificates change, in their order. Raises frames.Unreadable."""
    try:
        return [change for certificate in certificates for change in _changes_of(certificate, network)]
    except ValueError as error:
        raise frames.Unreadable(f"certificates of transaction {tx_hash.hex()}: {error}") from error


def _changes_of(certificate: frames.Certificate, network: Network) -> Iterator[Change]:
    """One certificate's changes. Those of Conway may register and delegate in one, whatever their type is called."""
    pool, credential = certificate.stake_pool, certificate.credential
    if credential is not None and certificate.origin is not None:
        account = reward_account(bytes.fromhex(credential), certificate.origin, network)
        match certificate.type:
            case "stakeCredentialRegistration":
                yield StakeChange("registration", account)
            case "stakeCredentialDeregistration":
                yield StakeChange("deregistration", account)
        if pool is not None:
            yield StakeChange("delegation", account, hash_of(pool.id))
    elif pool is not None:
        match certificate.type:
            case "stakePoolRegistration":
                yield PoolUpdate(hash_of(pool.id), parameters_of(pool, network))
            case "stakePoolRetirement" if pool.retirement_epoch is not None:
                yield PoolRetirement(hash_of(pool.id), pool.retirement_epoch)


def hash_of(pool_id: str) -> bytes:
    """The hash that a pool's id, as the node writes it, stands for. Raises ValueError."""
    pool_hash = bech32_payload(pool_id)
    if len(pool_hash) != _HASH_BYTES:
        raise ValueError(f"{pool_id} is no pool")
    return pool_hash


def parameters_of(pool: frames.StakePool, network: Network) -> packed.PoolParameters:
    """A pool's parameters in our words. Raises frames.Unreadable and ValueError."""
    if pool.pledge is None or pool.cost is None or pool.margin is None or pool.vrf_verification_key_hash is None:
        raise frames.Unreadable(f"a registration of {pool.id} without all parameters")
    return packed.PoolParameters(
        vrf_key_hash=bytes.fromhex(pool.vrf_verification_key_hash),
        pledge=frames.lovelace(pool.pledge),
        fixed_cost=frames.lovelace(pool.cost),
        margin=pool.margin,
        reward_account=None if pool.reward_account is None else bech32_payload(pool.reward_account),
        owners=[reward_account(bytes.fromhex(owner), "verificationKey", network) for owner in pool.owners],
        relays=[packed.Relay(relay.port, relay.ipv4, relay.ipv6, relay.hostname) for relay in pool.relays],
        metadata_url=None if pool.metadata is None else pool.metadata.url,
        metadata_hash=None if pool.metadata is None else bytes.fromhex(pool.metadata.hash),
    )
