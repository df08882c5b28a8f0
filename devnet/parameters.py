"""Protocol parameters and genesis configurations, with the values of the public networks where they matter."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from devnet.blocks import Genesis
from devnet.networks import Network

Json = dict[str, Any]

MAX_SUPPLY = 45_000_000_000_000_000
STAKE_DEPOSIT = 2_000_000
POOL_DEPOSIT = 500_000_000
DREP_DEPOSIT = 500_000_000
PROPOSAL_DEPOSIT = 100_000_000_000
DREP_ACTIVITY_EPOCHS = 20
PROPOSAL_LIFETIME_EPOCHS = 3
POOL_COST = 170_000_000
DESIRED_POOLS = 500
PLEDGE_INFLUENCE = "3/10"
RETIREMENT_BOUND_EPOCHS = 18
SECURITY_PARAMETER = 2_160
MIN_FEE_CONSTANT = 155_381
MIN_FEE_COEFFICIENT = 44
MAX_TRANSACTION_BYTES = 16_384
MAX_BLOCK_BODY_BYTES = 90_112
MAX_VALUE_BYTES = 5_000
MIN_UTXO_DEPOSIT_COEFFICIENT = 4_310
OUTPUT_OVERHEAD_BYTES = 160  # added to an output's own bytes for its least lovelace
MAX_TRANSACTION_UNITS = {"memory": 14_000_000, "cpu": 10_000_000_000}
UNIT_PRICES = {"memory": "577/10000", "cpu": "721/10000000"}
MAX_COLLATERAL_INPUTS = 3
COLLATERAL_PERCENTAGE = 150
MAX_REFERENCE_SCRIPTS_BYTES = 204_800
REFERENCE_SCRIPT_PRICE = 15  # lovelace per byte, in the first range
REFERENCE_SCRIPT_RANGE_BYTES = 25_600
REFERENCE_SCRIPT_MULTIPLIER = Fraction(6, 5)
PROTOCOL_MAJOR = {
    "byron": 1, "shelley": 2, "allegra": 3, "mary": 4, "alonzo": 6, "babbage": 8, "conway": 9, "dijkstra": 12,
}  # fmt: skip
"""The major version with which each era begins. Conway is also 10 and 11."""

CONSTITUTION = {
    "metadata": {"url": "https://example.org/constitution.txt", "hash": "00" * 32},
    "guardrails": {"hash": "fa24fb305126805cf2164c161d852a0e7330cf988f1fe558cf7d4a64"},
}
COMMITTEE_QUORUM = "2/3"

_POOL_THRESHOLDS = {
    "noConfidence": "51/100",
    "constitutionalCommittee": {"default": "51/100", "stateOfNoConfidence": "51/100"},
    "hardForkInitiation": "51/100",
    "protocolParametersUpdate": {"security": "51/100"},
}
_DREP_THRESHOLDS = {
    "noConfidence": "67/100",
    "constitution": "3/4",
    "constitutionalCommittee": {"default": "67/100", "stateOfNoConfidence": "3/5"},
    "hardForkInitiation": "3/5",
    "protocolParametersUpdate": {
        "network": "67/100", "economic": "67/100", "technical": "67/100", "governance": "3/4",
    },
    "treasuryWithdrawals": "67/100",
}  # fmt: skip
# The cost models of mainnet with protocols 10 and 11, by major version: those of the epoch 544, and those of the
# governance action gov_action1eqhnsdyf3exhp5mqt7sdjtl7xy69wqg8tvg854psns2jt72cra3qqrcnr8r.
_COST_MODELS = msgspec.json.decode(
    (Path(__file__).parent / "cost_models.json").read_bytes(), type=dict[int, dict[str, list[int]]]
)
_COSTS_OF_PROTOCOL_9 = 251  # of PlutusV3, before its functions on bits
_BLOCK_UNITS = {"memory": 62_000_000, "cpu": 20_000_000_000}
_REFERENCE_SCRIPTS = {
    "base": float(REFERENCE_SCRIPT_PRICE),
    "range": REFERENCE_SCRIPT_RANGE_BYTES,
    "multiplier": float(REFERENCE_SCRIPT_MULTIPLIER),
}


def ada(lovelace: int) -> Json:
    return {"ada": {"lovelace": lovelace}}


def cost_models(major: int) -> dict[str, list[int]]:
    """The cost models of a protocol version by language, in the form of their list in updates.

    Their values changed with protocols 9, 10 and 11. Earlier protocols have here those of protocol 9.
    """
    models = _COST_MODELS[11 if major >= 11 else 10]
    languages = 3 if major >= 9 else 2 if major >= 7 else 1
    costs = {f"plutus:v{no}": models[f"plutus:v{no}"] for no in range(1, languages + 1)}
    return costs | {"plutus:v3": costs["plutus:v3"][:_COSTS_OF_PROTOCOL_9]} if major == 9 else costs


def versions(eras: tuple[tuple[str, int], ...], forks: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """(major version, first epoch) in order, from the eras of a chain and the forks within them."""
    begun = [(first, PROTOCOL_MAJOR[era]) for era, first in eras] + [(first, major) for major, first in forks]
    return tuple((major, first) for first, major in sorted(begun))


def protocol_parameters(era: str, version: tuple[int, int], major: int | None = None) -> Json:
    """The current parameters, as that version of Ogmios returns them for `queryLedgerState/protocolParameters`.

    `major` is the protocol's version, by default the first of the era.
    """
    major = PROTOCOL_MAJOR[era] if major is None else major
    parameters: Json = {
        "minFeeCoefficient": MIN_FEE_COEFFICIENT,
        "minFeeConstant": ada(MIN_FEE_CONSTANT),
        "maxBlockBodySize": {"bytes": MAX_BLOCK_BODY_BYTES},
        "maxBlockHeaderSize": {"bytes": 1_100},
        "maxTransactionSize": {"bytes": MAX_TRANSACTION_BYTES},
        "stakeCredentialDeposit": ada(STAKE_DEPOSIT),
        "stakePoolDeposit": ada(POOL_DEPOSIT),
        "stakePoolRetirementEpochBound": RETIREMENT_BOUND_EPOCHS,
        "desiredNumberOfStakePools": DESIRED_POOLS,
        "stakePoolPledgeInfluence": PLEDGE_INFLUENCE,
        "monetaryExpansion": "3/1000",
        "treasuryExpansion": "1/5",
        "minStakePoolCost": ada(POOL_COST),
        "minUtxoDepositConstant": ada(0),
        "minUtxoDepositCoefficient": MIN_UTXO_DEPOSIT_COEFFICIENT,
        "version": {"major": major, "minor": 0},
    }
    if PROTOCOL_MAJOR[era] >= PROTOCOL_MAJOR["alonzo"]:
        parameters |= _alonzo_parameters(major) | {"maxValueSize": {"bytes": MAX_VALUE_BYTES}}
    if PROTOCOL_MAJOR[era] >= PROTOCOL_MAJOR["conway"]:
        size = "maxReferenceScriptsSizePerTransaction" if version >= (7, 0) else "maxReferenceScriptsSize"
        parameters |= _conway_parameters()
        parameters |= {"minFeeReferenceScripts": _REFERENCE_SCRIPTS, size: {"bytes": MAX_REFERENCE_SCRIPTS_BYTES}}
    return parameters


def genesis_configuration(era: str, network: Network, genesis: Genesis, version: tuple[int, int]) -> Json | None:
    """The genesis configuration of an era; None if that version of Ogmios has none for it."""
    match era:
        case "byron":
            return _byron(network, genesis)
        case "shelley":
            return _shelley(network, genesis, version)
        case "alonzo":
            return {
                "era": "alonzo",
                "updatableParameters": _alonzo_parameters(PROTOCOL_MAJOR["alonzo"])
                | {"maxValueSize": {"bytes": MAX_VALUE_BYTES}},
            }
        case "conway":
            return _conway(version)
        case "dijkstra" if version >= (7, 0):
            return {
                "era": "dijkstra",
                "maxReferenceScriptsSizePerTransaction": {"bytes": MAX_REFERENCE_SCRIPTS_BYTES},
                "maxReferenceScriptsSizePerBlock": {"bytes": 1_048_576},
                "minFeeReferenceScripts": {"range": REFERENCE_SCRIPT_RANGE_BYTES, "multiplier": 1.2},
            }
        case _:
            return None


def _byron(network: Network, genesis: Genesis) -> Json:
    return {
        "era": "byron",
        "genesisKeyHashes": [],
        "genesisDelegations": {},
        "startTime": network.start_time.isoformat().replace("+00:00", "Z"),
        "initialFunds": {address: ada(lovelace) for address, lovelace in genesis.byron_funds.items()},
        "initialVouchers": {key: ada(lovelace) for key, lovelace in genesis.byron_vouchers.items()},
        "securityParameter": SECURITY_PARAMETER,
        "networkMagic": network.magic,
        "updatableParameters": {
            "maxBlockBodySize": {"bytes": 2_000_000},
            "maxTransactionSize": {"bytes": 4_096},
            "slotDuration": 20_000,
            "minFeeCoefficient": MIN_FEE_COEFFICIENT,
            "minFeeConstant": ada(MIN_FEE_CONSTANT),
        },
    }


def _shelley(network: Network, genesis: Genesis, version: tuple[int, int]) -> Json:
    return {
        "era": "shelley",
        "startTime": network.start_time.isoformat().replace("+00:00", "Z"),
        "networkMagic": network.magic,
        "network": network.kind,
        "activeSlotsCoefficient": "1/20",
        "securityParameter": SECURITY_PARAMETER,
        "epochLength": network.epoch_slots,
        "slotsPerKesPeriod": 129_600,
        "maxKesEvolutions": 62,
        "slotLength": {"milliseconds": 1_000},
        "updateQuorum": 5,
        "maxLovelaceSupply": MAX_SUPPLY,
        "initialParameters": protocol_parameters("shelley", version),
        "initialDelegates": [],
        "initialFunds": {address: ada(lovelace) for address, lovelace in genesis.shelley_funds.items()},
        "initialStakePools": {"stakePools": {}, "delegators": {}},
    }


def _conway(version: tuple[int, int]) -> Json:
    parameters = _conway_parameters()
    if version >= (7, 0):
        parameters |= {
            "plutusCostModels": {"plutus:v3": cost_models(9)["plutus:v3"]},
            "minFeeReferenceScripts": _REFERENCE_SCRIPTS,
        }
    return {
        "era": "conway",
        "constitution": CONSTITUTION,
        "constitutionalCommittee": {"members": [], "quorum": COMMITTEE_QUORUM},
        "updatableParameters": parameters,
    }


def _alonzo_parameters(major: int) -> Json:
    return {
        "minUtxoDepositCoefficient": MIN_UTXO_DEPOSIT_COEFFICIENT,
        "collateralPercentage": COLLATERAL_PERCENTAGE,
        "plutusCostModels": cost_models(major),
        "maxCollateralInputs": MAX_COLLATERAL_INPUTS,
        "maxExecutionUnitsPerBlock": _BLOCK_UNITS,
        "maxExecutionUnitsPerTransaction": MAX_TRANSACTION_UNITS,
        "scriptExecutionPrices": UNIT_PRICES,
    }


def _conway_parameters() -> Json:
    return {
        "stakePoolVotingThresholds": _POOL_THRESHOLDS,
        "delegateRepresentativeVotingThresholds": _DREP_THRESHOLDS,
        "constitutionalCommitteeMinSize": 3,
        "constitutionalCommitteeMaxTermLength": 365,
        "governanceActionLifetime": PROPOSAL_LIFETIME_EPOCHS,
        "governanceActionDeposit": ada(PROPOSAL_DEPOSIT),
        "delegateRepresentativeDeposit": ada(DREP_DEPOSIT),
        "delegateRepresentativeMaxIdleTime": DREP_ACTIVITY_EPOCHS,
    }
