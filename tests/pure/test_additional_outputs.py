"""Outputs that are not on the chain yet, translated from Blockfrost's form to Ogmios'."""

import pytest

from api.blockfrost.additional_outputs import MOST, AdditionalOutputs

KIND = AdditionalOutputs()
HASH, POLICY = "ab" * 32, "cd" * 28
SOURCE = {"txId": HASH, "index": 1}
PLACE = {"transaction": {"id": HASH}, "index": 1, "address": "addr_test1"}
ADA = {"ada": {"lovelace": 5}}


@pytest.mark.parametrize(
    ("output", "translated"),
    [
        ({"value": {"coins": 5}}, {"value": ADA}),
        ({"value": {"coins": 5, "assets": None}}, None),
        (
            {"value": {"coins": 5, "assets": {f"{POLICY}.beef": 2**64 - 1, POLICY: 2}}},
            {"value": {**ADA, POLICY: {"beef": 2**64 - 1, "": 2}}},
        ),
        ({"value": {"coins": 5, POLICY: {"beef": 1}}}, {"value": {**ADA, POLICY: {"beef": 1}}}),
        (
            {"value": {"coins": 5}, "datumHash": None, "datum": "182a", "script": {"plutus:v2": "4e4d"}},
            {"value": ADA, "datum": "182a", "script": {"language": "plutus:v2", "cbor": "4e4d"}},
        ),
        ({"value": {"coins": 5}, "datumHash": HASH}, {"value": ADA, "datumHash": HASH}),
        ({"value": {}}, None),
        ({"value": {"coins": -1}}, None),
        ({"value": {"coins": {}}}, None),
        ({"value": {"coins": 5, POLICY: 1}}, None),
        ({"value": {"coins": 5}, "script": {"native": {"any": []}}}, None),
    ],
)
def test_an_output_is_translated_or_refused(output: dict[str, object], translated: dict[str, object] | None) -> None:
    pairs = [[SOURCE, {"address": "addr_test1", **output}]]
    if translated is None:
        with pytest.raises(ValueError, match=r".*"):
            KIND.of_json(pairs)
    else:
        assert KIND.of_json(pairs) == (PLACE | translated,)


@pytest.mark.parametrize("wrong", [{}, [SOURCE], [[SOURCE]], [[{"txId": "x", "index": 0}, {}]], "x"])
def test_anything_but_a_list_of_pairs_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        KIND.of_json(wrong)


def test_their_number_is_bounded() -> None:
    pair = [SOURCE, {"address": "addr_test1", "value": {"coins": 5}}]
    assert len(KIND.of_json([pair] * MOST)) == MOST
    with pytest.raises(ValueError, match=r".*"):
        KIND.of_json([pair] * (MOST + 1))
