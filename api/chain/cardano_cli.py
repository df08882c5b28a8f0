"""Protocol parameters under the names of `cardano-cli query protocol-parameters`, from those of Ogmios 7. Pure.

Numbers stay exact: a ratio becomes a decimal number with all its digits, or an object if that number would be infinite,
as the ledger's own JSON does (cardano-ledger, `BoundedRational`).
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec

from api.chain.pools import decimal_places, show_ratio

Json = dict[str, Any]


def parameters(ogmios: bytes) -> msgspec.Raw:
    """The parameters as JSON. A parameter that has no name there is left out."""
    told = _decode(ogmios)
    named = {cli: show(told[name]) for name, (cli, show) in _NAMES.items() if name in told}
    if told["version"]["major"] >= _BABBAGE and "minUtxoDepositCoefficient" in told:
        named["utxoCostPerByte"] = told["minUtxoDepositCoefficient"]
    return msgspec.Raw(msgspec.json.encode(dict(sorted(named.items()))))


def _same(value: Any) -> Any:
    return value


def _lovelace(value: Json) -> int:
    lovelace: int = value["ada"]["lovelace"]
    return lovelace


def _bytes(value: Json) -> int:
    size: int = value["bytes"]
    return size


def _exact(ratio: str | int | Decimal) -> Any:
    """A ratio such as `577/10000`, or a number."""
    exact = Fraction(ratio)
    if decimal_places(exact) is None:
        return {"numerator": exact.numerator, "denominator": exact.denominator}
    return show_ratio(exact)


def _units(value: Json) -> Json:
    return {"memory": value["memory"], "steps": value["cpu"]}


def _prices(value: Json) -> Json:
    return {"priceMemory": _exact(value["memory"]), "priceSteps": _exact(value["cpu"])}


def _cost_models(value: Json) -> Json:
    """`plutus:v1` is `PlutusV1`."""
    return {name.replace("plutus:v", "PlutusV"): model for name, model in value.items()}


def _entropy(value: str) -> str | None:
    return None if value == "neutral" else value


def _reference_scripts(value: Json) -> Any:
    return _exact(value["base"])


def _pool_thresholds(value: Json) -> Json:
    return _thresholds(value) | {"ppSecurityGroup": _exact(value["protocolParametersUpdate"]["security"])}


def _representative_thresholds(value: Json) -> Json:
    updates = value["protocolParametersUpdate"]
    return _thresholds(value) | {
        "ppEconomicGroup": _exact(updates["economic"]),
        "ppGovGroup": _exact(updates["governance"]),
        "ppNetworkGroup": _exact(updates["network"]),
        "ppTechnicalGroup": _exact(updates["technical"]),
        "treasuryWithdrawal": _exact(value["treasuryWithdrawals"]),
        "updateToConstitution": _exact(value["constitution"]),
    }


def _thresholds(value: Json) -> Json:
    """Those that both pools and representatives have."""
    committee = value["constitutionalCommittee"]
    return {
        "committeeNoConfidence": _exact(committee["stateOfNoConfidence"]),
        "committeeNormal": _exact(committee["default"]),
        "hardForkInitiation": _exact(value["hardForkInitiation"]),
        "motionNoConfidence": _exact(value["noConfidence"]),
    }


_BABBAGE = 7  # the first major version whose coefficient is per byte
_decode = msgspec.json.Decoder(Json, float_hook=Decimal).decode
_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "collateralPercentage": ("collateralPercentage", _same),
    "constitutionalCommitteeMaxTermLength": ("committeeMaxTermLength", _same),
    "constitutionalCommitteeMinSize": ("committeeMinSize", _same),
    "delegateRepresentativeDeposit": ("dRepDeposit", _lovelace),
    "delegateRepresentativeMaxIdleTime": ("dRepActivity", _same),
    "delegateRepresentativeVotingThresholds": ("dRepVotingThresholds", _representative_thresholds),
    "desiredNumberOfStakePools": ("stakePoolTargetNum", _same),
    "extraEntropy": ("extraPraosEntropy", _entropy),
    "federatedBlockProductionRatio": ("decentralization", _exact),
    "governanceActionDeposit": ("govActionDeposit", _lovelace),
    "governanceActionLifetime": ("govActionLifetime", _same),
    "maxBlockBodySize": ("maxBlockBodySize", _bytes),
    "maxBlockHeaderSize": ("maxBlockHeaderSize", _bytes),
    "maxCollateralInputs": ("maxCollateralInputs", _same),
    "maxExecutionUnitsPerBlock": ("maxBlockExecutionUnits", _units),
    "maxExecutionUnitsPerTransaction": ("maxTxExecutionUnits", _units),
    "maxTransactionSize": ("maxTxSize", _bytes),
    "maxValueSize": ("maxValueSize", _bytes),
    "minFeeCoefficient": ("txFeePerByte", _same),
    "minFeeConstant": ("txFeeFixed", _lovelace),
    "minFeeReferenceScripts": ("minFeeRefScriptCostPerByte", _reference_scripts),
    "minStakePoolCost": ("minPoolCost", _lovelace),
    "monetaryExpansion": ("monetaryExpansion", _exact),
    "plutusCostModels": ("costModels", _cost_models),
    "scriptExecutionPrices": ("executionUnitPrices", _prices),
    "stakeCredentialDeposit": ("stakeAddressDeposit", _lovelace),
    "stakePoolDeposit": ("stakePoolDeposit", _lovelace),
    "stakePoolPledgeInfluence": ("poolPledgeInfluence", _exact),
    "stakePoolRetirementEpochBound": ("poolRetireMaxEpoch", _same),
    "stakePoolVotingThresholds": ("poolVotingThresholds", _pool_thresholds),
    "treasuryExpansion": ("treasuryCut", _exact),
    "version": ("protocolVersion", _same),
}
"""The parameters of Ogmios, each with its name in cardano-cli and the conversion of its value."""
