"""Protocol parameters and genesis configurations, with the values of the public networks where they matter."""

from typing import Any

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
RETIREMENT_BOUND_EPOCHS = 18
SECURITY_PARAMETER = 2_160
MIN_FEE_CONSTANT = 155_381
MIN_FEE_COEFFICIENT = 44
MAX_TRANSACTION_BYTES = 16_384
MAX_BLOCK_BODY_BYTES = 90_112
MAX_VALUE_BYTES = 5_000
MIN_UTXO_DEPOSIT_COEFFICIENT = 4_310
OUTPUT_OVERHEAD_BYTES = 160  # added to an output's own bytes for its least lovelace
PROTOCOL_MAJOR = {
    "byron": 1, "shelley": 2, "allegra": 3, "mary": 4, "alonzo": 6, "babbage": 8, "conway": 9, "dijkstra": 12,
}  # fmt: skip
"""The major version with which each era begins. Conway is also 10 and 11."""

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
_COST_MODELS = {"plutus:v1": [205_665, 812, 1, 1, 1_000], "plutus:v2": [205_665, 812, 1, 1, 1_000]}
_COST_MODEL_OF_CONWAY = {"plutus:v3": [100_788, 420, 1, 1, 1_000]}
_REFERENCE_SCRIPTS = {"base": 15.0, "range": 25_600, "multiplier": 1.2}
_UNITS = {"memory": 14_000_000, "cpu": 10_000_000_000}
_BLOCK_UNITS = {"memory": 62_000_000, "cpu": 20_000_000_000}
_PRICES = {"memory": "577/10000", "cpu": "721/10000000"}


def ada(lovelace: int) -> Json:
    return {"ada": {"lovelace": lovelace}}


def versions(eras: tuple[tuple[str, int], ...], forks: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """(major version, first epoch) in order, from the eras of a chain and the forks within them."""
    begun = [(first, PROTOCOL_MAJOR[era]) for era, first in eras] + [(first, major) for major, first in forks]
    return tuple((major, first) for first, major in sorted(begun))


def protocol_parameters(era: str, version: tuple[int, int], major: int | None = None) -> Json:
    """The current parameters, as that version of Ogmios returns them for `queryLedgerState/protocolParameters`.

    `major` is the protocol's version, by default the first of the era.
    """
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
        "stakePoolPledgeInfluence": "3/10",
        "monetaryExpansion": "3/1000",
        "treasuryExpansion": "1/5",
        "minStakePoolCost": ada(POOL_COST),
        "minUtxoDepositConstant": ada(0),
        "minUtxoDepositCoefficient": MIN_UTXO_DEPOSIT_COEFFICIENT,
        "version": {"major": PROTOCOL_MAJOR[era] if major is None else major, "minor": 0},
    }
    if PROTOCOL_MAJOR[era] >= PROTOCOL_MAJOR["alonzo"]:
        parameters |= _alonzo_parameters() | {"maxValueSize": {"bytes": MAX_VALUE_BYTES}}
    if PROTOCOL_MAJOR[era] >= PROTOCOL_MAJOR["conway"]:
        size = "maxReferenceScriptsSizePerTransaction" if version >= (7, 0) else "maxReferenceScriptsSize"
        parameters |= _conway_parameters() | {"minFeeReferenceScripts": _REFERENCE_SCRIPTS, size: {"bytes": 204_800}}
        parameters["plutusCostModels"] = _COST_MODELS | _COST_MODEL_OF_CONWAY
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
                "updatableParameters": _alonzo_parameters() | {"maxValueSize": {"bytes": MAX_VALUE_BYTES}},
            }
        case "conway":
            return _conway(version)
        case "dijkstra" if version >= (7, 0):
            return {
                "era": "dijkstra",
                "maxReferenceScriptsSizePerTransaction": {"bytes": 204_800},
                "maxReferenceScriptsSizePerBlock": {"bytes": 1_048_576},
                "minFeeReferenceScripts": {"range": 25_600, "multiplier": 1.2},
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
            "plutusCostModels": _COST_MODEL_OF_CONWAY,
            "minFeeReferenceScripts": _REFERENCE_SCRIPTS,
        }
    return {
        "era": "conway",
        "constitution": {
            "metadata": {"url": "https://example.org/constitution.txt", "hash": "00" * 32},
            "guardrails": {"hash": "fa24fb305126805cf2164c161d852a0e7330cf988f1fe558cf7d4a64"},
        },
        "constitutionalCommittee": {"members": [], "quorum": "2/3"},
        "updatableParameters": parameters,
    }


def _alonzo_parameters() -> Json:
    return {
        "minUtxoDepositCoefficient": MIN_UTXO_DEPOSIT_COEFFICIENT,
        "collateralPercentage": 150,
        "plutusCostModels": _COST_MODELS,
        "maxCollateralInputs": 3,
        "maxExecutionUnitsPerBlock": _BLOCK_UNITS,
        "maxExecutionUnitsPerTransaction": _UNITS,
        "scriptExecutionPrices": _PRICES,
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
