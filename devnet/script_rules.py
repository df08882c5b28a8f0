"""The ledger's rules for scripts, redeemers, datums and collateral (rules UTXO and UTXOW), and Ogmios' errors for them.

Whether Plutus scripts succeed is not decided here, but by `devnet.evaluation`.
"""

from fractions import Fraction
from typing import Any

import cbor2

from devnet import addresses, parameters
from devnet.case import Case, is_plutus, language_no
from devnet.ledger import lovelace_of
from devnet.refusal import Refusal
from devnet.submitted import Submitted

Json = dict[str, Any]

_NO_REDEEMERS = b"\xa0"


def scripts(case: Case) -> None:
    """Scripts are witnesses, or in the outputs that are spent or read. Native ones are run here."""
    needed = {purpose.script for purpose in case.purposes}
    witnessed = needed - {hash_ for hash_, _ in case.reference_scripts}
    if missing := sorted(witnessed - case.tx.scripts.keys()):
        raise Refusal(3102, "Some script witnesses are missing.", {"missingScripts": missing})
    if extraneous := sorted(case.tx.scripts.keys() - witnessed):
        raise Refusal(3104, "The transaction has scripts that it does not need.", {"extraneousScripts": extraneous})
    native = {hash_: case.scripts[hash_]["json"] for hash_ in needed if not is_plutus(case.scripts[hash_])}
    if failing := sorted(hash_ for hash_, script in native.items() if not _agrees(script, case.tx)):
        raise Refusal(3103, "Some native scripts fail.", {"failingNativeScripts": failing})


def redeemers(case: Case) -> None:
    """Each Plutus script that must approve something has a redeemer, and each redeemer has such a script."""
    expected = {purpose.pointer: purpose for purpose in case.plutus_purposes}
    given = {redeemer.pointer for redeemer in case.tx.redeemers}
    if extraneous := [pointer for pointer in sorted(given) if pointer not in expected]:
        shown = [{"purpose": purpose, "index": index} for purpose, index in extraneous]
        raise Refusal(3110, "Some redeemers point to no Plutus script.", {"extraneousRedeemers": shown})
    if missing := [purpose.shown for pointer, purpose in expected.items() if pointer not in given]:
        raise Refusal(3109, "Some Plutus scripts have no redeemer.", {"missingRedeemers": missing})


def datums(case: Case) -> None:
    """Scripts of PlutusV1 and V2 need the datums of the outputs that they guard; V3 can do without (CIP-69)."""
    orphans, needed = [], set()
    for purpose in case.plutus_purposes:
        if purpose.output is None or "datum" in purpose.output:
            continue
        if "datumHash" in purpose.output:
            needed.add(purpose.output["datumHash"])
        elif language_no(case.scripts[purpose.script]) < 3:
            orphans.append(purpose.shown["outputReference"])
    if orphans:
        raise Refusal(3114, "Outputs without datums are locked by Plutus scripts.", {"orphanScriptInputs": orphans})
    given: set[str] = set(case.content.get("datums", ()))
    if missing := sorted(needed - given):
        raise Refusal(3111, "The datums of some spent outputs are missing.", {"missingDatums": missing})
    declared = [*case.content["outputs"], *case.outputs("references")]
    allowed = needed | {output["datumHash"] for output in declared if "datumHash" in output}
    if extraneous := sorted(given - allowed):
        message = "Some datums belong to no output that the transaction spends, reads or makes."
        raise Refusal(3112, message, {"extraneousDatums": extraneous})


def integrity(case: Case) -> None:
    """The body states the hash of the redeemers, the datums and the cost models."""
    languages = {language_no(case.scripts[purpose.script]) for purpose in case.plutus_purposes}
    models = parameters.cost_models(case.ledger.major)
    if unknown := sorted(f"plutus:v{no}" for no in languages if f"plutus:v{no}" not in models):
        raise Refusal(3115, "This protocol has no cost models of some languages.", {"missingCostModels": unknown})
    computed = integrity_hash(case.tx, {no: models[f"plutus:v{no}"] for no in languages})
    stated = case.content.get("scriptIntegrityHash")
    if stated != computed:
        data = {"providedScriptIntegrity": stated, "computedScriptIntegrity": computed}
        raise Refusal(3113, "The hash of script integrity in the body is not that of its parts.", data)


def integrity_hash(tx: Submitted, models: dict[int, list[int]]) -> str | None:
    """The hash for cost models by version of Plutus: `script_data_hash` in the CDDL. None without anything to hash."""
    if tx.redeemers_cbor is None and tx.datums_cbor is None and not models:
        return None
    views = sorted((_view(version, costs) for version, costs in models.items()), key=lambda view: (len(view[0]), view))
    content = (tx.redeemers_cbor or _NO_REDEEMERS) + (tx.datums_cbor or b"")
    return addresses.blake2b_256(content + bytes([0xA0 | len(views)]) + b"".join(key + value for key, value in views))


def _view(version: int, costs: list[int]) -> tuple[bytes, bytes]:
    """A language and its cost model. PlutusV1 is encoded twice, with an indefinite list: a fault that became a rule."""
    if version > 1:
        return bytes([version - 1]), cbor2.dumps(costs)
    return b"\x41\x00", cbor2.dumps(b"\x9f" + b"".join(map(cbor2.dumps, costs)) + b"\xff")


