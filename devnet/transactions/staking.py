"""Certificates of stake credentials and pools, in the orders that the ledger allows."""

from typing import Any

from devnet import parameters
from devnet.addresses import LedgerCredential
from devnet.cast import PoolKeys
from devnet.draft import Draft, Impossible
from devnet.parameters import POOL_DEPOSIT, STAKE_DEPOSIT
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def register(draft: Draft) -> Json:
    """Register a credential, which often delegates immediately. Since Conway the certificate may state the deposit."""
    staker = _stranger(draft)
    _register(draft, staker)
    if draft.ledger.pools and draft.random.random() < 0.8:
        draft.certify(_delegation(staker, _any_pool(draft)))
    payer = draft.fund(5 * ADA)
    return draft.done(payer)


def register_many(draft: Draft) -> Json:
    for staker in dict.fromkeys(_stranger(draft) for _ in range(6)):
        _register(draft, staker)
        if draft.ledger.pools:
            draft.certify(_delegation(staker, _any_pool(draft)))
    draft.fund(15 * ADA)
    return draft.done()


def delegate(draft: Draft) -> Json:
    draft.certify(_delegation(_member(draft), _any_pool(draft)))
    return draft.done()


def deregister(draft: Draft) -> Json:
    """Deregister a credential and withdraw its rewards."""
    _leave(draft, _member(draft))
    return draft.done()


def turn_around(draft: Draft) -> Json:
    """Several certificates for one credential in one transaction: the last one counts."""
    staker = _member(draft)
    draft.certify(_delegation(staker, _any_pool(draft)))
    _leave(draft, staker)
    _register(draft, staker)
    if draft.random.random() < 0.5:
        draft.certify(_delegation(staker, _any_pool(draft)))
        draft.certify(_delegation(staker, _any_pool(draft)))
    return draft.done()


def come_and_go(draft: Draft) -> Json:
    """Register, delegate and deregister a credential in one transaction."""
    staker = _stranger(draft)
    draft.fund(5 * ADA)
    _register(draft, staker)
    draft.certify(_delegation(staker, _any_pool(draft)))
    draft.certify(_deregistration(draft, staker), refund=STAKE_DEPOSIT)
    return draft.done()


def withdraw(draft: Draft) -> Json:
    """Withdraw the rewards of up to three accounts."""
    rich = [credential for credential, account in draft.ledger.accounts.items() if account.rewards]
    if not rich:
        raise Impossible
    for credential in draft.random.sample(rich, min(len(rich), draft.random.randint(1, 3))):
        draft.withdraw(credential)
    return draft.done(draft.cast.somebody(draft.random))


def withdraw_nothing(draft: Draft) -> Json:
    """Withdraw from an empty account, as is done to run the script of a stake credential."""
    poor = [credential for credential, account in draft.ledger.accounts.items() if not account.rewards]
    if not poor:
        raise Impossible
    draft.withdraw(draft.random.choice(poor))
    return draft.done()


def found_pool(draft: Draft) -> Json:
    """Register a new or reaped pool, and delegate its owner to it."""
    strangers = [keys for keys in draft.cast.pools if keys.id not in draft.ledger.pools]
    if not strangers:
        raise Impossible
    keys = draft.random.choice(strangers)
    if keys.owner not in draft.ledger.accounts:
        _register(draft, keys.owner)
    draft.certify(_registration_of_pool(draft, keys), deposit=POOL_DEPOSIT)
    draft.certify(_delegation(keys.owner, keys.id))
    draft.fund(600 * ADA)
    return draft.done()


def change_pool(draft: Draft) -> Json:
    """Register a pool again: new parameters, no deposit. This cancels an announced retirement."""
    keys = _operator(draft)
    draft.certify(_registration_of_pool(draft, keys))
    return draft.done()


def change_retiring_pool(draft: Draft) -> Json:
    retiring = [keys for keys in _operators(draft) if draft.ledger.pools[keys.id].retiring_epoch is not None]
    if not retiring:
        raise Impossible
    draft.certify(_registration_of_pool(draft, draft.random.choice(retiring)))
    return draft.done()


def retire_pool(draft: Draft) -> Json:
    """Announce a pool's retirement in one of the next epochs. It replaces an earlier announcement."""
    operators = _operators(draft)
    if len(operators) < 4:
        raise Impossible
    draft.certify(_retirement(draft, draft.random.choice(operators), draft.random.randint(1, 3)))
    return draft.done()


def waver(draft: Draft) -> Json:
    """Announce a retirement, cancel it, and sometimes announce it again, in one transaction."""
    keys = _operator(draft)
    draft.certify(_retirement(draft, keys, 1))
    draft.certify(_registration_of_pool(draft, keys))
    if draft.random.random() < 0.3:
        draft.certify(_retirement(draft, keys, 2))
    return draft.done()


def delegate_genesis(draft: Draft) -> Json:
    """A genesis key names another delegate. Conway has no such certificate."""
    number = draft.random.randrange(7)
    delegate = {"id": draft.cast.hash_of("delegate", number), "vrfVerificationKeyHash": draft.cast.key("vrf", 100)}
    issuer = {"id": draft.cast.hash_of("genesis", number)}
    draft.certify({"type": "genesisDelegation", "delegate": delegate, "issuer": issuer})
    return draft.done()


