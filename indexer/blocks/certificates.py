"""Convert certificates to the form that rows contain, and to the changes of stake and pools that they make."""

from collections.abc import Iterator

import msgspec

from indexer.blocks.effects import BlockEffects
from indexer.ogmios import frames
from shared import packed
from shared.address import reward_account
from shared.encoding import bech32_payload
from shared.ledger import HASH28_BYTES
from shared.network import Network

_TYPE_NOS = {name: number for number, name in enumerate(packed.CERTIFICATES)}
_REPRESENTATIVE_CHANGES = {
    "delegateRepresentativeRegistration": "registration",
    "delegateRepresentativeUpdate": "update",
    "delegateRepresentativeRetirement": "retirement",
}


class StakeChange(msgspec.Struct, frozen=True, gc=False):
    """A stake credential (its reward account) is registered or deregistered, or delegates.

    Registration and deregistration both end its delegation.
    """

    kind: str
    account: bytes
    pool_id: bytes | None = None


class VoteDelegation(msgspec.Struct, frozen=True, gc=False):
    """A stake credential (its reward account) delegates its vote."""

    account: bytes
    representative: bytes


class RepresentativeChange(msgspec.Struct, frozen=True, gc=False):
    """A representative registers, updates its anchor, or retires.

    `lovelace` is the deposit that is taken or returned, None for an update.
    """

    kind: str
    representative: bytes
    lovelace: int | None
    anchor: packed.Anchor | None


class PoolUpdate(msgspec.Struct, frozen=True, gc=False):
    """A pool is registered, or its parameters change; either cancels a retirement."""

    pool_id: bytes
    parameters: packed.PoolParameters


class PoolRetirement(msgspec.Struct, frozen=True, gc=False):
    """A pool is to retire at the beginning of an epoch."""

    pool_id: bytes
    epoch_no: int


Change = StakeChange | VoteDelegation | RepresentativeChange | PoolUpdate | PoolRetirement


def named_by(block: BlockEffects, network: Network) -> tuple[set[bytes], set[bytes]]:
    """The reward accounts and pools in a block's certificates, withdrawals and credits, and its issuer.

    Raises frames.Unreadable.
    """
    accounts: set[bytes] = set()
    pools = set[bytes]() if block.issuer is None else {block.issuer}
    for tx in (tx for group in block.transactions for tx in group):
        if tx.extra.withdrawals or tx.extra.credits:
            accounts.update(tx.extra.withdrawals, tx.extra.credits)
        for moved in tx.extra.instantaneous_rewards or ():
            accounts.update(account_of(credential, network) for credential in moved.amounts)
        for change in changes_of(tx.certificates, tx.tx_hash, network) if tx.certificates else ():
            if isinstance(change, StakeChange | VoteDelegation):
                accounts.add(change.account)
            if isinstance(change, PoolUpdate) and change.parameters.reward_account is not None:
                accounts.add(change.parameters.reward_account)
            if isinstance(change, StakeChange | PoolUpdate | PoolRetirement) and change.pool_id is not None:
                pools.add(change.pool_id)
    return accounts, pools


def account_of(credential: bytes, network: Network) -> bytes:
    """The reward account of a credential as rows have it: a byte for its origin, and its hash."""
    return reward_account(credential[1:], packed.CREDENTIAL_ORIGINS[credential[0]], network)


def changes_of(certificates: list[frames.Certificate], tx_hash: bytes, network: Network) -> list[Change]:
    """The changes of a transaction's certificates, in order. Raises frames.Unreadable."""
    try:
        return [change for certificate in certificates for change in _changes_of(certificate, network)]
    except ValueError as error:
        raise frames.Unreadable(f"certificates of transaction {tx_hash.hex()}: {error}") from error


def packed_of(certificates: list[frames.Certificate], tx_hash: bytes, network: Network) -> list[packed.Certificate]:
    """A transaction's certificates as its row contains them. Raises frames.Unreadable."""
    try:
        return [_packed(certificate, network) for certificate in certificates]
    except ValueError as error:
        raise frames.Unreadable(f"certificates of transaction {tx_hash.hex()}: {error}") from error


