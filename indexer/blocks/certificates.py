"""Certificates of stake credentials and pools as changes of stake and pools. Pure."""

from collections.abc import Iterator

import msgspec

from indexer.blocks.effects import BlockEffects
from indexer.ogmios import frames
from shared import packed
from shared.address import reward_account
from shared.encoding import bech32_payload
from shared.ledger import HASH28_BYTES
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
"""All types of Ogmios 6 and 7; the last six move no stake. In a certificate of another type, a delegation counts."""


class StakeChange(msgspec.Struct, frozen=True, gc=False):
    """A stake credential (its reward account) is registered, deregistered (both end its delegation), or delegates."""

    kind: str
    account: bytes
    pool_id: bytes | None = None


class PoolUpdate(msgspec.Struct, frozen=True, gc=False):
    """A pool is registered, or its parameters change; either cancels a retirement."""

    pool_id: bytes
    parameters: packed.PoolParameters


class PoolRetirement(msgspec.Struct, frozen=True, gc=False):
    """A pool is to retire at the beginning of an epoch."""

    pool_id: bytes
    epoch_no: int


Change = StakeChange | PoolUpdate | PoolRetirement


def named_by(block: BlockEffects, network: Network) -> tuple[set[bytes], set[bytes]]:
    """The reward accounts and pools in a block's certificates, withdrawals, credits and issuer.

    Raises frames.Unreadable.
    """
    accounts: set[bytes] = set()
    pools = set[bytes]() if block.pool_id is None else {block.pool_id}
    for tx in (tx for group in block.transactions for tx in group):
        if tx.extra.withdrawals or tx.extra.credits:
            accounts.update(tx.extra.withdrawals, tx.extra.credits)
        for change in changes_of(tx.certificates, tx.tx_hash, network) if tx.certificates else ():
            if isinstance(change, StakeChange):
                accounts.add(change.account)
            if change.pool_id is not None:
                pools.add(change.pool_id)
    return accounts, pools


def changes_of(certificates: list[frames.Certificate], tx_hash: bytes, network: Network) -> list[Change]:
    """The changes of a transaction's certificates, in order. Raises frames.Unreadable."""
    try:
        return [change for certificate in certificates for change in _changes_of(certificate, network)]
    except ValueError as error:
        raise frames.Unreadable(f"certificates of transaction {tx_hash.hex()}: {error}") from error


def _changes_of(certificate: frames.Certificate, network: Network) -> Iterator[Change]:
    """One certificate's changes. NOTE: certificates of Conway may register and delegate at once, under many types."""
    pool, credential = certificate.stake_pool, certificate.credential
    if credential is not None and certificate.origin is not None:
        account = reward_account(bytes.fromhex(credential), certificate.origin, network)
        match certificate.type:
            case "stakeCredentialRegistration":
                yield StakeChange("registration", account)
            case "stakeCredentialDeregistration":
                yield StakeChange("deregistration", account)
        if pool is not None:
            yield StakeChange("delegation", account, parse_pool_id(pool.id))
    elif pool is not None:
        match certificate.type:
            case "stakePoolRegistration":
                yield PoolUpdate(parse_pool_id(pool.id), parameters_of(pool, network))
            case "stakePoolRetirement" if pool.retirement_epoch is not None:
                yield PoolRetirement(parse_pool_id(pool.id), pool.retirement_epoch)


def parse_pool_id(text: str) -> bytes:
    """The 28 bytes of a pool id that the node writes in bech32. Raises ValueError."""
    pool_id = bech32_payload(text)
    if len(pool_id) != HASH28_BYTES:
        raise ValueError(f"{text} is not a pool id")
    return pool_id


def parameters_of(pool: frames.StakePool, network: Network) -> packed.PoolParameters:
    """A pool's parameters. Raises frames.Unreadable and ValueError."""
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
