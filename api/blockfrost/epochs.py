"""`/epochs`: an epoch, those around it, its blocks, and its protocol parameters."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from api.ask import ChainAsk
from api.blockfrost import cost_models
from api.blockfrost.paging import MAX_NUMBER, InPath, Page, UnorderedPage
from api.chain import epochs, network
from api.chain.epochs import EpochKind, EpochQuestion
from api.chain.pools import show_ratio
from shared import sql
from shared.network import Network
from shared.sql import Connection

Json = dict[str, Any]


class EpochNumberKind(EpochKind):
    """An epoch, with the error in Blockfrost's words."""

    def __init__(self) -> None:
        super().__init__()
        self.message = InPath("epoch_number").message


class OneEpoch(EpochQuestion, frozen=True, kw_only=True):
    """An epoch."""

    epoch: Annotated[int | None, EpochNumberKind()]


class EpochBlocks(Page, frozen=True, kw_only=True):
    """A page of an epoch's blocks."""

    epoch: Annotated[int | None, EpochNumberKind()]


class Neighbours(UnorderedPage, frozen=True, kw_only=True):
    """A page of the epochs before or after an epoch."""

    epoch: Annotated[int | None, EpochNumberKind()]


class Epoch(msgspec.Struct, frozen=True):
    """An epoch. Times are in seconds since 1970, `end_time` is the start of the next epoch."""

    epoch: int
    start_time: int
    end_time: int
    first_block_time: int
    last_block_time: int
    block_count: int
    tx_count: int
    output: str
    fees: str
    active_stake: str | None


_hashes = {order: sql.beside(__file__).values("hashes", bytes, order=order) for order in ("asc", "desc")}


async def info(ask: ChainAsk[OneEpoch]) -> Epoch:
    """Get an epoch by number, or the latest one."""
    async with ask.snapshot() as db:
        [shown] = await _shown(db, ask.network, [await _one(db, ask, ask.question.epoch)])
    return shown


async def following(ask: ChainAsk[Neighbours]) -> list[Epoch]:
    """List the epochs after an epoch, nearest first. An epoch without blocks is left out, but counts for pages."""
    asked = ask.question
    async with ask.snapshot() as db:
        first = (await _one(db, ask, asked.epoch)).epoch_no + 1 + asked.offset
        numbers = range(first, min(first + asked.count, MAX_NUMBER + 1))
        return await _shown(db, ask.network, await epochs.some(db, numbers, ask.network))


async def preceding(ask: ChainAsk[Neighbours]) -> list[Epoch]:
    """List the epochs before an epoch, oldest first. Page 1 ends with the epoch directly before it."""
    asked = ask.question
    async with ask.snapshot() as db:
        beyond = (await _one(db, ask, asked.epoch)).epoch_no - asked.offset
        numbers = range(max(beyond - asked.count, 0), beyond)
        return await _shown(db, ask.network, await epochs.some(db, numbers, ask.network))


async def blocks(ask: ChainAsk[EpochBlocks]) -> list[str]:
    """List the hashes of an epoch's blocks."""
    asked = ask.question
    async with ask.snapshot() as db:
        epoch = await _one(db, ask, asked.epoch)
        first, last = epoch.first_block.block_no + asked.offset, epoch.last_block.block_no
        lowest, highest = first, min(first + asked.count - 1, last)
        if asked.order == "desc":
            highest = last - asked.offset
            lowest = max(highest - asked.count + 1, epoch.first_block.block_no)
        return [block_hash.hex() for block_hash in await _hashes[asked.order].all(db, lowest, highest)]


async def parameters(ask: ChainAsk[OneEpoch]) -> Json:
    """Get the protocol parameters of an epoch."""
    _, epoch_no, stored = await epochs.read_parameters(ask.about(ask.question))
    return _named_once(epoch_no, stored.parameters) | {"nonce": None if stored.nonce is None else stored.nonce.hex()}


@lru_cache(16)
def _named_once(epoch_no: int, parameters: str) -> Json:
    """`_named` of parameters in Ogmios' JSON. It takes longer than the rest of the answer, and epochs last for days."""
    return _named(epoch_no, _decode(parameters))


async def _one(db: Connection, ask: ChainAsk[Any], epoch_no: int | None) -> epochs.Epoch:
    """The epoch of a question, in a snapshot. Raises Refusal 404 and 503."""
    return (await epochs.get_epoch(ask.about(EpochQuestion(epoch=epoch_no), db))).data


async def _shown(db: Connection, asked: Network, found: Sequence[epochs.Epoch]) -> list[Epoch]:
    stakes = await network.active_stakes(db, asked, [told.epoch_no for told in found])
    return [
        Epoch(
            epoch=told.epoch_no,
            start_time=int(told.start_time.timestamp()),
            end_time=int(told.end_time.timestamp()),
            first_block_time=int(told.first_block.block_time.timestamp()),
            last_block_time=int(told.last_block.block_time.timestamp()),
            block_count=told.block_count,
            tx_count=told.tx_count,
            output=told.output,
            fees=told.fees,
            active_stake=str(active_stake) if active_stake else None,
        )
        for told, active_stake in zip(found, stakes, strict=True)
    ]


