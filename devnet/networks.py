"""The public networks: magic, start time, slot lengths, epochs and eras."""

from datetime import UTC, datetime, timedelta

import msgspec

BYRON_SLOT_S = 20
BYRON_EPOCH_SLOTS = 21_600


class Network(msgspec.Struct, frozen=True):
    """Slots count from 0 at `start_time`: first those of `byron_epochs` Byron epochs, then those of later epochs.

    `eras` are (name, first epoch), and `forks` (major protocol version, first epoch) within Conway, as on the public
    network.
    """

    name: str
    magic: int
    start_time: datetime
    byron_epochs: int
    epoch_slots: int
    eras: tuple[tuple[str, int], ...]
    forks: tuple[tuple[int, int], ...]

    @property
    def address_tag(self) -> int:
        """The network tag of an address (CIP-19): 1 for mainnet, 0 for any test network.

        It is not the `network_id` of shared/network.py.
        """
        return 1 if self.name == "mainnet" else 0

    @property
    def kind(self) -> str:
        return "mainnet" if self.address_tag else "testnet"

    @property
    def byron_slots(self) -> int:
        return self.byron_epochs * BYRON_EPOCH_SLOTS

    def epoch_of(self, slot: int) -> int:
        if slot < self.byron_slots:
            return slot // BYRON_EPOCH_SLOTS
        return self.byron_epochs + (slot - self.byron_slots) // self.epoch_slots

    def epoch_start(self, epoch: int) -> int:
        """The first slot of the epoch."""
        if epoch < self.byron_epochs:
            return epoch * BYRON_EPOCH_SLOTS
        return self.byron_slots + (epoch - self.byron_epochs) * self.epoch_slots

    def seconds_at(self, slot: int) -> int:
        """Seconds from the start of the network to the start of the slot."""
        byron = min(slot, self.byron_slots)
        return byron * BYRON_SLOT_S + slot - byron

    def time_of(self, slot: int) -> datetime:
        return self.start_time + timedelta(seconds=self.seconds_at(slot))

    def slot_at(self, time: datetime) -> int:
        """The slot of a moment after Byron."""
        return self.byron_slots + int((time - self.time_of(self.byron_slots)).total_seconds())


MAINNET = Network(
    "mainnet",
    764_824_073,
    datetime(2017, 9, 23, 21, 44, 51, tzinfo=UTC),
    208,
    432_000,
    (
        ("byron", 0),
        ("shelley", 208),
        ("allegra", 236),
        ("mary", 251),
        ("alonzo", 290),
        ("babbage", 365),
        ("conway", 507),
    ),
    ((10, 537), (11, 644)),
)
PREVIEW = Network(
    "preview",
    2,
    datetime(2022, 10, 25, tzinfo=UTC),
    0,
    86_400,
    (("byron", 0), ("shelley", 0), ("allegra", 0), ("mary", 0), ("alonzo", 0), ("babbage", 3), ("conway", 646)),
    ((10, 743),),
)
PREPROD = Network(
    "preprod",
    1,
    datetime(2022, 6, 1, tzinfo=UTC),
    4,
    432_000,
    (("byron", 0), ("shelley", 4), ("allegra", 5), ("mary", 6), ("alonzo", 7), ("babbage", 12), ("conway", 163)),
    ((10, 181),),
)

BY_NAME = {network.name: network for network in (MAINNET, PREVIEW, PREPROD)}
