"""The node's answers to ledger state queries: rewards, pools' stakes, reserves. Pure."""

from collections import Counter
from fractions import Fraction
from typing import Any

import msgspec

from indexer.ogmios import frames
from shared.encoding import bech32_payload
from shared.network import MAX_SUPPLY


class RewardAccountSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A registered reward account. Ogmios 6.13 and later include its credential; before, it is a key of the answer.

    The pool is called `delegate` before 6.12.
    """

    rewards: frames.Lovelace
    credential: str | None = None
    deposit: frames.Lovelace | None = None
    stake_pool: frames.StakePool | None = None
    delegate: frames.StakePool | None = None
    delegate_representative: frames.Party | None = None

    @property
    def pool(self) -> frames.StakePool | None:
        """The pool to which it delegates."""
        return self.delegate if self.stake_pool is None else self.stake_pool


class PoolView(msgspec.Struct, frozen=True):
    """The part of a voting pool that we use; `stake` is absent from nodes that do not support `includeStake`."""

    stake: frames.Lovelace | None = None


class Proposal(msgspec.Struct, frozen=True, rename="camel"):
    """An open proposal. Its deposit votes with the pool to which the return account delegates."""

    deposit: frames.Lovelace
    return_account: str


class Representative(msgspec.Struct, frozen=True, rename="camel"):
    """A representative, without its delegators; those that always vote the same have neither id nor deposit."""

    type: str
    id: str | None = None
    origin: str | None = msgspec.field(name="from", default=None)
    deposit: frames.Lovelace | None = None
    metadata: frames.Anchor | None = None


class OfTransaction(msgspec.Struct, frozen=True):
    id: str


class UnspentOutput(msgspec.Struct, frozen=True):
    """An unspent output, of which we use the transaction and the lovelace."""

    transaction: OfTransaction
    value: frames.Lovelace


class Share(msgspec.Struct, frozen=True):
    """A pool's live stake as a share of the circulating supply, like `3/1000`."""

    stake: str


class TreasuryAndReserves(msgspec.Struct, frozen=True):
    """The two pots of ada that belong to nobody."""

    treasury: frames.Lovelace
    reserves: frames.Lovelace


class Nonces(msgspec.Struct, frozen=True, rename="camel"):
    """The nonces of consensus, of which we use that of the epoch: 32 bytes in hex, or `neutral`."""

    epoch_nonce: str


class ProtocolVersion(msgspec.Struct, frozen=True):
    major: int


class Parameters(msgspec.Struct, frozen=True, rename="camel"):
    version: ProtocolVersion
    desired_number_of_stake_pools: int
    stake_pool_deposit: frames.Lovelace
    stake_credential_deposit: frames.Lovelace | None = None


_RENAMED = {"maxReferenceScriptsSize": "maxReferenceScriptsSizePerTransaction"}
_FUNDS = ("initialFunds", "initialVouchers")
_parts_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_parameters = msgspec.json.Decoder(Parameters).decode

Summaries: Any = list[RewardAccountSummary] | dict[str, RewardAccountSummary]


def parameters_of(answer: msgspec.Raw) -> Parameters:
    """The protocol parameters that we use. Raises frames.Unreadable."""
    try:
        return _parameters(answer)
    except msgspec.MsgspecError as error:
        raise frames.Unreadable(f"protocol parameters: {error}") from error


def nonce_of(nonces: Nonces) -> bytes | None:
    """The nonce of the epoch, None if it is neutral. Raises frames.Unreadable."""
    try:
        return None if nonces.epoch_nonce == "neutral" else frames.hash_bytes(nonces.epoch_nonce)
    except ValueError as error:
        raise frames.Unreadable(f"nonce: {error}") from error


def in_names_of_7(answer: msgspec.Raw) -> bytes:
    """Protocol parameters of Ogmios 6 or 7 in the names of Ogmios 7. Every value stays as the node wrote it."""
    return msgspec.json.encode({_RENAMED.get(name, name): value for name, value in _parts_of(answer).items()})


def without_funds(answer: msgspec.Raw) -> bytes:
    """A genesis configuration without its outputs, of which mainnet has 14,000."""
    return msgspec.json.encode({name: value for name, value in _parts_of(answer).items() if name not in _FUNDS})


def summaries_by_hash(
    summaries: list[RewardAccountSummary] | dict[str, RewardAccountSummary],
) -> dict[bytes, RewardAccountSummary]:
    """Reward accounts, all of keys or all of scripts, by hash (28 bytes), in the forms of Ogmios 6.11 to 7.

    Raises frames.Unreadable.
    """
    if isinstance(summaries, list):
        summaries = {summary.credential: summary for summary in summaries if summary.credential is not None}
    try:
        return {bytes.fromhex(credential): summary for credential, summary in summaries.items()}
    except ValueError as error:
        raise frames.Unreadable(f"reward account summaries: {error}") from error


def deposits_of(proposals: list[Proposal]) -> Counter[bytes]:
    """Deposits of proposals in lovelace, by their return account. Raises frames.Unreadable."""
    deposits: Counter[bytes] = Counter()
    try:
        for proposal in proposals:
            deposits[bech32_payload(proposal.return_account)] += frames.lovelace(proposal.deposit)
    except ValueError as error:
        raise frames.Unreadable(f"proposals: {error}") from error
    return deposits


def stake_snapshot_of(
    pools: dict[str, PoolView], deposits: dict[bytes, int], delegations: dict[bytes, bytes]
) -> dict[bytes, int]:
    """The stakes in the last stake snapshot by pool_id, from voting stakes; empty if the node reports none.

    `delegations` has, by account, the pool_id to which each account with a deposit delegated when the epoch began. A
    deposit votes only if the pool itself has stake (Conway: DRepPulser). Raises frames.Unreadable.

    NOTE: in the first epoch of Conway no vote is open yet, and the node reports a voting stake of 0 for every pool.
    """
    try:
        stakes = {bech32_payload(pool): frames.lovelace(view.stake) for pool, view in pools.items() if view.stake}
    except ValueError as error:
        raise frames.Unreadable(f"stake pools: {error}") from error
    if not any(stakes.values()):
        return {}
    for account, pool in delegations.items():
        if stakes.get(pool):
            stakes[pool] -= deposits[account]
    return stakes


def live_stakes_of(shares: dict[str, Share], reserves: int) -> dict[bytes, int]:
    """Live stakes in lovelace, by pool_id. Raises frames.Unreadable."""
    circulating = MAX_SUPPLY - reserves
    try:
        return {bech32_payload(pool): round(Fraction(share.stake) * circulating) for pool, share in shares.items()}
    except (ValueError, ZeroDivisionError) as error:
        raise frames.Unreadable(f"live stake distribution: {error}") from error
