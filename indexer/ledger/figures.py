"""Figures that the index and its node both know: pots, parameters, genesis configurations and the starts of epochs."""

from typing import Any

import msgspec
from msgspec import UNSET

from indexer.blocks.eras import EraSummary
from indexer.ledger import answers, reader
from indexer.ledger.comparisons import At, Batch, Kind, Subject, text, whole
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from shared import sql

_ERA_ENDS_WITHIN_EPOCHS = 5
_DESIRED_POOLS, _NONCE = "desired_pools of ledger_state", "nonce of epoch_parameters"


async def _our_pots(at: At, _: int) -> Batch | None:
    """Reserves and treasury as read in this epoch, in which they do not change."""
    row = await _pots.one(at.db)
    return Batch(msgspec.structs.asdict(row)) if at.current and row is not None else None


async def _pots_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, int] | None:
    pots = await reader.or_none(node, "queryLedgerState/treasuryAndReserves", answers.TreasuryAndReserves)
    if pots is None:
        return None
    return {"reserves": frames.lovelace(pots.reserves), "treasury": frames.lovelace(pots.treasury)}


async def _our_parameters(at: At, _: int) -> Batch | None:
    """Protocol parameters of this epoch by name, the copy of one of them, and the nonce."""
    row = await _parameters.one(at.db, at.epoch_no)
    if row is None or not at.current:
        return None
    stored: dict[str, Any] = {} if row.parameters is None else msgspec.json.decode(row.parameters)
    return Batch(stored | {_DESIRED_POOLS: row.desired_pools, _NONCE: _shown_nonce(row.nonce)})


async def _parameters_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, Any] | None:
    """The same, with an UNSET nonce if the node refuses to tell it, which is not a neutral one."""
    answer = await reader.or_none(node, "queryLedgerState/protocolParameters", msgspec.Raw)
    if answer is None:
        return None
    parameters: dict[str, Any] = msgspec.json.decode(answers.in_names_of_7(answer))
    nonces = await reader.or_none(node, "queryLedgerState/nonces", answers.Nonces)
    return parameters | {
        _DESIRED_POOLS: answers.parameters_of(answer).desired_number_of_stake_pools,
        _NONCE: UNSET if nonces is None else _shown_nonce(answers.nonce_of(nonces)),
    }


def _shown_nonce(nonce: bytes | None) -> str | None:
    return None if nonce is None else nonce.hex()


async def _our_configurations(at: At, _: int) -> Batch | None:
    configurations = {row.era: msgspec.json.decode(row.configuration) for row in await _configurations.all(at.db)}
    return Batch(configurations) if at.current else None


async def _configurations_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, Any]:
    """By era; UNSET for one that the node does not tell. NOTE: Ogmios 6 does not know Dijkstra's."""
    told = {era: await reader.configuration_of(node, era) for era in reader.GENESIS_ERAS}
    return {era: UNSET if answer is None else msgspec.json.decode(answer) for era, answer in told.items()}


def _same_configuration(ours: Any, node: Any) -> bool:
    """Whether we have each member that the node tells. NOTE: Ogmios 6 tells less than Ogmios 7."""
    if isinstance(ours, dict) and isinstance(node, dict):
        return all(name in ours and _same_configuration(ours[name], node[name]) for name in node)
    return bool(ours == node)


def _show_configuration(ours: Any, node: Any) -> tuple[str, str]:
    """The members that differ."""
    if isinstance(ours, dict) and isinstance(node, dict):
        names = [name for name in node if name not in ours or not _same_configuration(ours[name], node[name])]
        return text({name: ours[name] for name in names if name in ours}), text({name: node[name] for name in names})
    return text(ours), text(node)


async def _our_epochs(at: At, _: int) -> Batch:
    """The first slot of each epoch, and its time in seconds since the network's start."""
    network = at.network
    starts = {}
    for epoch in range(at.epoch_no + _ERA_ENDS_WITHIN_EPOCHS):
        slot_no = network.epoch_start(epoch)
        starts[epoch] = [(slot_no, (network.slot_time(slot_no) - network.start_time).total_seconds())]
    return Batch(starts)


async def _epochs_of_node(node: Ogmios, _: At, __: list[int]) -> dict[int, Any] | None:
    """The same for the epochs in which eras begin or end: what all these eras say."""
    eras = await reader.or_none(node, "queryLedgerState/eraSummaries", list[EraSummary])
    if eras is None:
        return None
    starts: dict[int, set[tuple[int, float]]] = {}
    for bound in (bound for era in eras for bound in (era.start, era.end) if bound is not None):
        starts.setdefault(bound.epoch, set()).add((bound.slot, float(bound.time.seconds)))
    return {epoch: sorted(of_eras) for epoch, of_eras in starts.items()}


def _named(key: str) -> str:
    return key


FIGURES: tuple[Subject, ...] = (
    Subject((Kind("epoch_start", whole),), _our_epochs, _epochs_of_node, lambda epoch: f"epoch {epoch}"),
    Subject(
        (Kind("genesis_configuration", whole, _show_configuration, _same_configuration),),
        _our_configurations,
        _configurations_of_node,
        _named,
        None,
    ),
    Subject((Kind("protocol_parameter", whole),), _our_parameters, _parameters_of_node, _named, None),
    Subject((Kind("pot", whole),), _our_pots, _pots_of_node, _named),
)


class _Pots(msgspec.Struct, frozen=True):
    reserves: int | None
    treasury: int | None


class _Parameters(msgspec.Struct, frozen=True):
    parameters: str | None
    nonce: bytes | None
    desired_pools: int | None


class _Configuration(msgspec.Struct, frozen=True):
    era: str
    configuration: str


_sql = sql.beside(__file__)
_pots = _sql.query("pots", _Pots)
_parameters = _sql.query("parameters", _Parameters)
_configurations = _sql.query("configurations", _Configuration)
