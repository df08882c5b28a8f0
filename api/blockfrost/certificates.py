"""The certificates of a transaction by kind.

`cert_index` is the position of each among all of them in the transaction's CBOR, as in Blockfrost; null if unknown
(docs/decisions/0058).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal

import msgspec
from msgspec import UNSET

from api import errors
from api.ask import ChainAsk
from api.blockfrost import refusals, transactions
from api.blockfrost.pools import PoolMetadataReference, Relay, described, shown_relay
from api.blockfrost.transactions import TransactionQuestion
from api.chain import pool_metadata
from api.chain import transactions as chain_transactions
from api.chain.certificates import Certificate
from api.chain.pool_metadata import Location, Published
from api.chain.pools import PoolIdKind, show_ratio
from shared import address, packed, sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, slot_of
from shared.network import Network
from shared.sql import Connection


class StakeCertificate(msgspec.Struct, frozen=True):
    """A registration or deregistration of an account."""

    cert_index: int | None
    address: str
    registration: bool


class Delegation(msgspec.Struct, frozen=True):
    """A delegation to a pool, and the first epoch in which it is active. `index` repeats `cert_index`."""

    index: int | None
    cert_index: int | None
    address: str
    pool_id: str
    active_epoch: int


class PoolUpdate(msgspec.Struct, frozen=True):
    """A registration of a pool, or new parameters, and the first epoch in which they count.

    The epoch is null if it depends on blocks before the first indexed one.
    """

    cert_index: int | None
    pool_id: str
    vrf_key: str
    pledge: str
    margin_cost: msgspec.Raw
    fixed_cost: str
    reward_account: str | None
    owners: list[str]
    metadata: PoolMetadataReference | None
    relays: list[Relay]
    active_epoch: int | None


class PoolRetirement(msgspec.Struct, frozen=True):
    """The end of a pool, at the start of an epoch."""

    cert_index: int | None
    pool_id: str
    retiring_epoch: int


class InstantaneousReward(msgspec.Struct, frozen=True):
    """Lovelace that a certificate moves from a pot to an account; it may be negative in Alonzo and Babbage."""

    pot: Literal["reserve", "treasury"]
    cert_index: int
    address: str
    amount: str


async def stakes(ask: ChainAsk[TransactionQuestion]) -> list[StakeCertificate]:
    """List the registrations and deregistrations of accounts in a transaction."""
    registration = "stakeCredentialRegistration"
    _, placed = await _placed_certificates(ask, registration, "stakeCredentialDeregistration")
    return [
        StakeCertificate(at, certificate.stake_address, certificate.type == registration)
        for at, certificate in placed
        if certificate.stake_address is not UNSET
    ]


async def delegations(ask: ChainAsk[TransactionQuestion]) -> list[Delegation]:
    """List the delegations to pools in a transaction."""
    slot_no, placed = await _placed_certificates(ask, "stakeDelegation")
    active_epoch = ask.network.epoch_of(slot_no) + ACTIVE_AFTER_EPOCHS
    return [
        Delegation(at, at, certificate.stake_address, certificate.pool_id, active_epoch)
        for at, certificate in placed
        if certificate.stake_address is not UNSET and certificate.pool_id is not UNSET
    ]


async def pool_updates(ask: ChainAsk[TransactionQuestion]) -> list[PoolUpdate]:
    """List the registrations of pools in a transaction."""
    ask.notes.may_change = True  # what pools publish is fetched apart
    async with ask.snapshot() as db:
        tx, placed = await _certificates(db, ask, "stakePoolRegistration")
        active_from = await _active_from(db, tx, placed, ask.network)
        locations = [_location(certificate) for _, certificate in placed]
        published = await pool_metadata.published(db, ask.network, locations)
    return list(_pool_updates(placed, active_from, published))


async def pool_retirements(ask: ChainAsk[TransactionQuestion]) -> list[PoolRetirement]:
    """List the retirements of pools in a transaction."""
    _, placed = await _placed_certificates(ask, "stakePoolRetirement")
    return [
        PoolRetirement(at, certificate.pool_id, certificate.retirement_epoch)
        for at, certificate in placed
        if certificate.pool_id is not UNSET and certificate.retirement_epoch is not UNSET
    ]


async def instantaneous_rewards(ask: ChainAsk[TransactionQuestion]) -> list[InstantaneousReward]:
    """List the instantaneous rewards that a transaction moves to accounts."""
    async with ask.snapshot() as db:
        found = await chain_transactions.find(db, ask.question.hash)
    if found is None:
        raise errors.transaction_not_found()
    moved = packed.unpack_extra(found.extra).instantaneous_rewards
    if moved is None:
        raise refusals.instantaneous_rewards_not_known()
    return [
        InstantaneousReward(_POTS[each.pot_no], each.place, _show_account(credential, ask.network), str(lovelace))
        for each in moved
        for credential, lovelace in each.amounts.items()
    ]


def _show_account(credential: bytes, network: Network) -> str:
    origin = packed.CREDENTIAL_ORIGINS[credential[0]]
    return address.show_stake(address.reward_account(credential[1:], origin, network))


class _RegisteredRow(msgspec.Struct, frozen=True):
    pool_id: bytes
    tx_id: int | None
    retired_epoch_no: int | None
    partial: bool


_sql = sql.beside(__file__)
_registered_before = _sql.query("registered_before", _RegisteredRow)
_POTS: tuple[Literal["reserve"], Literal["treasury"]] = ("reserve", "treasury")  # in the order of packed.POTS
_NEW_AFTER_EPOCHS, _CHANGED_AFTER_EPOCHS = 2, 3  # `insertPoolRegister` of cardano-db-sync
_parse_pool_id = PoolIdKind().of_text
_Placed = tuple[int | None, Certificate]


async def _placed_certificates(ask: ChainAsk[TransactionQuestion], *kinds: str) -> tuple[int, list[_Placed]]:
    """The slot of a transaction, and its certificates of some kinds with their places."""
    async with ask.snapshot() as db:
        tx_id, placed = await _certificates(db, ask, *kinds)
    return slot_of(tx_id), placed


async def _certificates(db: Connection, ask: ChainAsk[TransactionQuestion], *kinds: str) -> tuple[int, list[_Placed]]:
    """The number of a transaction, and its certificates of some kinds with their places, in a snapshot."""
    row = await transactions.find(db, ask)
    transaction = await transactions.without_assets_of_inputs(db, row, ask.network)
    places = packed.unpack_extra(row.extra).certificate_places
    placed = zip(places or range(len(transaction.certificates)), transaction.certificates, strict=True)
    return row.tx_id, [(at, certificate) for at, certificate in placed if certificate.type in kinds]


async def _active_from(db: Connection, tx_id: int, placed: Sequence[_Placed], network: Network) -> list[int | None]:
    """For each registration, the first epoch in which its parameters count."""
    epoch_no = network.epoch_of(slot_of(tx_id))
    pools = [_parse_pool_id(certificate.pool_id) for _, certificate in placed if certificate.pool_id is not UNSET]
    rows = {row.pool_id: row for row in await _registered_before.all(db, pools, tx_id, epoch_no)}
    return [
        epoch_no + _CHANGED_AFTER_EPOCHS if pool in pools[:nth] else _new_from(rows[pool], epoch_no, network)
        for nth, pool in enumerate(pools)
    ]


def _new_from(row: _RegisteredRow, epoch_no: int, network: Network) -> int | None:
    """The first epoch in which the parameters of a pool count, which is not registered by an earlier certificate of the
    same transaction.
    """
    if row.tx_id is None:
        return None if row.partial else epoch_no + _NEW_AFTER_EPOCHS
    began = network.epoch_of(slot_of(row.tx_id)) if row.tx_id >= 0 else -1
    is_registered = row.retired_epoch_no is None or began >= row.retired_epoch_no
    return epoch_no + (_CHANGED_AFTER_EPOCHS if is_registered else _NEW_AFTER_EPOCHS)


def _location(certificate: Certificate) -> Location:
    """Where the pool that a certificate registers publishes."""
    pool = certificate.pool
    assert pool is not UNSET, "a registration has the pool's parameters"
    assert certificate.pool_id is not UNSET, "and its id"
    return Location(certificate.pool_id, pool.metadata_url, pool.metadata_hash)


def _pool_updates(
    placed: list[_Placed], active_from: list[int | None], published: list[Published]
) -> Iterator[PoolUpdate]:
    for (at, certificate), active_epoch, found in zip(placed, active_from, published, strict=True):
        if certificate.pool is UNSET or certificate.pool_id is UNSET:
            continue
        pool = certificate.pool
        yield PoolUpdate(
            cert_index=at,
            pool_id=certificate.pool_id,
            vrf_key=pool.vrf_key_hash,
            pledge=str(pool.pledge),
            margin_cost=show_ratio(Fraction(pool.margin)),
            fixed_cost=str(pool.fixed_cost),
            reward_account=pool.reward_account,
            owners=pool.owners,
            metadata=None if pool.metadata_url is None else described(pool.metadata_url, pool.metadata_hash, found),
            relays=[shown_relay(relay) for relay in pool.relays],
            active_epoch=active_epoch,
        )
