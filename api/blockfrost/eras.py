"""`/network/eras`: when each era began and ended."""

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction

import msgspec

from api.ask import ChainAsk, Nothing
from api.blockfrost import refusals
from api.chain import network
from shared import sql
from shared.ledger import ERAS
from shared.network import Network

_AFTER_BYRON = ERAS[1:]


class Bound(msgspec.Struct, frozen=True):
    """Where an era begins or ends. `time` is in seconds since the start of the network."""

    time: int
    slot: int
    epoch: int


class EraParameters(msgspec.Struct, frozen=True):
    """Slots of an epoch, seconds of a slot, and the slots after the tip in which the era can't end."""

    epoch_length: int
    slot_length: int
    safe_zone: int


class Era(msgspec.Struct, frozen=True):
    """An era. The present one ends with the last epoch that certainly belongs to it."""

    start: Bound
    end: Bound
    parameters: EraParameters


class _StateRow(msgspec.Struct, frozen=True):
    tip_slot_no: int
    first_block_no: int
    eras: list[str]
    slot_nos: list[int]


_state = sql.beside(__file__).query("state", _StateRow)


async def listed(ask: ChainAsk[Nothing]) -> list[Era]:
    """List the eras of the network, oldest first."""
    async with ask.snapshot() as db:
        genesis = (await network.get_genesis(ask.about(Nothing(), db))).data
        row = await _state.only(db)
    if row.first_block_no > 0:
        raise refusals.eras_not_known()
    coefficient = Fraction(bytes(genesis.active_slots_coefficient).decode())
    starts = dict(zip(row.eras, row.slot_nos, strict=True))
    return summaries(ask.network, starts, row.tip_slot_no, genesis.security_parameter, coefficient)


def summaries(
    network: Network, first_blocks: Mapping[str, int], tip_slot_no: int, security_parameter: int, coefficient: Fraction
) -> list[Era]:
    """The eras up to the present one, from the slot of the first block of each.

    An era begins with the epoch of its first block; one without blocks ends where it begins. The lengths of Byron's
    epochs and of both safe zones follow from the security parameter (k) and the active slots coefficient (f).
    """
    byron = EraParameters(10 * security_parameter, network.byron_slot_s, 2 * security_parameter)
    later = EraParameters(network.epoch_slots, 1, math.ceil(3 * security_parameter / coefficient))
    begun = _AFTER_BYRON[: max((place for place, era in enumerate(_AFTER_BYRON, 1) if era in first_blocks), default=0)]
    starts: list[int] = []
    for era in reversed(begun[1:]):
        starts.append(network.epoch_of(first_blocks[era]) if era in first_blocks else starts[-1])
    tip_epoch = network.epoch_of(tip_slot_no)
    is_safe = tip_slot_no - network.epoch_start(tip_epoch) >= later.epoch_length - later.safe_zone
    ends = [network.byron_epochs, *reversed(starts)]
    if begun:
        ends.append(tip_epoch + (2 if is_safe else 1))
    bounds = [_bound(network, epoch_no) for epoch_no in (0, *ends)]
    return [
        Era(start, end, byron if place == 0 else later) for place, (start, end) in enumerate(itertools.pairwise(bounds))
    ]


def _bound(network: Network, epoch_no: int) -> Bound:
    slot_no = network.epoch_start(epoch_no)
    return Bound(int((network.slot_time(slot_no) - network.start_time).total_seconds()), slot_no, epoch_no)
