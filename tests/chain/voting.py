"""Chains that are full of delegations and representatives, and whom each account should be represented by."""

from devnet.addresses import LedgerCredential
from shared.network import PREVIEW
from tests.chain.harness import Json
from tests.chain.model import stake_address
from tests.chain.model_chain import Chain, genesis_of
from tests.chain.scripted import Scripted, join, leave, resign, stand, vote

EPOCH = PREVIEW.epoch_slots
FORK = 3
ABSTAIN, NO_CONFIDENCE = {"type": "abstain"}, {"type": "noConfidence"}
ONE, TWO, THREE = (
    {"type": "registered", "from": origin, "id": digit * 56}
    for origin, digit in (("script", "1"), ("verificationKey", "2"), ("verificationKey", "1"))
)


class Forking(Scripted):
    """A chain that begins in protocol 9, and forks to 10 and 11."""

    forks = ((10, FORK), (11, FORK + 2))


def account_of(staker: LedgerCredential) -> str:
    """Its reward account."""
    return stake_address("preview", staker.hash, script=staker.is_script)


def modelled(chain: Scripted) -> dict[str, Json]:
    """The representative of each account in the model."""
    model = Chain("preview", genesis_of(chain.genesis), chain.forks)
    return model.feed(block.decoded() for block in chain.blocks).pools.votes.representatives


def played(chain: Scripted) -> dict[LedgerCredential, Json]:
    """That in the devnet's ledger."""
    return {who: each.representative for who, each in chain.ledger.accounts.items() if each.representative is not None}


# For each account that a case is about: the certificates of each epoch, and its representative in the end. `me` stands
# for its credential. Epochs 0 to 2 are of protocol 9, 3 and 4 of protocol 10.
me = LedgerCredential("verificationKey", "00" * 28)
Step = tuple[int, list[Json]]
CASES: dict[str, tuple[list[Step], Json | None]] = {
    "a delegation": ([(0, [stand(ONE), join(me), vote(me, ONE)])], ONE),
    "a predefined one": ([(0, [join(me), vote(me, ABSTAIN)]), (4, [vote(me, NO_CONFIDENCE)])], NO_CONFIDENCE),
    "a retirement": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (1, [resign(ONE)])], None),
    "a retirement after the fork": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (4, [resign(ONE)])], None),
    "in 9, a retirement ends what followed": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (1, [resign(ONE)])],
        None,
    ),
    "in 10, it does not": (
        [(3, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (4, [resign(ONE)])],
        TWO,
    ),
    "the fork forgets who was left": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (3, [resign(ONE)])],
        TWO,
    ),
    "in 9, the last of the same": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), vote(me, ONE)]), (1, [resign(TWO)])],
        None,
    ),
    "in 9, a predefined one leaves the last set": (
        [(0, [stand(ONE), join(me), vote(me, ONE), vote(me, ABSTAIN)]), (1, [resign(ONE)])],
        ABSTAIN,
    ),
    "in 9, a predefined one leaves only the last set": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), vote(me, ABSTAIN)]), (1, [resign(ONE)])],
        None,
    ),
    "in 9, an ended delegation leaves no set": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, TWO), vote(me, ONE)]),
            (1, [resign(TWO), vote(me, ABSTAIN), resign(ONE)]),
        ],
        None,
    ),
    "in 9, an unregistered one": ([(0, [join(me), vote(me, ONE)])], None),
    "in 9, an unregistered one until the fork": ([(2, [join(me), vote(me, ONE), stand(ONE)])], ONE),
    "in 9, who is not in the set stays": (
        [(0, [join(me), vote(me, ONE), stand(ONE), resign(ONE)]), (1, [stand(ONE)])],
        ONE,
    ),
    "in 9, who is not in the set stays, until the fork": (
        [(0, [join(me), vote(me, ONE), stand(ONE), resign(ONE)])],
        None,
    ),
    "the fork puts all of them into the set": ([(0, [join(me), vote(me, ONE), stand(ONE)]), (4, [resign(ONE)])], None),
    "in 9, choosing it again enters the set": (
        [(0, [join(me), vote(me, ONE), stand(ONE), vote(me, ONE)]), (1, [resign(ONE)])],
        None,
    ),
    "a set begins empty": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]),
            (1, [resign(ONE), stand(ONE), vote(me, TWO), resign(ONE)]),
        ],
        TWO,
    ),
    "a registration in the transaction of the retirement": (
        [(4, [stand(ONE), join(me), vote(me, ONE)]), (4, [resign(ONE), stand(ONE)])],
        None,
    ),
    "in 9, a deregistered account leaves the last set": (
        [
            (0, [stand(ONE), join(me), vote(me, ONE), leave(me), join(me), vote(me, ABSTAIN)]),
            (1, [resign(ONE)]),
        ],
        ABSTAIN,
    ),
    "in 9, a deregistered account stays in the others": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), leave(me)]),
            (1, [join(me), vote(me, ABSTAIN), resign(ONE)]),
        ],
        None,
    ),
    "in 10, a deregistered account leaves": (
        [(3, [stand(ONE), join(me), vote(me, ONE), leave(me)]), (4, [join(me), vote(me, ABSTAIN), resign(ONE)])],
        ABSTAIN,
    ),
    "a deregistration": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (4, [leave(me), join(me)])], None),
    "a key and a script with the same hash": (
        [(0, [stand(ONE), stand(THREE), join(me), vote(me, THREE)]), (1, [resign(ONE)])],
        THREE,
    ),
    "the last block of 9": ([(2, [join(me), vote(me, ONE)])], None),
    "the first block of 10": ([(3, [stand(ONE), join(me), vote(me, ONE)]), (3, [resign(ONE)])], None),
    "a retirement in the last block of 9": (
        [(1, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (2, [resign(ONE)])],
        None,
    ),
    "a retirement in the first block of 10": (
        [(2, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (3, [resign(ONE)])],
        TWO,
    ),
    "a retirement ends what another has left": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]),
            (1, [resign(ONE), resign(TWO), stand(ONE), vote(me, ONE)]),
        ],
        ONE,
    ),
}


def renamed(certificate: Json, number: int) -> Json:
    """A certificate of a case about this account and these representatives: each case has its own."""
    told = dict(certificate)
    if "credential" in told:
        told["credential"] = staker_of(number).hash
        told["from"] = staker_of(number).origin
    representative = told.get("delegateRepresentative", {})
    if "id" in representative:
        told["delegateRepresentative"] = representative | {"id": f"{representative['id'][:52]}{number:04x}"}
    return told


def staker_of(number: int) -> LedgerCredential:
    return LedgerCredential("script" if number % 3 == 0 else "verificationKey", f"{number:056x}")


def cases() -> tuple[Forking, dict[LedgerCredential, Json]]:
    """A chain with a block for each step of each case, and the representatives in the end."""
    chain, expected, slot = Forking(), dict[LedgerCredential, Json](), 0
    for epoch in range(FORK + 3):
        slot = epoch * EPOCH
        for number, (steps, _) in enumerate(CASES.values(), start=1):
            for at, certificates in steps:
                if at == epoch:
                    slot += 1
                    chain.block(slot, [renamed(each, number) for each in certificates])
        chain.block(slot + 1)
    for number, (_, representative) in enumerate(CASES.values(), start=1):
        if representative is not None:
            told = renamed({"delegateRepresentative": representative}, number)
            expected[staker_of(number)] = told["delegateRepresentative"]
    return chain, expected


def raw(staker: LedgerCredential) -> bytes:
    """Its reward account in bytes."""
    return bytes((0xF0 if staker.is_script else 0xE0,)) + bytes.fromhex(staker.hash)
