"""Outputs that are not on the chain yet, translated from Blockfrost's form to Ogmios'."""

from typing import Any

import pytest

from api.blockfrost.additional_outputs import MAX_PAIRS, AdditionalOutputs
from api.errors import Refusal

KIND = AdditionalOutputs()
HASH, POLICY, KEY = "ab" * 32, "cd" * 28, "ef" * 28
SOURCE = {"txId": HASH, "index": 1}
PLACE = {"transaction": {"id": HASH}, "index": 1, "address": "addr_test1"}
ADA = {"ada": {"lovelace": 5}}
COINS = {"coins": 5}


def pair(**output: Any) -> list[Any]:
    return [SOURCE, {"address": "addr_test1", "value": COINS, **output}]


@pytest.mark.parametrize(
    ("output", "translated"),
    [
        ({}, {"value": ADA}),
        (
            {"value": {"coins": 5, "assets": {f"{POLICY}.beef": 2**64 - 1, POLICY: 2}}},
            {"value": {**ADA, POLICY: {"beef": 2**64 - 1, "": 2}}},
        ),
        ({"value": {"coins": 5, POLICY.upper(): {"BEEF": 1, "": 0}}}, {"value": {**ADA, POLICY: {"beef": 1, "": 0}}}),
        ({"value": {"coins": 5, "assets": {f"{POLICY}.{'0a' * 32}": 1}}}, {"value": {**ADA, POLICY: {"0a" * 32: 1}}}),
        (
            {"datumHash": None, "datum": "182a", "script": {"plutus:v2": "4e4d"}},
            {"value": ADA, "datum": "182a", "script": {"language": "plutus:v2", "cbor": "4e4d"}},
        ),
        ({"datumHash": HASH}, {"value": ADA, "datumHash": HASH}),
        ({"datum_hash": HASH, "datum": None, "script": None}, {"value": ADA, "datumHash": HASH}),
    ],
)
def test_an_output_is_translated(output: dict[str, object], translated: dict[str, object]) -> None:
    assert KIND.of_json([pair(**output)]) == (PLACE | translated,)


def test_a_native_script_is_translated() -> None:
    """Clause by clause, from `Script[Native]` of Ogmios 5 to `Script<Native>` of Ogmios 6."""
    sent = {"all": [KEY, {"2": [KEY, {"any": []}, KEY]}, {"startsAt": 7}, {"expiresAt": 2**63 - 1}]}
    signature = {"clause": "signature", "from": KEY}
    told = [
        signature,
        {"clause": "some", "atLeast": 2, "from": [signature, {"clause": "any", "from": []}, signature]},
        {"clause": "after", "slot": 7},
        {"clause": "before", "slot": 2**63 - 1},
    ]
    [output] = KIND.of_json([pair(script={"native": sent})])
    assert output["script"] == {"language": "native", "json": {"clause": "all", "from": told}}