def collateral(case: Case) -> None:
    """A transaction with redeemers has collateral, in ada and at keys, for a share of its fee."""
    if not case.tx.redeemers:
        return
    inputs = case.content.get("collaterals", [])
    if not inputs:
        raise Refusal(3132, "A transaction with Plutus scripts needs collateral.")
    if len(inputs) > parameters.MAX_COLLATERAL_INPUTS:
        data: Json = {
            "maximumCollateralInputs": parameters.MAX_COLLATERAL_INPUTS,
            "countedCollateralInputs": len(inputs),
        }
        raise Refusal(3131, "Too many inputs are collateral.", data)
    held = case.outputs("collaterals")
    if locked := [
        reference
        for reference, output in zip(inputs, held, strict=True)
        if addresses.payment_part(output["address"]).is_script
    ]:
        raise Refusal(3129, "Collateral is locked by scripts.", {"unsuitableCollateralInputs": locked})
    returned = case.content.get("collateralReturn")
    balance = _balance([output["value"] for output in held], returned["value"] if returned else {})
    if any(quantity for policy, names in balance.items() for quantity in names.values() if policy != "ada"):
        raise Refusal(3133, "Collateral must be in ada.", {"unsuitableCollateralValue": balance})
    lovelace, fee = balance["ada"]["lovelace"], lovelace_of({"value": case.content["fee"]})
    if lovelace * 100 < fee * parameters.COLLATERAL_PERCENTAGE:
        least = -(-fee * parameters.COLLATERAL_PERCENTAGE // 100)
        data = {"providedCollateral": parameters.ada(lovelace), "minimumRequiredCollateral": parameters.ada(least)}
        raise Refusal(3128, "The collateral is too small for the fee.", data)
    stated = case.content.get("totalCollateral", parameters.ada(lovelace))
    if stated != parameters.ada(lovelace):
        data = {"declaredTotalCollateral": stated, "computedTotalCollateral": parameters.ada(lovelace)}
        raise Refusal(3135, "The stated total of collateral is wrong.", data)


def _balance(values: list[Json], returned: Json) -> Json:
    balance: Json = parameters.ada(0)
    for sign, value in [*((1, value) for value in values), (-1, returned)]:
        for policy, names in value.items():
            kept = balance.setdefault(policy, {})
            for name, quantity in names.items():
                kept[name] = kept.get(name, 0) + sign * quantity
    return {policy: names for policy, names in balance.items() if policy == "ada" or any(names.values())}


def units(case: Case) -> None:
    """The redeemers' units together must not exceed those that a transaction may use."""
    maximum = parameters.MAX_TRANSACTION_UNITS
    provided = {name: sum(getattr(redeemer, name) for redeemer in case.tx.redeemers) for name in ("memory", "cpu")}
    if any(provided[name] > maximum[name] for name in maximum):
        data = {"providedExecutionUnits": provided, "maximumExecutionUnits": maximum}
        raise Refusal(3134, "The scripts may use more execution units than the protocol allows.", data)


def fee(case: Case) -> int:
    """The fee for execution units and for the scripts of outputs that the transaction spends or reads."""
    prices = parameters.UNIT_PRICES
    used = sum(
        (Fraction(prices[name]) * getattr(redeemer, name) for redeemer in case.tx.redeemers for name in prices),
        Fraction(0),
    )
    return -(-used.numerator // used.denominator) + _fee_of_references(reference_bytes(case))


def reference_bytes(case: Case) -> int:
    return sum(len(script["cbor"]) // 2 for _, script in case.reference_scripts)


def reference_scripts(case: Case) -> None:
    if (size := reference_bytes(case)) > parameters.MAX_REFERENCE_SCRIPTS_BYTES:
        data = {
            "measuredReferenceScriptsSize": {"bytes": size},
            "maximumReferenceScriptsSize": {"bytes": parameters.MAX_REFERENCE_SCRIPTS_BYTES},
        }
        raise Refusal(3166, "The scripts of outputs that the transaction spends or reads are too large.", data)


def _fee_of_references(size: int) -> int:
    """Each range of bytes is dearer than the one before: `tierRefScriptFee` in the ledger's Conway/Tx.hs."""
    price, total = Fraction(parameters.REFERENCE_SCRIPT_PRICE), Fraction(0)
    while size > 0:
        total += price * min(size, parameters.REFERENCE_SCRIPT_RANGE_BYTES)
        size -= parameters.REFERENCE_SCRIPT_RANGE_BYTES
        price *= parameters.REFERENCE_SCRIPT_MULTIPLIER
    return int(total)


def _agrees(script: Json, tx: Submitted) -> bool:
    """Whether a native script allows a transaction, by its signatures and its validity interval."""
    match script:
        case {"clause": "signature", "from": key}:
            return key in tx.signers
        case {"clause": "all", "from": parts}:
            return all(_agrees(part, tx) for part in parts)
        case {"clause": "any", "from": parts}:
            return any(_agrees(part, tx) for part in parts)
        case {"clause": "some", "from": parts, "atLeast": least}:
            return sum(_agrees(part, tx) for part in parts) >= int(least)
        case {"clause": "after", "slot": slot}:
            return tx.invalid_before is not None and tx.invalid_before >= int(slot)
        case {"slot": slot}:
            return tx.invalid_after is not None and tx.invalid_after <= int(slot)
    raise AssertionError(f"no clause of a native script: {script}")
