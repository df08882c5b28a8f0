"""Refused submissions in the form that clients of Blockfrost parse."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from api.blockfrost import ledger_failures

RECORDED = [
    json.loads(line)["error"]
    for version in (6, 7)
    for line in (Path(__file__).parents[1] / "vectors" / f"answers-ogmios-{version}.jsonl").read_text().splitlines()
    if '"submitTransaction","error"' in line
]
ASSETS = {"ada": {"lovelace": 3}, "ab" * 28: {"6e": 5, "": 1}}


def failure(code: int | None, data: Any) -> str:
    """As cardano-sdk finds it: `BlockfrostTxSubmitProvider`."""
    told = json.loads(ledger_failures.message(code, data, "No."))
    assert (told["tag"], told["message"]) == ("TxSubmitFail", "No.")
    (found,) = told["contents"]["contents"]["contents"]["error"]
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("error", RECORDED, ids=lambda error: str(error["code"]))
def test_every_answer_of_ogmios_has_the_form(error: dict[str, Any]) -> None:
    assert failure(error["code"], error.get("data"))


@pytest.mark.parametrize(
    ("code", "data", "shown"),
    [
        (
            3101,
            {"missingSignatories": ["00" * 28]},
            f'ConwayUtxowFailure (MissingVKeyWitnessesUTXOW (fromList [KeyHash {{unKeyHash = "{"00" * 28}"}}]))',
        ),
        (
            3117,
            {"unknownOutputReferences": [{"transaction": {"id": "ab" * 32}, "index": 1}]},
            f'ConwayUtxowFailure (UtxoFailure (BadInputsUTxO (fromList [TxIn (TxId {{unTxId = SafeHash "{"ab" * 32}"}})'
            " (TxIx {unTxIx = 1})])))",
        ),
        (
            3118,
            {"validityInterval": {"invalidAfter": 5}, "currentSlot": 7},
            "ConwayUtxowFailure (UtxoFailure (OutsideValidityIntervalUTxO (ValidityInterval {invalidBefore = SNothing, "
            "invalidHereafter = SJust (SlotNo 5)}) (SlotNo 7)))",
        ),
        (
            3122,
            {"minimumRequiredFee": {"ada": {"lovelace": 9}}, "providedFee": {"ada": {"lovelace": 8}}},
            "ConwayUtxowFailure (UtxoFailure (FeeTooSmallUTxO (Mismatch {mismatchSupplied = Coin 8, "
            "mismatchExpected = Coin 9})))",
        ),
        (3109, {"missingRedeemers": []}, "ConwayUtxowFailure (MissingRedeemers)"),
        (3118, None, "ConwayUtxowFailure (UtxoFailure (OutsideValidityIntervalUTxO))"),
        (3118, {"validityInterval": []}, "ConwayUtxowFailure (UtxoFailure (OutsideValidityIntervalUTxO))"),
        (3999, None, "No."),
        (None, None, "No."),
    ],
)
def test_a_failure_is_named_as_the_ledger_names_it(code: int | None, data: Any, shown: str) -> None:
    assert failure(code, data) == shown


def test_the_coins_of_an_unbalanced_transaction_are_found() -> None:
    """By the expression of cardano-sdk."""
    shown = failure(3123, {"valueConsumed": ASSETS, "valueProduced": ASSETS | {"ada": {"lovelace": 4}}})
    found = re.search(r"ValueNotConservedUTxO.+Coin (\d+).+Coin (\d+)", shown)
    assert found is not None and found.groups() == ("3", "4")
    policy = f'(PolicyID {{policyID = ScriptHash "{"ab" * 28}"}},fromList [("6e",5),("",1)])'
    assert f"mismatchSupplied = MaryValue (Coin 3) (MultiAsset (fromList [{policy}]))" in shown