VALUE, SCRIPT = "additionalUtxoSet[0][1].value", "additionalUtxoSet[0][1].script"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (pair(datumhash=HASH), "additionalUtxoSet[0][1] is wrong: Object contains unknown field `datumhash`"),
        (pair(value={}), f"{VALUE}.coins is required"),
        (pair(value={"coins": -1}), f"{VALUE}.coins must be an integer"),
        (pair(value={"coins": 2**64}), f"{VALUE}.coins must be an integer"),
        (pair(value={"coins": True}), f"{VALUE}.coins must be an integer"),
        (pair(value={"coins": "5"}), f"{VALUE}.coins must be an integer"),
        (pair(value={"coins": {}}), f"{VALUE}.coins must be an integer"),
        (pair(value={"lovelace": 5, **COINS}), f"{VALUE}.lovelace is unknown"),
        (pair(value={POLICY: 1, **COINS}), f"{VALUE}.{POLICY} must be an object"),
        (pair(value={"assets": None, **COINS}), f"{VALUE}.assets must be an object"),
        (pair(value={"assets": {"lovelace": 1}, **COINS}), f"{VALUE}.assets.lovelace is not an asset"),
        (pair(value={"assets": {f"{POLICY[2:]}.00": 1}, **COINS}), f"{VALUE}.assets.{POLICY[2:]}.00 is not an asset"),
        (pair(value={"assets": {f"{POLICY}00": 1}, **COINS}), f"{VALUE}.assets.{POLICY}00 is not an asset"),
        (pair(value={"assets": {f"{POLICY}.": 1}, **COINS}), f"{VALUE}.assets.{POLICY}. is not an asset"),
        (pair(value={"assets": {f"{POLICY}.0": 1}, **COINS}), f"{VALUE}.assets.{POLICY}.0 is not an asset"),
        (pair(value={"assets": {f"{POLICY}.0g": 1}, **COINS}), f"{VALUE}.assets.{POLICY}.0g is not an asset"),
        (pair(value={"assets": {f"{POLICY}.{'00' * 33}": 1}, **COINS}), f"{VALUE}.assets.{POLICY}.{'00' * 33} is no"),
        (pair(value={"assets": {f"{POLICY}.00": -1}, **COINS}), f"{VALUE}.assets.{POLICY}.00 must be an integer"),
        (
            pair(value={"assets": {f"{POLICY}.aa": 1, f"{POLICY}.AA": 1}, **COINS}),
            f"{VALUE}.assets.{POLICY}.AA is given",
        ),
        (pair(value={"assets": {POLICY: 1}, POLICY: {"": 1}, **COINS}), f"{VALUE}.{POLICY}. is given twice"),
        (pair(value={POLICY: {"xy": 1}, **COINS}), f"{VALUE}.{POLICY}.xy is not an asset name"),
        (pair(datum_hash="ab"), "additionalUtxoSet[0][1].datum_hash is wrong"),
        (pair(datum_hash=f"{HASH}\n"), "additionalUtxoSet[0][1].datum_hash is wrong"),
        (pair(datumHash=HASH, datum_hash=HASH), "additionalUtxoSet[0][1].datum_hash is given beside datumHash"),
        (pair(datumHash=HASH, datum="00"), "additionalUtxoSet[0][1].datum is given beside datumHash"),
        (pair(datum={"int": 1}), "additionalUtxoSet[0][1].datum is wrong"),
        (pair(datum=""), "additionalUtxoSet[0][1].datum is wrong"),
        (pair(script={}), f"{SCRIPT} must have one member"),
        (pair(script={"plutus:v1": "00", "plutus:v2": "00"}), f"{SCRIPT} must have one member"),
        (pair(script={"plutus:v9": "00"}), f"{SCRIPT}.plutus:v9 is unknown"),
        (pair(script={"plutus:v1": "0"}), f"{SCRIPT}.plutus:v1 is wrong"),
        (pair(script={"native": "00"}), f"{SCRIPT}.native is wrong"),
        (pair(script={"native": {"none": []}}), f"{SCRIPT}.native.none is unknown"),
        (pair(script={"native": {"any": [KEY, {"startsAt": -1}]}}), f"{SCRIPT}.native.any[1].startsAt is wrong"),
        ([{"txId": "x", "index": 0}, pair()[1]], "additionalUtxoSet[0][0].txId is wrong"),
        ([{"txId": HASH, "index": 2**16}, pair()[1]], "additionalUtxoSet[0][0].index is wrong"),
        ([{"txId": HASH, "index": 0, "ix": 0}, pair()[1]], "additionalUtxoSet[0][0] is wrong: Object contains unknown"),
        ([SOURCE], "additionalUtxoSet[0] is wrong"),
    ],
)
def test_a_wrong_member_is_refused_by_name(wrong: list[Any], named: str) -> None:
    with pytest.raises(Refusal) as refused:
        KIND.of_json([wrong])
    assert refused.value.message.startswith(named)


@pytest.mark.parametrize("wrong", [{}, "x", 1])
def test_anything_but_a_list_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        KIND.of_json(wrong)


def test_their_number_is_bounded() -> None:
    assert len(KIND.of_json([pair()] * MAX_PAIRS)) == MAX_PAIRS
    with pytest.raises(ValueError, match=r".*"):
        KIND.of_json([pair()] * (MAX_PAIRS + 1))
