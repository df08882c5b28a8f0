"""Conway: representatives, the committee, proposals and votes. Before Conway: proposals of genesis delegates."""

from typing import Any

from devnet import parameters
from devnet.addresses import LedgerCredential
from devnet.draft import Draft, Impossible
from devnet.parameters import DREP_DEPOSIT, PROPOSAL_DEPOSIT
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def register_representative(draft: Draft) -> Json:
    strangers = [who for who in draft.cast.representatives if who not in draft.ledger.representatives]
    if not strangers:
        raise Impossible
    certificate = _certificate("Registration", draft.random.choice(strangers))
    certificate["deposit"] = parameters.ada(DREP_DEPOSIT)
    if draft.random.random() < 0.5:
        certificate["metadata"] = _anchor(draft)
    draft.certify(certificate, deposit=DREP_DEPOSIT)
    draft.fund(600 * ADA)
    return draft.done()


def update_representative(draft: Draft) -> Json:
    metadata = _anchor(draft) if draft.random.random() < 0.7 else None
    draft.certify(_certificate("Update", _representative(draft)) | {"metadata": metadata})
    return draft.done()


def retire_representative(draft: Draft) -> Json:
    who = _representative(draft)
    refund = draft.ledger.representatives[who]
    draft.certify(_certificate("Retirement", who) | {"deposit": parameters.ada(refund)}, refund=refund)
    return draft.done()


def delegate_vote(draft: Draft) -> Json:
    """Delegate the vote, sometimes with the stake in the same certificate."""
    members = list(draft.ledger.accounts)
    if not members:
        raise Impossible
    staker = draft.random.choice(members)
    certificate: Json = {"type": "stakeDelegation", "from": staker.origin, "credential": staker.hash}
    if draft.ledger.pools and draft.random.random() < 0.5:
        certificate["stakePool"] = {"id": draft.random.choice(sorted(draft.ledger.pools))}
    known = [_registered(who) for who in draft.ledger.representatives]
    certificate["delegateRepresentative"] = draft.random.choice([{"type": "abstain"}, {"type": "noConfidence"}, *known])
    draft.certify(certificate)
    return draft.done()


def seat_committee(draft: Draft) -> Json:
    """A committee member authorises the key that votes for it; another may resign."""
    number = draft.random.randrange(5)
    member = {"id": draft.cast.hash_of("committee", number), "from": "script"}
    hot = {"status": "authorized", "id": draft.cast.hash_of("committee hot", number), "from": "verificationKey"}
    draft.certify({"type": "constitutionalCommitteeDelegation", "member": member, "delegate": hot})
    if draft.random.random() < 0.5:
        leaving = {"id": draft.cast.hash_of("committee", 9), "from": "verificationKey"}
        certificate: Json = {"type": "constitutionalCommitteeRetirement", "member": leaving}
        if draft.random.random() < 0.5:
            certificate["metadata"] = _anchor(draft)
        draft.certify(certificate)
    return draft.done()


def propose(draft: Draft) -> Json:
    """One or two proposals, each with a deposit that is returned when the proposal expires."""
    actions: list[Json] = [
        {"type": "information"},
        {"type": "noConfidence"},
        {"type": "hardForkInitiation", "version": {"major": 11, "minor": 0}},
        {"type": "constitution", "metadata": _anchor(draft), "guardrails": None},
        {
            "type": "treasuryWithdrawals",
            "withdrawals": {draft.cast.stakers[0].hash: parameters.ada(5 * ADA)},
            "guardrails": {"hash": draft.cast.hash_of("guardrails", 0)},
        },
    ]
    accounts = list(draft.ledger.accounts) or draft.cast.stakers
    for _ in range(draft.random.randint(1, 2)):
        draft.tx.setdefault("proposals", []).append(
            {
                "deposit": parameters.ada(PROPOSAL_DEPOSIT),
                "returnAccount": draft.cast.reward_address(draft.random.choice(accounts)),
                "metadata": _anchor(draft),
                "action": draft.random.choice(actions),
            }
        )
        draft.lovelace -= PROPOSAL_DEPOSIT
    draft.fund(2 * ADA)
    return draft.done()


def vote(draft: Draft) -> Json:
    if not draft.ledger.proposals:
        raise Impossible
    transaction, index = draft.random.choice(list(draft.ledger.proposals))
    who = _representative(draft)
    issuer = {"role": "delegateRepresentative", "id": who.hash, "from": who.origin}
    voters: list[Json] = [issuer]
    if draft.ledger.pools:
        voters.append({"role": "stakePoolOperator", "id": draft.random.choice(sorted(draft.ledger.pools))})
    draft.tx["votes"] = [
        {
            "issuer": voter,
            "vote": draft.random.choice(["yes", "no", "abstain"]),
            "proposal": {"transaction": {"id": transaction}, "index": index},
        }
        for voter in voters
    ]
    return draft.done()


def update_protocol(draft: Draft) -> Json:
    """Before Conway: genesis delegates propose and vote, without a deposit."""
    action = {
        "type": "protocolParametersUpdate",
        "parameters": {"maxBlockBodySize": {"bytes": 90_112}, "desiredNumberOfStakePools": parameters.DESIRED_POOLS},
        "guardrails": None,
    }
    draft.tx["proposals"] = [{"action": action}]
    delegates = [draft.cast.hash_of("genesis", number) for number in range(5)]
    draft.tx["votes"] = [
        {"issuer": {"role": "genesisDelegate", "id": id_, "from": "verificationKey"}, "vote": "yes"}
        for id_ in delegates
    ]
    return draft.done()


def _certificate(what: str, who: LedgerCredential) -> Json:
    return {"type": f"delegateRepresentative{what}", "delegateRepresentative": _registered(who)}


def _registered(who: LedgerCredential) -> Json:
    return {"id": who.hash, "from": who.origin, "type": "registered"}


def _anchor(draft: Draft) -> Json:
    number = draft.random.randrange(1_000)
    return {"url": f"https://example.org/{number}.jsonld", "hash": draft.cast.key("anchor", number)}


def _representative(draft: Draft) -> LedgerCredential:
    if not draft.ledger.representatives:
        raise Impossible
    return draft.random.choice(list(draft.ledger.representatives))


KINDS = [
    TransactionKind(register_representative, since="conway"),
    TransactionKind(update_representative, since="conway"),
    TransactionKind(retire_representative, since="conway"),
    TransactionKind(delegate_vote, since="conway"),
    TransactionKind(seat_committee, since="conway"),
    TransactionKind(propose, since="conway"),
    TransactionKind(vote, since="conway"),
    TransactionKind(update_protocol, until="babbage"),
]
