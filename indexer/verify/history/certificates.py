"""Compare the certificates in packed transactions with the tables of their changes: a part of verify."""

from collections.abc import Iterator, Sequence

import asyncpg
import msgspec

from indexer.verify.history.flows import Flows
from indexer.verify.history.rows import Row
from indexer.verify.results import Difference
from shared import address, packed, sql
from shared.network import Network


class StakeEvent(msgspec.Struct, frozen=True):
    """A change of a stake credential."""

    tx_id: int
    place: int
    kind: str
    account: bytes
    pool_id: bytes | None


class VoteDelegation(msgspec.Struct, frozen=True):
    """A stake credential delegates its vote, or is deregistered, which ends that. votes.py checks what others end."""

    tx_id: int
    place: int
    account: bytes
    kind: str
    representative: bytes | None


class RepresentativeEvent(msgspec.Struct, frozen=True):
    """A registration, update or retirement of a representative."""

    tx_id: int
    place: int
    kind: str
    lovelace: int | None
    representative: bytes
    anchor_url: bytes | None
    anchor_hash: bytes | None


class PoolUpdate(msgspec.Struct, frozen=True):
    """A registration of a pool, with its packed parameters."""

    tx_id: int
    place: int
    pool_id: bytes
    parameters: bytes


class PoolRewardAccount(msgspec.Struct, frozen=True):
    """The reward account in a registration of a pool."""

    tx_id: int
    place: int
    pool_id: bytes
    account: bytes


class PoolRetirement(msgspec.Struct, frozen=True):
    """The announcement that a pool retires."""

    tx_id: int
    place: int
    pool_id: bytes
    epoch_no: int


class InstantaneousReward(msgspec.Struct, frozen=True):
    """Lovelace that moves from a pot to an account."""

    tx_id: int
    place: int
    account: bytes
    pot: str
    lovelace: int


Change = (
    StakeEvent
    | VoteDelegation
    | RepresentativeEvent
    | PoolUpdate
    | PoolRewardAccount
    | PoolRetirement
    | InstantaneousReward
)


async def wrong(
    db: asyncpg.Connection, rows: Sequence[Row], flows: Flows, first_tx_id: int, next_tx_id: int, network: Network
) -> list[Difference]:
    """The differences of a range: changes without a certificate, and certificates without their change."""
    made: set[Change] = {
        change
        for place, certificates in flows.certificates.items()
        for change in _changes(rows[place].tx_id, certificates, network)
    }
    made.update(
        InstantaneousReward(
            rows[place].tx_id, each.place, _account(credential, network), packed.POTS[each.pot_no], lovelace
        )
        for place, moved in flows.rewards.items()
        for each in moved
        for credential, lovelace in each.amounts.items()
    )
    stored: set[Change] = set()
    for query in _STORED:
        stored.update(await query.all(db, first_tx_id, next_tx_id))
    return [
        Difference(_what(change), None, *(("a row", "none") if change in stored else ("none", "a row")))
        for change in sorted(made ^ stored, key=lambda change: (change.tx_id, change.place))
    ]


def _what(change: Change) -> str:
    kinds = {
        StakeEvent: "stake_event",
        VoteDelegation: "vote_delegation",
        RepresentativeEvent: "representative_event",
        PoolUpdate: "pool_update",
        PoolRewardAccount: "pool_reward_account",
        PoolRetirement: "pool_retirement",
        InstantaneousReward: "instantaneous_reward",
    }
    return f"certificate of {kinds[type(change)]} at place {change.place} of tx_id {change.tx_id}"


def _changes(tx_id: int, certificates: list[packed.Certificate], network: Network) -> Iterator[Change]:
    place = 0
    for each in certificates:
        for change in _changes_of(each, tx_id, place, network):
            yield change
            place = (
                change.place + 1
            )  # the two changes of a deregistration have the same, and those of a pool's registration


def _changes_of(each: packed.Certificate, tx_id: int, place: int, network: Network) -> Iterator[Change]:
    """The changes of a certificate: up to three for a credential that is registered and delegates stake and vote."""
    if each.stake is not None:
        account = _account(each.stake, network)
        kind = _KINDS.get(each.type)
        if kind is not None:
            yield StakeEvent(tx_id, place, kind, account, None)
        if kind == "deregistration":
            yield VoteDelegation(tx_id, place, account, kind, None)
        if each.pool_id is not None:
            yield StakeEvent(tx_id, place + (kind is not None), "delegation", account, each.pool_id)
        if each.representative is not None:
            before = (kind is not None) + (each.pool_id is not None)
            yield VoteDelegation(tx_id, place + before, account, "delegation", each.representative)
    elif each.representative is not None and each.type in _REPRESENTATIVE_KINDS:
        url, anchor_hash = (None, None) if each.anchor is None else (each.anchor[0].encode(), each.anchor[1])
        kind = _REPRESENTATIVE_KINDS[each.type]
        yield RepresentativeEvent(tx_id, place, kind, each.deposit, each.representative, url, anchor_hash)
    elif each.pool_id is not None and each.pool is not None and each.type == "stakePoolRegistration":
        yield PoolUpdate(tx_id, place, each.pool_id, packed.pack_pool_parameters(each.pool))
        if each.pool.reward_account is not None:
            yield PoolRewardAccount(tx_id, place, each.pool_id, each.pool.reward_account)
    elif each.pool_id is not None and each.retirement_epoch is not None and each.type == "stakePoolRetirement":
        yield PoolRetirement(tx_id, place, each.pool_id, each.retirement_epoch)


def _account(credential: bytes, network: Network) -> bytes:
    return address.reward_account(credential[1:], packed.CREDENTIAL_ORIGINS[credential[0]], network)


_KINDS = {"stakeCredentialRegistration": "registration", "stakeCredentialDeregistration": "deregistration"}
_REPRESENTATIVE_KINDS = {
    f"delegateRepresentative{kind.title()}": kind for kind in ("registration", "update", "retirement")
}
_sql = sql.beside(__file__)
_STORED: tuple[
    sql.Query[StakeEvent]
    | sql.Query[VoteDelegation]
    | sql.Query[RepresentativeEvent]
    | sql.Query[PoolUpdate]
    | sql.Query[PoolRewardAccount]
    | sql.Query[PoolRetirement]
    | sql.Query[InstantaneousReward],
    ...,
] = (
    _sql.query("stake_events", StakeEvent),
    _sql.query("vote_delegations", VoteDelegation),
    _sql.query("representative_events", RepresentativeEvent),
    _sql.query("pool_updates", PoolUpdate),
    _sql.query("pool_reward_accounts", PoolRewardAccount),
    _sql.query("pool_retirements", PoolRetirement),
    _sql.query("instantaneous_rewards", InstantaneousReward),
)
