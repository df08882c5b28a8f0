"""Dijkstra: sub-transactions, payments into reward accounts, guards.

A batch balances as a whole: the surplus of one sub-transaction may fund another, or the transaction that holds both.
"""

from typing import Any

from devnet import parameters
from devnet.draft import Draft, Impossible
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def batch(draft: Draft) -> Json:
    """A sale and a purchase as sub-transactions; the transaction around them pays the fee.

    The purchase may burn some or all of the tokens that the sale mints.
    """
    policy, name = draft.cast.policies[2], b"Batch".hex()
    sale, purchase = draft.part(), draft.part()
    quantity = draft.random.randint(2, 900)
    sale.mint(policy, name, quantity)
    _spend_any(sale)
    _spend_any(purchase)
    purchase.pay(draft.cast.somebody(draft.random), min(purchase.lovelace, 2 * ADA))
    if burned := draft.random.choice([0, 1, quantity]):
        purchase.mint(policy, name, -burned)
    sale.tx["guards"] = [draft.cast.hash_of("guard", 0)]
    draft.include(sale)
    draft.include(purchase)
    return draft.done(draft.cast.somebody(draft.random))


def fail_batch(draft: Draft) -> Json:
    """A batch whose scripts fail: no part of it happens, and its collateral is spent."""
    draft.collateral(draft.cast.faucets[0])
    draft.tx["spends"] = "collaterals"
    return batch(draft)


def credit(draft: Draft) -> Json:
    """Pay into reward accounts, which needs no output."""
    accounts = list(draft.ledger.accounts)
    if not accounts:
        raise Impossible
    for account in draft.random.sample(accounts, min(len(accounts), 2)):
        draft.tx.setdefault("credits", {})[draft.cast.reward_address(account)] = parameters.ada(3 * ADA)
        draft.lovelace -= 3 * ADA
    draft.fund(2 * ADA)
    draft.tx["guards"] = [draft.cast.hash_of("guard", 1)]
    return draft.done()


def _spend_any(draft: Draft) -> None:
    for _ in range(30):
        references = draft.references(draft.cast.somebody(draft.random))
        if references:
            draft.spend(references[0])
            return
    raise Impossible


KINDS = [
    TransactionKind(batch, since="dijkstra"),
    TransactionKind(fail_batch, since="dijkstra"),
    TransactionKind(credit, since="dijkstra"),
]
