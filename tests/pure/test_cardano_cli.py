"""Protocol parameters in the names of cardano-cli: complete, and exact to the last digit."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from api.chain import cardano_cli
from devnet.parameters import protocol_parameters
from indexer.ledger import answers

Json = dict[str, Any]


def named(told: Json) -> Json:
    """The parameters in the names of cardano-cli, with their digits."""
    stored = answers.in_names_of_7(msgspec.Raw(json.dumps(told).encode()))
    shown: Json = json.loads(bytes(cardano_cli.parameters(stored)), parse_float=Decimal)
    return shown


# From `cardano-cli conway query protocol-parameters`.
CONWAY = {
    "collateralPercentage", "committeeMaxTermLength", "committeeMinSize", "costModels", "dRepActivity", "dRepDeposit",
    "dRepVotingThresholds", "executionUnitPrices", "govActionDeposit", "govActionLifetime", "maxBlockBodySize",
    "maxBlockExecutionUnits", "maxBlockHeaderSize", "maxCollateralInputs", "maxTxExecutionUnits", "maxTxSize",
    "maxValueSize", "minFeeRefScriptCostPerByte", "minPoolCost", "monetaryExpansion", "poolPledgeInfluence",
    "poolRetireMaxEpoch", "poolVotingThresholds", "protocolVersion", "stakeAddressDeposit", "stakePoolDeposit",
    "stakePoolTargetNum", "treasuryCut", "txFeeFixed", "txFeePerByte", "utxoCostPerByte",
}  # fmt: skip


@pytest.mark.parametrize("version", [(6, 11), (7, 0)])
def test_conway_has_every_name_of_cardano_cli(version: tuple[int, int]) -> None:
    shown = named(protocol_parameters("conway", version, major=10))
    assert shown.keys() == CONWAY
    assert (shown["txFeePerByte"], shown["txFeeFixed"], shown["stakePoolDeposit"]) == (44, 155_381, 500_000_000)
    assert shown["executionUnitPrices"] == {"priceMemory": Decimal("0.0577"), "priceSteps": Decimal("0.0000721")}
    assert shown["maxTxExecutionUnits"] == {"memory": 14_000_000, "steps": 10_000_000_000}
    assert shown["costModels"].keys() == {"PlutusV1", "PlutusV2", "PlutusV3"}
    assert shown["minFeeRefScriptCostPerByte"] == 15
    assert shown["protocolVersion"] == {"major": 10, "minor": 0}
    assert shown["poolVotingThresholds"].keys() == {
        "committeeNoConfidence", "committeeNormal", "hardForkInitiation", "motionNoConfidence", "ppSecurityGroup",
    }  # fmt: skip
    thresholds = shown["dRepVotingThresholds"]
    assert (thresholds["updateToConstitution"], thresholds["ppGovGroup"]) == (Decimal("0.75"), Decimal("0.75"))
    assert (thresholds["committeeNormal"], thresholds["committeeNoConfidence"]) == (Decimal("0.67"), Decimal("0.6"))


@pytest.mark.parametrize("version", [(6, 11), (6, 14), (7, 0)])
def test_both_dialects_are_stored_in_the_names_of_ogmios_7(version: tuple[int, int]) -> None:
    told = msgspec.Raw(json.dumps(protocol_parameters("conway", version)).encode())
    assert json.loads(answers.in_names_of_7(told)) == protocol_parameters("conway", (7, 0))


def test_shelley_lacks_what_later_eras_have() -> None:
    shown = named(protocol_parameters("shelley", (7, 0)))
    assert shown.keys() < CONWAY
    assert "utxoCostPerByte" not in shown


def test_a_ratio_keeps_every_digit_also_without_a_finite_decimal_form() -> None:
    told = protocol_parameters("conway", (7, 0)) | {
        "monetaryExpansion": "1/3",
        "treasuryExpansion": "12345678901234567890123/100000000000000000000000",
    }
    shown = named(told)
    assert shown["monetaryExpansion"] == {"numerator": 1, "denominator": 3}
    assert shown["treasuryCut"] == Decimal("0.12345678901234567890123")
