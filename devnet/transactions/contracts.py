"""Transactions with Plutus scripts: locked outputs, reference inputs, and scripts that fail."""

from typing import Any

from devnet import addresses
from devnet.cast import SCRIPTS
from devnet.draft import MAX_QUANTITY, Draft, Impossible
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000
_DATUM = "d8799f4568656c6c6fff"


def lock(draft: Draft) -> Json:
    """Pay to a script; since Babbage also with an inline datum, and with reference scripts of both kinds."""
    payer = draft.fund(20 * ADA)
    digest = addresses.blake2b_256(bytes.fromhex(_DATUM))
    native: Json = {"script": draft.cast.minting_script(draft.cast.policies[0])} if draft.since("babbage") else {}
    draft.pay(draft.cast.script_addresses[1], 5 * ADA, datumHash=digest, **native)
    if draft.since("babbage"):
        draft.pay(draft.cast.script_addresses[2], 6 * ADA, datum=_DATUM, script=list(SCRIPTS.values())[2])
    return draft.done(payer)


def unlock(draft: Draft) -> Json:
    """Spend a script's output, with collateral. The script is a witness or a reference input."""
    _take_from_script(draft)
    draft.tx.setdefault("requiredExtraSignatories", []).append(draft.cast.hash_of("payment", 0))
    return draft.done(draft.cast.somebody(draft.random))


def refer(draft: Draft) -> Json:
    """Read outputs without spending them, which does not involve their addresses."""
    payer = draft.fund(3 * ADA)
    others = [person for person in draft.cast.people[:40] if draft.references(person)]
    for person in draft.random.sample(others, min(len(others), 2)):
        draft.refer(draft.references(person)[0])
    return draft.done(payer)


def fail(draft: Draft) -> Json:
    """Scripts fail: nothing that the transaction declares happens, and its collateral is spent.

    Since Babbage most of the collateral, with all of its tokens, may be returned; `totalCollateral` is optional. The
    lost amount differs from the declared fee.
    """
    _take_from_script(draft)
    for name in ("collaterals", "collateralReturn", "references"):
        draft.tx.pop(name, None)
    draft.mint(draft.cast.policies[1], b"NeverMade".hex(), 5)
    draft.pay(draft.cast.somebody(draft.random), 2 * ADA, {(draft.cast.policies[1], b"NeverMade".hex()): 5})
    staker = draft.random.choice(draft.cast.stakers)
    if staker not in draft.ledger.accounts:
        draft.certify(
            {"type": "stakeCredentialRegistration", "from": staker.origin, "credential": staker.hash}, deposit=2 * ADA
        )
    loser = draft.random.choice([person for person in draft.cast.people[:20] if draft.references(person)])
    returned = draft.since("babbage") and draft.random.random() < 0.7
    collateral = [draft.collateral(loser, tokens=returned) for _ in range(draft.random.choice([1, 1, 2]))]
    if returned:
        change = _sum(collateral)
        lost = min(change["ada"]["lovelace"] // 2, draft.random.randint(ADA, 3 * ADA))
        change["ada"]["lovelace"] -= lost
        draft.tx["collateralReturn"] = {"address": draft.cast.somebody(draft.random), "value": change}
        if draft.random.random() < 0.7:
            draft.tx["totalCollateral"] = {"ada": {"lovelace": lost}}
    draft.tx["spends"] = "collaterals"
    return draft.done(loser)


def redeem(draft: Draft, purpose: str, index: int = 0) -> None:
    """Add the redeemer, integrity hash and collateral that a script needs to run, and sometimes the return of that."""
    units = {"memory": 1_700, "cpu": 476_468}
    validator = {"purpose": purpose, "index": index}
    draft.tx.setdefault("redeemers", []).append({"redeemer": "d87980", "executionUnits": units, "validator": validator})
    draft.tx["scriptIntegrityHash"] = addresses.blake2b_256(purpose.encode())
    if "collaterals" not in draft.tx:
        value = draft.collateral(draft.cast.faucets[0])
        if draft.since("babbage") and draft.random.random() < 0.6:
            to = draft.random.choice([draft.cast.faucets[0], draft.cast.somebody(draft.random)])
            change = {"ada": {"lovelace": value["ada"]["lovelace"] - ADA}}
            draft.tx["collateralReturn"] = {"address": to, "value": change}


def _sum(values: list[Json]) -> Json:
    """The sum of values. Raises Impossible if no output can hold it."""
    total: Json = {}
    for value in values:
        for policy, names in value.items():
            held = total.setdefault(policy, {})
            for name, quantity in names.items():
                held[name] = held.get(name, 0) + quantity
                if held[name] > MAX_QUANTITY:
                    raise Impossible
    return total


def _take_from_script(draft: Draft) -> None:
    script = draft.random.choice(draft.cast.script_addresses[1:3])
    references = draft.references(script)
    if not references:
        raise Impossible
    output = draft.spend(references[0])
    if "datumHash" in output:
        draft.tx["datums"] = {output["datumHash"]: _DATUM}
        script_hash = addresses.raw(script)[1:].hex()
        draft.tx["scripts"] = {script_hash: SCRIPTS[script_hash]}
    elif references[1:]:
        draft.refer(references[1])
    draft.fund(12 * ADA)
    redeem(draft, "spend")


KINDS = [
    TransactionKind(lock, since="alonzo"),
    TransactionKind(unlock, since="alonzo"),
    TransactionKind(refer, since="babbage"),
    TransactionKind(fail, since="alonzo"),
]
