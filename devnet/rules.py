"""The ledger's rules for a submitted transaction, and Ogmios' errors for broken ones.

`check` stops at the first broken rule. Ogmios receives all of them, and reports the one that most likely explains the
others. For the rules that the devnet has, the order here is the same.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from devnet import addresses, parameters, script_rules
from devnet.addresses import LedgerCredential
from devnet.case import Case, whose
from devnet.ledger import Asset, Ledger, lovelace_of
from devnet.refusal import Refusal
from devnet.submitted import Submitted

Json = dict[str, Any]

_ADA: Asset = ("ada", "lovelace")
_ERAS = ("conway", "dijkstra")


def check(tx: Submitted, ledger: Ledger, era: str, slot: int) -> None:
    """Raises Refusal if the transaction breaks a rule in this state of the ledger.

    Plutus scripts are not run: whether they succeed is checked once, when the transaction is submitted.
    """
    case = Case(tx, ledger, era, slot)
    for rule in (*_RULES, *_RULES_OF_VALID) if tx.is_valid else _RULES:
        rule(case)


def _era(case: Case) -> None:
    if case.era not in _ERAS:
        message = "Failed to submit the transaction in the current era: it is of a later one."
        raise Refusal(3005, message, {"queryEra": "conway", "ledgerEra": case.era})


def _refuse_unsupported(case: Case) -> None:
    """Refuse features that a node supports and the devnet does not."""
    if case.tx.unsupported is not None:
        raise _unexpected(f"this devnet accepts no transaction with {case.tx.unsupported}")


def _unexpected(reason: str) -> Refusal:
    message = "The transaction was rejected by rules of this node. `data.error` has the reason."
    return Refusal(3997, message, {"error": reason})


def _interval(case: Case) -> None:
    first, end = case.tx.invalid_before, case.tx.invalid_after
    if (first is not None and case.slot < first) or (end is not None and case.slot >= end):
        message = "The transaction is outside of its validity interval: it was submitted too early or too late."
        interval = case.content["validityInterval"]
        raise Refusal(3118, message, {"validityInterval": interval, "currentSlot": case.slot})


def _inputs(case: Case) -> None:
    if not case.content["inputs"]:
        raise Refusal(3121, "The transaction has no input: at least one is required to prevent replays.")
    both = [reference for reference in case.content.get("references", ()) if reference in case.content["inputs"]]
    if both:
        raise Refusal(3164, "Outputs are both spent and referred to.", {"conflictingReferences": both})
    if unknown := case.unknown("inputs", "references", "collaterals"):
        message = "The transaction contains unknown output references as inputs: spent already, or never produced."
        raise Refusal(3117, message, {"unknownOutputReferences": unknown})


def _size(case: Case) -> None:
    if case.tx.size > parameters.MAX_TRANSACTION_BYTES:
        data = {
            "measuredTransactionSize": {"bytes": case.tx.size},
            "maximumTransactionSize": {"bytes": parameters.MAX_TRANSACTION_BYTES},
        }
        raise Refusal(3119, "The transaction exceeds the maximum size allowed by the protocol.", data)


def _network(case: Case) -> None:
    expected, kind = case.network.address_tag, case.network.kind
    message = "Something in the transaction belongs to another network."
    if case.tx.network_id not in (None, expected):
        raise Refusal(3124, message, {"expectedNetwork": kind, "discriminatedType": "transaction"})
    paid = [output["address"] for output in _declared(case)]
    for what, named in (("address", paid), ("rewardAccount", [*case.content.get("withdrawals", ())])):
        foreign = [address for address in named if addresses.network_of(address) not in (None, expected)]
        if foreign:
            data = {"expectedNetwork": kind, "discriminatedType": what, "invalidEntities": foreign}
            raise Refusal(3124, message, data)


def _signatures(case: Case) -> None:
    if case.tx.forged:
        message = "Some signatures are invalid: only the serialised transaction body must be signed."
        raise Refusal(3100, message, {"invalidSignatories": list(case.tx.forged)})
    needed = {who.hash for who in case.needed() if not who.is_script}
    if missing := sorted(needed - case.tx.signers):
        raise Refusal(3101, "Some signatures are missing.", {"missingSignatories": missing})


def _metadata(case: Case) -> None:
    declared, computed = case.tx.declared_metadata, case.tx.metadata
    if declared == computed:
        return
    if declared is None:
        raise Refusal(3105, "The body lacks the hash of the metadata.", {"metadata": {"hash": computed}})
    if computed is None:
        raise Refusal(
            3106, "The body has a metadata hash, but the transaction has no metadata.", {"metadata": {"hash": declared}}
        )
    data = {"provided": {"hash": declared}, "computed": {"hash": computed}}
    raise Refusal(3107, "The hash in the body is not that of the metadata.", data)


def _fee(case: Case) -> None:
    paid = lovelace_of({"value": case.content["fee"]})
    least = parameters.MIN_FEE_CONSTANT + parameters.MIN_FEE_COEFFICIENT * case.tx.size + script_rules.fee(case)
    if paid < least:
        data = {"minimumRequiredFee": parameters.ada(least), "providedFee": parameters.ada(paid)}
        raise Refusal(3122, "Insufficient fee: it must cover the minimum that the protocol requires.", data)


def _declared(case: Case) -> list[Json]:
    """Its outputs, and what it returns of its collateral."""
    returned = [case.content["collateralReturn"]] if "collateralReturn" in case.content else []
    return [*case.content["outputs"], *returned]


def _outputs(case: Case) -> None:
    poor: list[Json] = []
    large: list[Json] = []
    sizes = zip(_declared(case), case.tx.output_sizes, case.tx.value_sizes, strict=True)
    for output, size, value_size in sizes:
        least = (parameters.OUTPUT_OVERHEAD_BYTES + size) * parameters.MIN_UTXO_DEPOSIT_COEFFICIENT
        if lovelace_of(output) < least:
            poor.append({"output": output, "minimumRequiredValue": parameters.ada(least)})
        if value_size > parameters.MAX_VALUE_BYTES:
            large.append(output)
    if poor:
        message = "Some outputs have too little ada for the space that they take."
        raise Refusal(3125, message, {"insufficientlyFundedOutputs": poor})
    if large:
        raise Refusal(3120, "The values of some outputs are too large.", {"excessivelyLargeOutputs": large})


def _rewards(case: Case) -> None:
    incomplete = {}
    for address, value in case.content.get("withdrawals", {}).items():
        account = case.ledger.accounts.get(addresses.reward_credential(address))
        if account is None or account.rewards != value["ada"]["lovelace"]:
            incomplete[address] = value
    if incomplete:
        message = "Withdrawals must be from registered accounts, and withdraw all their rewards."
        raise Refusal(3141, message, {"incompleteWithdrawals": incomplete})


def _forbidden_withdrawals(case: Case) -> None:
    accounts = [addresses.reward_credential(address) for address in case.content.get("withdrawals", {})]
    if forbidden := [who for who in accounts if case.ledger.may_not_withdraw(who)]:
        message = "Accounts of keys without a delegate representative can't withdraw."
        raise Refusal(3150, message, {"marginalizedCredentials": [who.hash for who in forbidden]})


def _delegations(case: Case) -> None:
    """Each certificate must be valid after the ones before it."""
    known = dict.fromkeys(case.ledger.accounts)
    withdrawn = {addresses.reward_credential(address) for address in case.content.get("withdrawals", ())}
    for certificate in case.certificates:
        who = whose(certificate)
        kind = certificate["type"]
        if kind == "stakeCredentialRegistration":
            if who in known:
                data = {"knownCredential": who.hash, "from": who.origin}
                raise Refusal(3145, "The stake credential is already registered.", data)
            known[who] = None
        elif who not in known:
            data = {"unknownCredential": who.hash, "from": who.origin}
            raise Refusal(3146, "The stake credential is not registered.", data)
        if "deposit" in certificate and certificate["deposit"] != parameters.ada(_deposit(case.ledger, certificate)):
            expected = parameters.ada(_deposit(case.ledger, certificate))
            deposits = {"providedDeposit": certificate["deposit"], "expectedDeposit": expected}
            raise Refusal(3151, "The deposit in a certificate differs from the protocol's.", deposits)
        if kind == "stakeCredentialDeregistration":
            _must_be_empty(case, who, withdrawn)
            del known[who]
        _must_know(case, certificate)


def _must_be_empty(case: Case, who: LedgerCredential, withdrawn: set[LedgerCredential]) -> None:
    account = case.ledger.accounts.get(who)
    if account is not None and account.rewards and who not in withdrawn:
        data = {"nonEmptyRewardAccountBalance": parameters.ada(account.rewards)}
        raise Refusal(3147, "The account still has rewards: withdraw them first.", data)


def _must_know(case: Case, certificate: Json) -> None:
    """Refuse a delegation to a pool or, since protocol 10, to a representative that is not registered."""
    pool = certificate.get("stakePool", {}).get("id")
    if pool is not None and pool not in case.ledger.pools:
        raise Refusal(3140, "The stake pool is not registered.", {"unknownStakePool": pool})
    who = certificate.get("delegateRepresentative", {})
    if case.ledger.major < 10 or who.get("type") != "registered":
        return
    if LedgerCredential(who["from"], who["id"]) not in case.ledger.representatives:
        message = "The delegate representative is not registered."
        raise Refusal(3153, message, {"unknownDelegateRepresentative": who})


def _value(case: Case) -> None:
    """The value consumed, including mints, must equal the value produced, including burns."""
    consumed, produced = Counter[Asset](), Counter[Asset]()
    for output in case.spent:
        consumed.update(_quantities(output["value"]))
    for output in case.content["outputs"]:
        produced.update(_quantities(output["value"]))
    for policy, names in case.content.get("mint", {}).items():
        for name, quantity in names.items():
            (consumed if quantity > 0 else produced)[policy, name] += abs(quantity)
    for value in case.content.get("withdrawals", {}).values():
        consumed.update(_quantities(value))
    produced.update(_quantities(case.content["fee"]))
    produced.update(_quantities(case.content.get("treasury", {}).get("donation", {})))
    for certificate in case.certificates:
        match certificate["type"]:
            case "stakeCredentialRegistration":
                produced[_ADA] += parameters.STAKE_DEPOSIT
            case "stakeCredentialDeregistration":
                consumed[_ADA] += _deposit(case.ledger, certificate)
    if +consumed != +produced:
        data = {"valueConsumed": _value_json(consumed), "valueProduced": _value_json(produced)}
        raise Refusal(3123, "In and out value not conserved: the transaction must balance exactly.", data)


def _deposit(ledger: Ledger, certificate: Json) -> int:
    """The deposit that a registration takes, or that a deregistration returns."""
    account = ledger.accounts.get(whose(certificate))
    return parameters.STAKE_DEPOSIT if account is None else account.deposit


def _quantities(value: Json) -> dict[Asset, int]:
    return {(policy, name): quantity for policy, names in value.items() for name, quantity in names.items()}


def _value_json(quantities: Counter[Asset]) -> Json:
    value = parameters.ada(0)
    for (policy, name), quantity in quantities.items():
        value.setdefault(policy, {})[name] = quantity
    return value


_RULES: tuple[Callable[[Case], None], ...] = (
    _era,
    _refuse_unsupported,
    _interval,
    _inputs,
    _size,
    _network,
    script_rules.integrity,
    _signatures,
    script_rules.scripts,
    script_rules.redeemers,
    script_rules.datums,
    _metadata,
    script_rules.collateral,
    script_rules.units,
    script_rules.reference_scripts,
    _fee,
    _outputs,
    _value,
)
# A transaction whose scripts fail withdraws and certifies nothing (Conway rule LEDGER).
_RULES_OF_VALID = (_forbidden_withdrawals, _rewards, _delegations)
