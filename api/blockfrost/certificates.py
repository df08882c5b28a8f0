"""The certificates of a transaction by kind.

`cert_index` is the position of each among all of them in the transaction's CBOR, as in Blockfrost; null if unknown
(docs/decisions/0058).
"""

from collections.abc import Iterator
from fractions import Fraction

import msgspec
from msgspec import UNSET

from api.ask import ChainAsk
from api.blockfrost import transactions
from api.blockfrost.pools import PoolMetadataReference, Relay, shown_relay
from api.blockfrost.transactions import TransactionQuestion
from api.chain.certificates import Certificate
from api.chain.pools import show_ratio
from shared import packed, sql
from shared.ledger import ACTIVE_AFTER_EPOCHS


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
    """A registration of a pool, or new parameters. The epoch in which they take effect is null: it is not kept."""

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
    active_epoch: None


class PoolRetirement(msgspec.Struct, frozen=True):
    """The end of a pool, at the start of an epoch."""

    cert_index: int | None
    pool_id: str
    retiring_epoch: int


async def stakes(ask: ChainAsk[TransactionQuestion]) -> list[StakeCertificate]:
    """List the registrations and deregistrations of accounts in a transaction."""
    kinds = ("stakeCredentialRegistration", "stakeCredentialDeregistration")
    _, found = await _of(ask, *kinds)
    return [
        StakeCertificate(at, each.stake_address, each.type == kinds[0])
        for at, each in found
        if each.stake_address is not UNSET
    ]


async def delegations(ask: ChainAsk[TransactionQuestion]) -> list[Delegation]:
    """List the delegations to pools in a transaction."""
    slot_no, found = await _of(ask, "stakeDelegation")
    active_epoch = ask.network.epoch_of(slot_no) + ACTIVE_AFTER_EPOCHS
    return [
        Delegation(at, at, each.stake_address, each.pool_id, active_epoch)
        for at, each in found
        if each.stake_address is not UNSET and each.pool_id is not UNSET
    ]


async def pool_updates(ask: ChainAsk[TransactionQuestion]) -> list[PoolUpdate]:
    """List the registrations of pools in a transaction."""
    _, found = await _of(ask, "stakePoolRegistration")
    return list(_pool_updates(found))


async def pool_retirements(ask: ChainAsk[TransactionQuestion]) -> list[PoolRetirement]:
    """List the retirements of pools in a transaction."""
    _, found = await _of(ask, "stakePoolRetirement")
    return [
        PoolRetirement(at, each.pool_id, each.retirement_epoch)
        for at, each in found
        if each.pool_id is not UNSET and each.retirement_epoch is not UNSET
    ]


class _Extra(msgspec.Struct, frozen=True):
    extra: bytes | None


_extra = sql.beside(__file__).query("extra", _Extra)
_Placed = tuple[int | None, Certificate]


async def _of(ask: ChainAsk[TransactionQuestion], *kinds: str) -> tuple[int, list[_Placed]]:
    """The slot of a transaction, and its certificates of some kinds with their places."""
    async with ask.snapshot() as db:
        found = await transactions.one(db, ask)
        row = await _extra.one(db, ask.question.hash)
    places = None if row is None else packed.unpack_extra(row.extra).certificate_places
    placed = zip(places or range(len(found.certificates)), found.certificates, strict=True)
    return found.slot_no, [(at, each) for at, each in placed if each.type in kinds]


def _pool_updates(found: list[_Placed]) -> Iterator[PoolUpdate]:
    for at, each in found:
        if each.pool is UNSET or each.pool_id is UNSET:
            continue
        pool = each.pool
        yield PoolUpdate(
            cert_index=at,
            pool_id=each.pool_id,
            vrf_key=pool.vrf_key_hash,
            pledge=str(pool.pledge),
            margin_cost=show_ratio(Fraction(pool.margin)),
            fixed_cost=str(pool.fixed_cost),
            reward_account=pool.reward_account,
            owners=pool.owners,
            metadata=None
            if pool.metadata_url is None
            else PoolMetadataReference(pool.metadata_url, pool.metadata_hash),
            relays=[shown_relay(relay) for relay in pool.relays],
            active_epoch=None,
        )
