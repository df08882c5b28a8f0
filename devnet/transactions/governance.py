"""Conway: representatives, the committee, proposals and votes. Before Conway: proposals of genesis delegates."""

from typing import Any

from devnet import parameters
from devnet.addresses import LedgerCredential
from devnet.draft import Draft, Impossible
from devnet.parameters import DREP_DEPOSIT, PROPOSAL_DEPOSIT, STAKE_DEPOSIT
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def register_representative(draft: Draft) -> Json:
    strangers = _strangers(draft)
    if not strangers:
        raise Impossible
    _register(draft, draft.random.choice(strangers))
    draft.fund(600 * ADA)
    return draft.done()


def update_representative(draft: Draft) -> Json:
    metadata = _anchor(draft) if draft.random.random() < 0.7 else None
    draft.certify(_certificate("Update", _representative(draft)) | {"metadata": metadata})
    return draft.done()


def retire_representative(draft: Draft) -> Json:
    """A representative retires, and sometimes registers again at once."""
    who = _representative(draft)
    _retire(draft, who)
    if draft.random.random() < 0.3:
        draft.fund(600 * ADA)
        _register(draft, who)
    return draft.done()


def delegate_vote(draft: Draft) -> Json:
    """Delegate the vote, sometimes with the stake in the same certificate."""
    members = list(draft.ledger.accounts)
    if not members:
        raise Impossible
    certificate = _vote(draft.random.choice(members), draft.random.choice(_choices(draft)))
    if draft.ledger.pools and draft.random.random() < 0.5:
        certificate["stakePool"] = {"id": draft.random.choice(sorted(draft.ledger.pools))}
    draft.certify(certificate)
    return draft.done()


def change_mind(draft: Draft) -> Json:
    """One account or a few delegate their vote back and forth, and a representative retires in between."""
    members = list(draft.ledger.accounts)
    if not members:
        raise Impossible
    for staker in draft.random.sample(members, min(len(members), 3)):
        for _ in range(draft.random.randint(1, 3)):
            draft.certify(_vote(staker, draft.random.choice(_choices(draft))))
    if draft.ledger.representatives and draft.random.random() < 0.4:
        _retire(draft, _representative(draft))
    return draft.done()


def stand_and_be_chosen(draft: Draft) -> Json:
    """A representative registers between two delegations to it; only protocol 9 allows the first."""
    members, strangers = list(draft.ledger.accounts), _strangers(draft)
    if not members or not strangers:
        raise Impossible
    who = draft.random.choice(strangers)
    if draft.ledger.major < 10:
        draft.certify(_vote(draft.random.choice(members), _registered(who)))
    draft.fund(600 * ADA)
    _register(draft, who)
    draft.certify(_vote(draft.random.choice(members), _registered(who)))
    return draft.done()


def join_with_a_vote(draft: Draft) -> Json:
    """Register a stake credential and delegate its vote, two certificates as Ogmios also shows one that does both."""
    strangers = [who for who in draft.cast.stakers if who not in draft.ledger.accounts]
    if not strangers:
        raise Impossible
    vote = _vote(draft.random.choice(strangers), draft.random.choice(_choices(draft)))
    registration = {"type": "stakeCredentialRegistration", "from": vote["from"], "credential": vote["credential"]}
    draft.certify(registration | {"deposit": parameters.ada(STAKE_DEPOSIT)}, deposit=STAKE_DEPOSIT)
    draft.certify(vote)
    draft.fund(5 * ADA)
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
    """One or two proposals, each with a deposit that is returned when the proposal expires.

    Protocol 9 allows few kinds of actions (GOV: isBootstrapAction).
    """
    actions: list[Json] = [
        {"type": "information"},
        {"type": "hardForkInitiation", "version": {"major": draft.ledger.major + 1, "minor": 0}},
        {"type": "noConfidence"},
        {"type": "constitution", "metadata": _anchor(draft), "guardrails": None},
        {
            "type": "treasuryWithdrawals",
            "withdrawals": {draft.cast.stakers[0].hash: parameters.ada(5 * ADA)},
            "guardrails": {"hash": draft.cast.hash_of("guardrails", 0)},
        },
    ]
    if draft.ledger.major < 10:
        actions = actions[:2]
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
    """Representatives and pools vote; in protocol 9, representatives only on information (GOV)."""
    if not draft.ledger.proposals:
        raise Impossible
    (transaction, index), proposal = draft.random.choice(list(draft.ledger.proposals.items()))
    who, voters = _representative(draft), list[Json]()
    if draft.ledger.major >= 10 or proposal.content["action"]["type"] == "information":
        voters.append({"role": "delegateRepresentative", "id": who.hash, "from": who.origin})
    if draft.ledger.pools:
        voters.append({"role": "stakePoolOperator", "id": draft.random.choice(sorted(draft.ledger.pools))})
    if not voters:
        raise Impossible
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


def move_rewards(draft: Draft) -> Json:
    """Before Conway: genesis delegates pay accounts from the reserves or the treasury at the end of the epoch. Not all
    of these accounts are registered.
    """
    for _ in range(draft.random.randint(1, 2)):
        chosen = draft.random.sample(draft.cast.stakers, draft.random.randint(1, 4))
        pot = "treasury" if draft.ledger.treasury > 1_000 * ADA and draft.random.random() < 0.5 else "reserves"
        draft.move_rewards(pot, {who: draft.random.randint(1, 9) * ADA for who in chosen})
    if draft.random.random() < 0.5:
        number = draft.random.randrange(7)
        delegate = {"id": draft.cast.hash_of("delegate", number), "vrfVerificationKeyHash": draft.cast.key("vrf", 100)}
        issuer = {"id": draft.cast.hash_of("genesis", number)}
        draft.certify({"type": "genesisDelegation", "delegate": delegate, "issuer": issuer})
    return draft.done()


def _register(draft: Draft, who: LedgerCredential) -> None:
    certificate = _certificate("Registration", who) | {"deposit": parameters.ada(DREP_DEPOSIT)}
    if draft.random.random() < 0.5:
        certificate["metadata"] = _anchor(draft)
    draft.certify(certificate, deposit=DREP_DEPOSIT)


def _retire(draft: Draft, who: LedgerCredential) -> None:
    refund = draft.ledger.representatives[who].deposit
    draft.certify(_certificate("Retirement", who) | {"deposit": parameters.ada(refund)}, refund=refund)


def _vote(staker: LedgerCredential, representative: Json) -> Json:
    certificate = {"type": "stakeDelegation", "from": staker.origin, "credential": staker.hash}
    return certificate | {"delegateRepresentative": representative}


def _choices(draft: Draft) -> list[Json]:
    """Whom an account may choose. Protocol 9 also accepts representatives that are not registered."""
    known = draft.ledger.representatives if draft.ledger.major >= 10 else draft.cast.representatives
    return [{"type": "abstain"}, {"type": "noConfidence"}, *map(_registered, known)]


def _strangers(draft: Draft) -> list[LedgerCredential]:
    return [who for who in draft.cast.representatives if who not in draft.ledger.representatives]


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
    TransactionKind(change_mind, since="conway"),
    TransactionKind(stand_and_be_chosen, since="conway"),
    TransactionKind(join_with_a_vote, since="conway"),
    TransactionKind(seat_committee, since="conway"),
    TransactionKind(propose, since="conway"),
    TransactionKind(vote, since="conway"),
    TransactionKind(update_protocol, until="babbage"),
    TransactionKind(move_rewards, until="babbage"),
]
