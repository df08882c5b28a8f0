"""The network: its tip, epoch, supply and stake, and its genesis configurations."""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Annotated
from uuid import UUID

import msgspec

from api import errors
from api.answers import ChainAnswer, Digits, Instant, Json
from api.ask import ChainAsk, Nothing
from api.chain import tip
from api.chain.pools import show_ratio
from api.chain.tip import Tip
from shared import sql
from shared.network import MAX_SUPPLY, Network
from shared.sql import Connection


class NetworkTip(msgspec.Struct, frozen=True):
    """The last indexed block."""

    block_hash: str
    block_no: int
    slot_no: int
    block_time: Instant


class NetworkEpoch(msgspec.Struct, frozen=True):
    """The epoch of the last indexed block. `end_time` is the start of the next epoch."""

    epoch_no: int
    epoch_slot: int
    start_time: Instant
    end_time: Instant
    first_slot_no: int
    last_slot_no: int


class Supply(msgspec.Struct, frozen=True):
    """Lovelace, as read from the node's ledger at `slot_no`.

    `total` is `max` minus `reserves`; `circulating` is `total` minus `treasury`, and includes deposits, rewards and the
    fees of the epoch. `locked` is the lovelace in unspent outputs at addresses that a script controls, after the last
    indexed block; null if the index does not begin with the first block.
    """

    slot_no: int
    max: Digits
    total: Digits
    circulating: Digits
    locked: Digits | None
    treasury: Digits
    reserves: Digits


class Stake(msgspec.Struct, frozen=True):
    """Lovelace delegated to pools: `live` now, `active` in the snapshot that counts in the current epoch."""

    live: Digits
    active: Digits


class NetworkSummary(msgspec.Struct, frozen=True):
    """The state of the network. `supply` is null until the node's ledger has been read once."""

    network: str
    network_magic: int
    tip: NetworkTip
    epoch: NetworkEpoch
    supply: Supply | None
    stake: Stake


class Genesis(msgspec.Struct, frozen=True):
    """The parameters fixed for the whole chain, and the genesis configuration of each era as Ogmios reports it.

    `epoch_length` counts slots of Shelley and later eras. The configurations lack `initialFunds` and `initialVouchers`,
    which are outputs at their addresses; a configuration that the node does not have is null.
    """

    network_magic: int
    start_time: Instant
    epoch_length: int
    slot_length_ms: int
    active_slots_coefficient: Annotated[
        msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": 1})
    ]
    security_parameter: int
    slots_per_kes_period: int
    max_kes_evolutions: int
    update_quorum: int
    max_lovelace_supply: Digits
    byron: Json | None
    shelley: Json
    alonzo: Json | None
    conway: Json | None
    dijkstra: Json | None


class _StateRow(msgspec.Struct, frozen=True):
    block_no: int
    live_stake: int
    read_slot_no: int | None
    reserves: int | None
    treasury: int | None
    locked: int | None


class _ConfigurationRow(msgspec.Struct, frozen=True):
    era: str
    configuration: str


class _ShelleyRow(msgspec.Struct, frozen=True):
    configuration: str | None


class SlotLength(msgspec.Struct, frozen=True):
    """The length of a slot."""

    milliseconds: int


