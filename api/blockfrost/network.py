"""`/network` and `/genesis`."""

from fractions import Fraction

import msgspec

from api.ask import ChainAsk, Nothing
from api.blockfrost import refusals
from api.chain import network
from api.chain.pools import show_ratio


class Supply(msgspec.Struct, frozen=True):
    """Lovelace. `locked` is that at script addresses; null if the index does not begin with the first block."""

    max: str
    total: str
    circulating: str
    locked: str | None
    treasury: str
    reserves: str


class Stake(msgspec.Struct, frozen=True):
    """Lovelace delegated to pools."""

    live: str
    active: str


class NetworkFigures(msgspec.Struct, frozen=True):
    """The supply and the stake of the network."""

    supply: Supply
    stake: Stake


class Genesis(msgspec.Struct, frozen=True):
    """The parameters fixed for the whole chain. `system_start` is in seconds since 1970, `slot_length` in seconds."""

    active_slots_coefficient: msgspec.Raw
    update_quorum: int
    max_lovelace_supply: str
    network_magic: int
    epoch_length: int
    system_start: int
    slots_per_kes_period: int
    slot_length: int
    max_kes_evolutions: int
    security_param: int


async def info(ask: ChainAsk[Nothing]) -> NetworkFigures:
    """Get the supply and the stake of the network."""
    told = (await network.get_network(ask)).data
    if told.supply is None:
        raise refusals.supply_not_known()
    supply = told.supply
    return NetworkFigures(
        Supply(supply.max, supply.total, supply.circulating, supply.locked, supply.treasury, supply.reserves),
        Stake(told.stake.live, told.stake.active),
    )


async def genesis(ask: ChainAsk[Nothing]) -> Genesis:
    """Get the parameters of the genesis."""
    ask.notes.is_constant = True
    async with ask.connection() as db:
        shelley = await network.read_shelley(db)
    return Genesis(
        active_slots_coefficient=show_ratio(Fraction(shelley.active_slots_coefficient)),
        update_quorum=shelley.update_quorum,
        max_lovelace_supply=str(shelley.max_lovelace_supply),
        network_magic=shelley.network_magic,
        epoch_length=shelley.epoch_length,
        system_start=int(shelley.start_time.timestamp()),
        slots_per_kes_period=shelley.slots_per_kes_period,
        slot_length=shelley.slot_length.milliseconds // 1000,
        max_kes_evolutions=shelley.max_kes_evolutions,
        security_param=shelley.security_parameter,
    )