def _named(epoch_no: int, told: Json) -> Json:
    """Ogmios' parameters with Blockfrost's names; null where the epoch's era has none."""
    units, block_units = told.get("maxExecutionUnitsPerTransaction"), told.get("maxExecutionUnitsPerBlock")
    prices, coefficient = told.get("scriptExecutionPrices"), told.get("minUtxoDepositCoefficient")
    models = {name.replace("plutus:v", "PlutusV"): model for name, model in told.get("plutusCostModels", {}).items()}
    entropy = told.get("extraEntropy")
    return {
        "epoch": epoch_no,
        "min_fee_a": told["minFeeCoefficient"],
        "min_fee_b": told["minFeeConstant"]["ada"]["lovelace"],
        "max_block_size": told["maxBlockBodySize"]["bytes"],
        "max_tx_size": told["maxTransactionSize"]["bytes"],
        "max_block_header_size": told["maxBlockHeaderSize"]["bytes"],
        "key_deposit": _lovelace(told.get("stakeCredentialDeposit")),
        "pool_deposit": _lovelace(told.get("stakePoolDeposit")),
        "e_max": told.get("stakePoolRetirementEpochBound"),
        "n_opt": told.get("desiredNumberOfStakePools"),
        "a0": _ratio(told.get("stakePoolPledgeInfluence")),
        "rho": _ratio(told.get("monetaryExpansion")),
        "tau": _ratio(told.get("treasuryExpansion")),
        "decentralisation_param": _ratio(told.get("federatedBlockProductionRatio", 0)),
        "extra_entropy": None if entropy == "neutral" else entropy,
        "protocol_major_ver": told["version"]["major"],
        "protocol_minor_ver": told["version"]["minor"],
        "min_utxo": _text(coefficient),
        "min_pool_cost": _lovelace(told.get("minStakePoolCost")),
        "nonce": None,  # which is no parameter
        "cost_models": {name: cost_models.named(name, model) for name, model in models.items()} or None,
        "cost_models_raw": models or None,
        "price_mem": _ratio(prices and prices["memory"]),
        "price_step": _ratio(prices and prices["cpu"]),
        "max_tx_ex_mem": _text(units and units["memory"]),
        "max_tx_ex_steps": _text(units and units["cpu"]),
        "max_block_ex_mem": _text(block_units and block_units["memory"]),
        "max_block_ex_steps": _text(block_units and block_units["cpu"]),
        "max_val_size": _text(told.get("maxValueSize", {}).get("bytes")),
        "collateral_percent": told.get("collateralPercentage"),
        "max_collateral_inputs": told.get("maxCollateralInputs"),
        "coins_per_utxo_size": _text(coefficient),
        "coins_per_utxo_word": _text(coefficient),
        **_of_governance(told),
        "min_fee_ref_script_cost_per_byte": _ratio(told.get("minFeeReferenceScripts", {}).get("base")),
    }


def _of_governance(told: Json) -> Json:
    """The parameters that Conway introduced. `pvt` are thresholds of pools, `dvt` those of representatives."""
    pools, representatives = _Thresholds(told, "stakePool"), _Thresholds(told, "delegateRepresentative")
    security = pools.ratio("protocolParametersUpdate", "security")
    return {
        "pvt_motion_no_confidence": pools.ratio("noConfidence"),
        "pvt_committee_normal": pools.ratio("constitutionalCommittee", "default"),
        "pvt_committee_no_confidence": pools.ratio("constitutionalCommittee", "stateOfNoConfidence"),
        "pvt_hard_fork_initiation": pools.ratio("hardForkInitiation"),
        "dvt_motion_no_confidence": representatives.ratio("noConfidence"),
        "dvt_committee_normal": representatives.ratio("constitutionalCommittee", "default"),
        "dvt_committee_no_confidence": representatives.ratio("constitutionalCommittee", "stateOfNoConfidence"),
        "dvt_update_to_constitution": representatives.ratio("constitution"),
        "dvt_hard_fork_initiation": representatives.ratio("hardForkInitiation"),
        "dvt_p_p_network_group": representatives.ratio("protocolParametersUpdate", "network"),
        "dvt_p_p_economic_group": representatives.ratio("protocolParametersUpdate", "economic"),
        "dvt_p_p_technical_group": representatives.ratio("protocolParametersUpdate", "technical"),
        "dvt_p_p_gov_group": representatives.ratio("protocolParametersUpdate", "governance"),
        "dvt_treasury_withdrawal": representatives.ratio("treasuryWithdrawals"),
        "committee_min_size": _text(told.get("constitutionalCommitteeMinSize")),
        "committee_max_term_length": _text(told.get("constitutionalCommitteeMaxTermLength")),
        "gov_action_lifetime": _text(told.get("governanceActionLifetime")),
        "gov_action_deposit": _lovelace(told.get("governanceActionDeposit")),
        "drep_deposit": _lovelace(told.get("delegateRepresentativeDeposit")),
        "drep_activity": _text(told.get("delegateRepresentativeMaxIdleTime")),
        "pvtpp_security_group": security,
        "pvt_p_p_security_group": security,
    }


class _Thresholds:
    """The voting thresholds of pools or of representatives."""

    def __init__(self, told: Json, whose: str) -> None:
        self._told = told.get(f"{whose}VotingThresholds", {})

    def ratio(self, name: str, part: str | None = None) -> msgspec.Raw | None:
        """One of them; None before Conway."""
        told = self._told.get(name)
        return _ratio(told if part is None or told is None else told.get(part))


def _lovelace(told: Json | None) -> str | None:
    return None if told is None else str(told["ada"]["lovelace"])


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _ratio(told: str | int | float | None) -> msgspec.Raw | None:
    """A ratio such as `577/10000`, or a number, as a JSON number."""
    return None if told is None else show_ratio(Fraction(str(told)))


_decode = msgspec.json.Decoder(Json).decode