class Shelley(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of Shelley's genesis configuration that answers repeat."""

    start_time: datetime
    network_magic: int
    active_slots_coefficient: str
    security_parameter: int
    epoch_length: int
    slots_per_kes_period: int
    max_kes_evolutions: int
    slot_length: SlotLength
    update_quorum: int
    max_lovelace_supply: int


class _SnapshotRow(msgspec.Struct, frozen=True):
    # Of one network: no other chain has its numbering.
    last_hash: bytes | None
    numbering: UUID
    told_by: int | None


_MAX_ADDED_UP = 1_000
_added_up: dict[tuple[int, _SnapshotRow], int] = {}  # lovelace, the oldest first

_decode_shelley = msgspec.json.Decoder(Shelley).decode
_sql = sql.beside(__file__)
_state = _sql.query("state", _StateRow)
_stake_snapshots = _sql.query("stake_snapshots", _SnapshotRow)
_active_stakes = _sql.values("active_stakes", int)
_configurations = _sql.query("configurations", _ConfigurationRow)
_shelley = _sql.query("shelley", _ShelleyRow)


async def get_network(ask: ChainAsk[Nothing]) -> ChainAnswer[NetworkSummary]:
    """Get the state of the network: tip, epoch, supply and stake."""
    network = ask.network
    async with ask.snapshot() as db:
        last = await tip.read(db)
        epoch_no = network.epoch_of(last.slot_no)
        row = await _state.only(db)
        active = await active_stake(db, network, epoch_no)
    return ChainAnswer(
        data=NetworkSummary(
            network=network.name,
            network_magic=network.magic,
            tip=NetworkTip(last.block_hash.hex(), row.block_no, last.slot_no, network.slot_time(last.slot_no)),
            epoch=NetworkEpoch(
                epoch_no=epoch_no,
                epoch_slot=last.slot_no - network.epoch_start(epoch_no),
                start_time=network.slot_time(network.epoch_start(epoch_no)),
                end_time=network.slot_time(network.epoch_start(epoch_no + 1)),
                first_slot_no=network.epoch_start(epoch_no),
                last_slot_no=network.epoch_start(epoch_no + 1) - 1,
            ),
            supply=_supply(row),
            stake=Stake(live=str(row.live_stake), active=str(active)),
        ),
        last_updated=last.last_updated(network),
    )


async def active_stake(db: Connection, network: Network, epoch_no: int) -> int:
    """The lovelace that counts in an epoch, 0 if the index did not see its stake snapshot."""
    [lovelace] = await active_stakes(db, network, [epoch_no])
    return lovelace


async def active_stakes(db: Connection, network: Network, numbers: Sequence[int]) -> list[int]:
    """The same for some epochs, in a snapshot. They are added up once for each state of a stake snapshot."""
    taken_at = [network.epoch_start(max(epoch_no - 1, 0)) for epoch_no in numbers]
    states = list(zip(numbers, await _stake_snapshots.all(db, numbers, taken_at), strict=True))
    known = {state: _added_up[state] for state in states if state in _added_up}  # others may drop it meanwhile
    missing = [state for state in states if state not in known]
    if missing:
        sums = dict(zip(missing, await _active_stakes.all(db, [epoch_no for epoch_no, _ in missing]), strict=True))
        known |= sums
        _added_up.update(sums)
        while len(_added_up) > _MAX_ADDED_UP:
            del _added_up[next(iter(_added_up))]
    return [known[state] for state in states]


async def get_genesis(ask: ChainAsk[Nothing]) -> ChainAnswer[Genesis]:
    """Get the genesis configurations of the network."""
    async with ask.snapshot() as db:
        last: Tip = await tip.read(db)
        told = {row.era: msgspec.Raw(row.configuration.encode()) for row in await _configurations.all(db)}
    if "shelley" not in told:
        raise errors.genesis_not_known()
    shelley = _decode_shelley(told["shelley"])
    return ChainAnswer(
        data=Genesis(
            network_magic=shelley.network_magic,
            start_time=shelley.start_time,
            epoch_length=shelley.epoch_length,
            slot_length_ms=shelley.slot_length.milliseconds,
            active_slots_coefficient=show_ratio(Fraction(shelley.active_slots_coefficient)),
            security_parameter=shelley.security_parameter,
            slots_per_kes_period=shelley.slots_per_kes_period,
            max_kes_evolutions=shelley.max_kes_evolutions,
            update_quorum=shelley.update_quorum,
            max_lovelace_supply=str(shelley.max_lovelace_supply),
            byron=told.get("byron"),
            shelley=told["shelley"],
            alonzo=told.get("alonzo"),
            conway=told.get("conway"),
            dijkstra=told.get("dijkstra"),
        ),
        last_updated=last.last_updated(ask.network),
    )


async def read_shelley(db: Connection) -> Shelley:
    """Shelley's genesis configuration. Raises Refusal 503 if the network is not served, 404 if it is not known yet."""
    row = await _shelley.one(db)
    if row is None:
        raise errors.network_not_available()
    if row.configuration is None:
        raise errors.genesis_not_known()
    return _decode_shelley(row.configuration)


def _supply(row: _StateRow) -> Supply | None:
    if row.read_slot_no is None or row.reserves is None or row.treasury is None:
        return None
    total = MAX_SUPPLY - row.reserves
    return Supply(
        slot_no=row.read_slot_no,
        max=str(MAX_SUPPLY),
        total=str(total),
        circulating=str(total - row.treasury),
        locked=None if row.locked is None else str(row.locked),
        treasury=str(row.treasury),
        reserves=str(row.reserves),
    )