def _register(draft: Draft, staker: LedgerCredential) -> None:
    certificate: Json = {"type": "stakeCredentialRegistration", "from": staker.origin, "credential": staker.hash}
    if draft.since("conway") and draft.random.random() < 0.5:
        certificate["deposit"] = parameters.ada(STAKE_DEPOSIT)
    draft.certify(certificate, deposit=STAKE_DEPOSIT)


def _leave(draft: Draft, staker: LedgerCredential) -> None:
    """Deregister a credential; the ledger requires its account to be empty."""
    if draft.ledger.accounts[staker].rewards:
        draft.withdraw(staker)
    draft.certify(_deregistration(draft, staker), refund=STAKE_DEPOSIT)


def _deregistration(draft: Draft, staker: LedgerCredential) -> Json:
    certificate: Json = {"type": "stakeCredentialDeregistration", "from": staker.origin, "credential": staker.hash}
    if draft.since("conway") and draft.random.random() < 0.5:
        certificate["deposit"] = parameters.ada(STAKE_DEPOSIT)
    return certificate


def _delegation(staker: LedgerCredential, pool: str) -> Json:
    return {
        "type": "stakeDelegation",
        "from": staker.origin,
        "credential": staker.hash,
        "stakePool": {"id": pool},
    }


def _retirement(draft: Draft, keys: PoolKeys, epochs: int) -> Json:
    pool = {"id": keys.id, "retirementEpoch": draft.ledger.epoch + epochs}
    return {"type": "stakePoolRetirement", "stakePool": pool}


def _registration_of_pool(draft: Draft, keys: PoolKeys) -> Json:
    random, number = draft.random, draft.cast.pools.index(keys)
    partners = random.sample(draft.cast.stakers[:20], random.randint(0, 2))
    pool: Json = {
        "id": keys.id,
        "vrfVerificationKeyHash": keys.vrf_hash,
        "pledge": parameters.ada(random.choice([0, 100 * ADA, 65_536 * ADA + 1])),
        "cost": parameters.ada(parameters.POOL_COST * random.randint(1, 3)),
        "margin": random.choice(["0/1", "1/20", "3/40", "1/3", "1/1", "61576236620585531/100000000000000000"]),
        "rewardAccount": draft.cast.reward_address(random.choice([keys.owner, draft.cast.stakers[number]])),
        "owners": sorted({owner.hash for owner in (keys.owner, *partners)}),
        "relays": random.sample(_relays(number), random.randint(0, 4)),
    }
    if random.random() < 0.7:
        odd = "\0" if random.random() < 0.05 else ""  # a metadata URL may be any text
        url = f"https://pool{number}.example.org/{odd}{random.randrange(100)}.json"
        pool["metadata"] = {"url": url, "hash": draft.cast.key("pool metadata", number)}
    return {"type": "stakePoolRegistration", "stakePool": pool}


def _relays(number: int) -> list[Json]:
    """One relay of every kind. The last has a service record (SRV), which names the port."""
    return [
        {"type": "ipAddress", "ipv4": f"192.0.2.{number}", "port": 3001},
        {"type": "ipAddress", "ipv6": f"2001:db8::{number:x}", "port": 3002},
        {"type": "ipAddress", "ipv4": f"198.51.100.{number}", "ipv6": "2001:db8::ffff", "port": 6000},
        {"type": "ipAddress", "ipv4": f"203.0.113.{number}"},
        {"type": "ipAddress", "port": 3003},
        {"type": "hostname", "hostname": f"relay.pool{number}.example.org", "port": 3001},
        {"type": "hostname", "hostname": f"_cardano._tcp.pool{number}.example.org"},
    ]


def _stranger(draft: Draft) -> LedgerCredential:
    for _ in range(30):
        staker = draft.random.choice(draft.cast.stakers)
        if staker not in draft.ledger.accounts:
            return staker
    raise Impossible


def _member(draft: Draft) -> LedgerCredential:
    for _ in range(30):
        staker = draft.random.choice(draft.cast.stakers)
        if staker in draft.ledger.accounts:
            return staker
    raise Impossible


def _any_pool(draft: Draft) -> str:
    if not draft.ledger.pools:
        raise Impossible
    return draft.random.choice(sorted(draft.ledger.pools))


def _operators(draft: Draft) -> list[PoolKeys]:
    return [keys for keys in draft.cast.pools if keys.id in draft.ledger.pools]


def _operator(draft: Draft) -> PoolKeys:
    operators = _operators(draft)
    if not operators:
        raise Impossible
    return draft.random.choice(operators)


KINDS = [
    TransactionKind(register),
    TransactionKind(register_many),
    TransactionKind(delegate),
    TransactionKind(deregister),
    TransactionKind(turn_around),
    TransactionKind(come_and_go),
    TransactionKind(withdraw),
    TransactionKind(withdraw_nothing),
    TransactionKind(found_pool),
    TransactionKind(change_pool),
    TransactionKind(change_retiring_pool),
    TransactionKind(retire_pool),
    TransactionKind(waver),
    TransactionKind(delegate_genesis, until="babbage"),
]
