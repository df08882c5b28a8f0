"""The networks: their identity, and the conversion between slots, time and epochs.

The figures come from each network's genesis files and from its hard fork from Byron to Shelley, after which a slot
lasts one second. `indexer.blocks.eras` compares them with the era summaries of each node that the indexer connects to.
`protocol_10_epoch` is the epoch in which the network's proposal to fork to protocol 10 was enacted
(docs/decisions/0054).
"""

from datetime import UTC, datetime, timedelta

import msgspec

MAX_SUPPLY = 45_000_000_000_000_000
"""Maximum supply in lovelace, the same on all networks (`maxLovelaceSupply`, Shelley genesis)."""

STAKE_DEPOSIT, POOL_DEPOSIT = 2_000_000, 500_000_000
"""The first deposits in lovelace of a stake credential and of a pool, the same on all networks."""


class Network(msgspec.Struct, frozen=True):
    """One Cardano network, and the database schema of its chain.

    `byron_slots` is the first slot of the Shelley era. Before it, a slot lasts `byron_slot_s` seconds and an epoch
    `byron_epoch_slots` slots; after it, a slot lasts one second and an epoch `epoch_slots` slots. `protocol_10_epoch`
    is the first epoch of protocol 10 (the Plomin fork, within Conway).
    """

    name: str
    network_id: int
    magic: int
    start_time: datetime
    byron_slots: int
    epoch_slots: int
    protocol_10_epoch: int
    byron_epoch_slots: int = 21_600
    byron_slot_s: int = 20

    @property
    def schema(self) -> str:
        """The Postgres schema that this network's indexer owns."""
        return f"chain_{self.name}"

    @property
    def is_mainnet(self) -> bool:
        """Whether this is mainnet. Its addresses have the network tag 1, those of all test networks 0 (CIP-19)."""
        return self.network_id == 0

    @property
    def byron_epochs(self) -> int:
        """The number of epochs before the Shelley era."""
        return self.byron_slots // self.byron_epoch_slots

    def slot_time(self, slot_no: int) -> datetime:
        """The UTC time at which a slot begins."""
        byron = min(slot_no, self.byron_slots)
        return self.start_time + timedelta(seconds=byron * self.byron_slot_s + slot_no - byron)

    def epoch_of(self, slot_no: int) -> int:
        """The epoch that contains a slot."""
        if slot_no < self.byron_slots:
            return slot_no // self.byron_epoch_slots
        return self.byron_epochs + (slot_no - self.byron_slots) // self.epoch_slots

    def epoch_start(self, epoch_no: int) -> int:
        """The first slot of an epoch."""
        if epoch_no < self.byron_epochs:
            return epoch_no * self.byron_epoch_slots
        return self.byron_slots + (epoch_no - self.byron_epochs) * self.epoch_slots


MAINNET = Network(
    name="mainnet",
    network_id=0,
    magic=764_824_073,
    start_time=datetime(2017, 9, 23, 21, 44, 51, tzinfo=UTC),
    byron_slots=4_492_800,
    epoch_slots=432_000,
    protocol_10_epoch=537,
)
PREVIEW = Network(
    name="preview",
    network_id=1,
    magic=2,
    start_time=datetime(2022, 10, 25, tzinfo=UTC),
    byron_slots=0,
    epoch_slots=86_400,
    protocol_10_epoch=743,
)
PREPROD = Network(
    name="preprod",
    network_id=2,
    magic=1,
    start_time=datetime(2022, 6, 1, tzinfo=UTC),
    byron_slots=86_400,
    epoch_slots=432_000,
    protocol_10_epoch=181,
)

NETWORKS = (MAINNET, PREVIEW, PREPROD)
by_name = {network.name: network for network in NETWORKS}
by_id = {network.network_id: network for network in NETWORKS}
