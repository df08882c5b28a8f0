"""Chains written by hand: blocks at chosen slots with chosen certificates, and their ledger."""

from random import Random
from typing import Self

import msgspec

from devnet import parameters
from devnet.addresses import LedgerCredential, stake_part
from devnet.blocks import Block
from devnet.cast import Cast, PoolKeys
from devnet.draft import Draft
from devnet.headers import Headers
from devnet.ledger import Ledger
from devnet.networks import PREVIEW
from tests.chain.harness import Json

ADA = 1_000_000
ERA = "conway"


class Scripted:
    """A chain of preview. The faucet pays for its transactions; by default each certificate has a separate one."""

    network = PREVIEW
    eras = ((ERA, 0),)
    forks: tuple[tuple[int, int], ...] = ((10, 0),)  # (major protocol version, first epoch)

    def __init__(self, seed: int = 1, funds: dict[str, int] | None = None) -> None:
        """`funds` exist before the first block, besides the faucet's."""
        self.cast = Cast(seed, PREVIEW)
        known = self.cast.genesis
        self.genesis = msgspec.structs.replace(known, shelley_funds=known.shelley_funds | (funds or {}))
        self.blocks: list[Block] = []
        self.ledger = Ledger.at_genesis(self)
        self._headers = Headers(self.cast)
        self._random = Random(seed)

    def grow(self, _: int) -> list[Block]:
        """Fail: the chain grows only by `block`."""
        return []

    def fork(self, after: int) -> Self:
        """Another chain that shares the first blocks, up to index `after`."""
        twin = type(self)(self.cast.seed)
        twin._random = Random(f"{self.cast.seed} {after} {len(self.blocks)}")
        for block in self.blocks[: after + 1]:
            twin.ledger.apply(block.decoded())
            twin.blocks.append(block)
        return twin

    def block(self, slot: int, *transactions: list[Json], by: PoolKeys | None = None) -> Block:
        """Append a block by a pool, or by a genesis delegate; each list of certificates is one transaction."""
        self.ledger.enter(slot)
        written = []
        for certificates in transactions:
            draft = Draft(self.ledger, self.cast, self._random, ERA, slot)
            for certificate in certificates:
                draft.certify(certificate, deposit=self._deposit(certificate))
            written.append(self._include(draft))
        return self._append(slot, written, by)

    def pay(self, slot: int, address: str, lovelace: int) -> Block:
        """Append a block with one payment."""
        self.ledger.enter(slot)
        draft = Draft(self.ledger, self.cast, self._random, ERA, slot)
        draft.pay(address, lovelace)
        return self._append(slot, [self._include(draft)], None)

    def withdraw(self, slot: int, credential: LedgerCredential) -> Block:
        """Append a block that withdraws an account's rewards."""
        self.ledger.enter(slot)
        draft = Draft(self.ledger, self.cast, self._random, ERA, slot)
        draft.withdraw(credential)
        return self._append(slot, [self._include(draft)], None)

    def registration(self, keys: PoolKeys, margin: str = "1/100", pledge: int = 100 * ADA) -> Json:
        pool = {
            "id": keys.id,
            "vrfVerificationKeyHash": keys.vrf_hash,
            "pledge": parameters.ada(pledge),
            "cost": parameters.ada(parameters.POOL_COST),
            "margin": margin,
            "rewardAccount": self.cast.reward_address(LedgerCredential("verificationKey", "ee" * 28)),
            "owners": [keys.owner.hash],
            "relays": [{"type": "hostname", "hostname": "relay.example.org", "port": 3001}],
        }
        return {"type": "stakePoolRegistration", "stakePool": pool}

    def _include(self, draft: Draft) -> Json:
        draft.fund(max(0, 10 * ADA - draft.lovelace), self.cast.faucets[0])
        tx = draft.done(self.cast.faucets[0])
        self.ledger.apply_transaction(tx)
        return tx

    def _append(self, slot: int, transactions: list[Json], by: PoolKeys | None) -> Block:
        leader = self.cast.delegates[len(self.blocks) % 7] if by is None else by
        self.ledger.count_block(leader if isinstance(leader, str) else leader.cold_key)
        parent = self.blocks[-1] if self.blocks else None
        self.blocks.append(self._headers.praos(ERA, parent, slot, leader, transactions))
        return self.blocks[-1]

    def _deposit(self, certificate: Json) -> int:
        match certificate:
            case {"type": "stakeCredentialRegistration"}:
                return parameters.STAKE_DEPOSIT
            case {"type": "stakeCredentialDeregistration"}:
                return -parameters.STAKE_DEPOSIT
            case {"type": "delegateRepresentativeRegistration"}:
                return parameters.DREP_DEPOSIT
            case {"type": "delegateRepresentativeRetirement"}:
                return -parameters.DREP_DEPOSIT
            case {"type": "stakePoolRegistration", "stakePool": {"id": id_}} if id_ not in self.ledger.pools:
                return parameters.POOL_DEPOSIT
        return 0


def home_of(chain: Scripted, staker: LedgerCredential) -> str:
    """An address that pays into a stake credential."""
    return next(address for address in chain.cast.people if stake_part(address) == staker)


def join(staker: LedgerCredential) -> Json:
    return {"type": "stakeCredentialRegistration", "from": staker.origin, "credential": staker.hash}


def leave(staker: LedgerCredential) -> Json:
    return {"type": "stakeCredentialDeregistration", "from": staker.origin, "credential": staker.hash}


def delegate(staker: LedgerCredential, keys: PoolKeys) -> Json:
    return {
        "type": "stakeDelegation",
        "from": staker.origin,
        "credential": staker.hash,
        "stakePool": {"id": keys.id},
        "delegateRepresentative": {"type": "abstain"},
    }


def vote(staker: LedgerCredential, representative: Json) -> Json:
    """A delegation of only the vote."""
    certificate = {"type": "stakeDelegation", "from": staker.origin, "credential": staker.hash}
    return certificate | {"delegateRepresentative": representative}


def stand(representative: Json) -> Json:
    """A representative registers."""
    deposit = parameters.ada(parameters.DREP_DEPOSIT)
    return {"type": "delegateRepresentativeRegistration", "delegateRepresentative": representative, "deposit": deposit}


def resign(representative: Json) -> Json:
    """A representative retires."""
    return stand(representative) | {"type": "delegateRepresentativeRetirement"}


def retire(keys: PoolKeys, epoch: int) -> Json:
    return {"type": "stakePoolRetirement", "stakePool": {"id": keys.id, "retirementEpoch": epoch}}
