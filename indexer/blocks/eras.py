"""Compare the start time and the eras of a node with shared/network.py, whenever a session with it begins."""

from datetime import datetime

import msgspec
import structlog

from indexer.blocks.genesis import WrongNetwork
from indexer.ogmios.connection import Ogmios, Refused
from shared.network import Network

log = structlog.get_logger()


class _Seconds(msgspec.Struct, frozen=True):
    seconds: float


class _Bound(msgspec.Struct, frozen=True):
    time: _Seconds
    slot: int
    epoch: int


class _SlotLength(msgspec.Struct, frozen=True):
    milliseconds: float


class _EraParameters(msgspec.Struct, frozen=True, rename="camel"):
    epoch_length: int
    slot_length: _SlotLength


class EraSummary(msgspec.Struct, frozen=True):
    """The bounds of an era and its slot length; the last known era has no end."""

    start: _Bound
    parameters: _EraParameters
    end: _Bound | None = None


async def check(node: Ogmios, network: Network) -> None:
    """Compare the node's start time and eras with shared/network.py.

    A node that can't answer, such as one that still replays its chain, is accepted with a warning. Raises WrongNetwork,
    frames.Unreadable and OSError.
    """
    try:
        start_time = await node.call("queryNetwork/startTime", datetime)
        summaries = await node.call("queryLedgerState/eraSummaries", list[EraSummary])
    except Refused as refused:
        log.warning("eras.unknown", network=network.name, cause=str(refused))
        return
    if start_time != network.start_time:
        raise WrongNetwork(f"the node's network began {start_time}, {network.name} began {network.start_time}")
    for summary in summaries:
        disagreement = disagreement_of(summary, network)
        if disagreement is not None:
            raise WrongNetwork(f"the node's eras are not those of {network.name}: {disagreement}")


def disagreement_of(summary: EraSummary, network: Network) -> str | None:
    """How an era differs from shared/network.py, in words; None if it does not."""
    for bound in (summary.start, *([] if summary.end is None else [summary.end])):
        slot_no = network.epoch_start(bound.epoch)
        if slot_no != bound.slot:
            return f"epoch {bound.epoch} begins at slot {bound.slot}, not {slot_no}"
        seconds = (network.slot_time(slot_no) - network.start_time).total_seconds()
        if seconds != bound.time.seconds:
            return f"slot {slot_no} begins {bound.time.seconds} s after the start, not {seconds}"
    first = summary.start.slot
    if summary.end is not None and summary.end.slot == first:
        return None  # an era without slots
    byron = first < network.byron_slots
    length, slot_s = (network.byron_epoch_slots, network.byron_slot_s) if byron else (network.epoch_slots, 1)
    reported, reported_s = summary.parameters.epoch_length, summary.parameters.slot_length.milliseconds / 1_000
    if (reported, reported_s) != (length, slot_s):
        return f"from slot {first} an epoch has {reported} slots of {reported_s} s, not {length} of {slot_s} s"
    return None