def _packed(certificate: frames.Certificate, network: Network) -> packed.Certificate:
    pool = certificate.stake_pool
    issuer, delegate = certificate.issuer, certificate.delegate
    return packed.Certificate(
        type_no=_TYPE_NOS.get(certificate.type, certificate.type),
        stake=_credential(certificate.credential, certificate.origin),
        pool_id=None if pool is None else parse_pool_id(pool.id),
        pool=None if pool is None or pool.vrf_verification_key_hash is None else parameters_of(pool, network),
        retirement_epoch=None if pool is None else pool.retirement_epoch,
        deposit=None if certificate.deposit is None else frames.lovelace(certificate.deposit),
        representative=party_of(certificate.delegate_representative),
        cold=party_of(certificate.member),
        hot=party_of(delegate),
        genesis=None if issuer is None or delegate is None else _genesis(issuer, delegate),
        anchor=_anchor(certificate),
    )


def _anchor(certificate: frames.Certificate) -> packed.Anchor | None:
    anchor = certificate.metadata
    return None if anchor is None else packed.Anchor(anchor.url, bytes.fromhex(anchor.hash))


def party_of(party: frames.Party | None) -> bytes | None:
    """A representative, or a member or delegate of the committee."""
    if party is None:
        return None
    fixed = next((bytes((tag,)) for tag, name in packed.FIXED_REPRESENTATIVES.items() if name == party.type), None)
    return _credential(party.id, party.origin) if fixed is None else fixed


def _credential(key_hash: str | None, origin: str | None) -> bytes | None:
    if key_hash is None or origin is None:
        return None
    return bytes(((*packed.CREDENTIAL_ORIGINS,).index(origin),)) + bytes.fromhex(key_hash)


def _genesis(issuer: frames.Party, delegate: frames.Party) -> tuple[bytes, bytes, bytes] | None:
    if issuer.id is None or delegate.id is None or delegate.vrf_verification_key_hash is None:
        return None
    return bytes.fromhex(issuer.id), bytes.fromhex(delegate.id), bytes.fromhex(delegate.vrf_verification_key_hash)


def _changes_of(certificate: frames.Certificate, network: Network) -> Iterator[Change]:
    """One certificate's changes. NOTE: one Conway certificate may register and also delegate stake and vote."""
    pool, credential = certificate.stake_pool, certificate.credential
    representative = party_of(certificate.delegate_representative)
    if credential is not None and certificate.origin is not None:
        account = reward_account(bytes.fromhex(credential), certificate.origin, network)
        match certificate.type:
            case "stakeCredentialRegistration":
                yield StakeChange("registration", account)
            case "stakeCredentialDeregistration":
                yield StakeChange("deregistration", account)
        if pool is not None:
            yield StakeChange("delegation", account, parse_pool_id(pool.id))
        if representative is not None:
            yield VoteDelegation(account, representative)
    elif representative is not None and certificate.type in _REPRESENTATIVE_CHANGES:
        yield _representative_change(representative, certificate)
    elif pool is not None:
        match certificate.type:
            case "stakePoolRegistration":
                yield PoolUpdate(parse_pool_id(pool.id), parameters_of(pool, network))
            case "stakePoolRetirement" if pool.retirement_epoch is not None:
                yield PoolRetirement(parse_pool_id(pool.id), pool.retirement_epoch)


def _representative_change(representative: bytes, certificate: frames.Certificate) -> RepresentativeChange:
    kind, deposit = _REPRESENTATIVE_CHANGES[certificate.type], certificate.deposit
    if (deposit is None) != (kind == "update"):
        raise frames.Unreadable(f"a {certificate.type} {'without' if deposit is None else 'with'} a deposit")
    lovelace = None if deposit is None else frames.lovelace(deposit)
    return RepresentativeChange(kind, representative, lovelace, _anchor(certificate))


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
