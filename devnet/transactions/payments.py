"""Payments of ada and tokens, metadata, and donations."""

from typing import Any

from devnet.draft import Draft, Impossible
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def pay(draft: Draft) -> Json:
    """The everyday transaction: one payment, and the change."""
    lovelace = _amount(draft)
    payer = draft.fund(lovelace)
    draft.pay(draft.cast.somebody(draft.random), lovelace)
    _limit(draft)
    return draft.done(payer)


def pay_many(draft: Draft) -> Json:
    amounts = [_amount(draft) for _ in range(draft.random.randint(3, 20))]
    payer = draft.fund(sum(amounts))
    for lovelace in amounts:
        draft.pay(draft.cast.somebody(draft.random), lovelace)
    return draft.done(payer)


def pay_rare_address(draft: Draft) -> Json:
    """Pay to rarer kinds of address: Byron, enterprise, pointer, or with a script."""
    people = [person for rank, person in enumerate(draft.cast.people) if rank % 10 >= 6]
    payer = draft.fund(20 * ADA)
    for person in draft.random.sample(people, 3):
        draft.pay(person, draft.random.randint(2, 6) * ADA)
    return draft.done(payer)


def spend_rare_address(draft: Draft) -> Json:
    people = [person for rank, person in enumerate(draft.cast.people) if rank % 10 >= 6 and draft.references(person)]
    if not people:
        raise Impossible
    payer = draft.random.choice(people)
    draft.spend(draft.references(payer)[0])
    return draft.done(draft.cast.somebody(draft.random))


def gather(draft: Draft) -> Json:
    """Spend many outputs of an address and pay a single one to it."""
    person = draft.cast.somebody(draft.random)
    for reference in draft.references(person):
        draft.spend(reference)
    return draft.done(person)


def pay_oneself(draft: Draft) -> Json:
    """Spend from an address and pay several outputs to the same address."""
    person = draft.cast.somebody(draft.random)
    draft.fund(9 * ADA, person)
    for lovelace in (2 * ADA, 3 * ADA):
        draft.pay(person, lovelace)
    return draft.done(person)


def send_tokens(draft: Draft) -> Json:
    """Send some of a person's tokens to another."""
    for _ in range(30):
        sender = draft.cast.somebody(draft.random)
        for reference in draft.references(sender, limit=3):
            if len(draft.ledger.unspent[reference]["value"]) > 1:
                draft.spend(reference)
                held = draft.random.sample(sorted(draft.assets), min(len(draft.assets), 5))
                sent = {asset: draft.random.randint(1, draft.assets[asset]) for asset in held}
                draft.fund(draft.lovelace + 3 * ADA)
                draft.pay(draft.cast.somebody(draft.random), 2 * ADA, sent)
                return draft.done(sender)
    raise Impossible


def chat(draft: Draft) -> Json:
    """Metadata of every kind: text, large numbers, bytes, empty values, and keys that are bytes or lists."""
    payer = draft.fund(2 * ADA)
    number = draft.random.randrange(1_000_000)
    things: list[Any] = [
        {674: {"msg": ["Invoice", f"no. {number}", "thank you \N{HOT BEVERAGE}"]}},
        {61_284: {1: bytes([number % 256]) * 32, 2: [[b"\x00\xff", 1]]}, 61_285: {1: b"signature" * 7}},
        {7: {b"\x01\x02": number, "kept": 1, 14: -number}, 8: [number, -(2**63), 2**64 - 1, b"", "", [], {}]},
        {0: number, 18_446_744_073_709_551_615: "the highest label"},
        {1: {"zero": "nul \x00 inside", "list": [{"deep": [[[{"deeper": number}]]]}]}},
        {2: {(1, 2): "a list as key"}, 3: b"only bytes"},
    ]
    draft.describe(draft.random.choice(things))
    return draft.done(payer)


def donate(draft: Draft) -> Json:
    """Donate to the treasury, with or without stating its current value."""
    lovelace = _amount(draft)
    payer = draft.fund(lovelace)
    draft.tx["treasury"] = {"donation": {"ada": {"lovelace": lovelace}}}
    if draft.random.random() < 0.5:
        draft.tx["treasury"]["value"] = {"ada": {"lovelace": draft.ledger.treasury}}
    draft.lovelace -= lovelace
    return draft.done(payer)


def _amount(draft: Draft) -> int:
    return int(10 ** draft.random.uniform(6.1, 9.5))


def _limit(draft: Draft) -> None:
    """Limit the validity of half of the transactions."""
    bounds = {"invalidBefore": max(draft.slot - 300, 0), "invalidAfter": draft.slot + 7_200}
    chosen = draft.random.choice([(), (), ("invalidAfter",), ("invalidBefore", "invalidAfter")])
    if chosen:
        draft.tx["validityInterval"] = {name: bounds[name] for name in chosen}


KINDS = [
    TransactionKind(pay),
    TransactionKind(pay_many),
    TransactionKind(pay_rare_address),
    TransactionKind(spend_rare_address),
    TransactionKind(gather),
    TransactionKind(pay_oneself),
    TransactionKind(send_tokens, since="mary"),
    TransactionKind(chat),
    TransactionKind(donate, since="conway"),
]
