"""Slots, time and epochs at points of the real networks."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.network import MAINNET, NETWORKS, PREPROD, PREVIEW, Network


@pytest.mark.parametrize(
    ("network", "slot_no", "time", "epoch_no"),
    [
        (MAINNET, 0, datetime(2017, 9, 23, 21, 44, 51, tzinfo=UTC), 0),
        (MAINNET, 21_600, datetime(2017, 9, 28, 21, 44, 51, tzinfo=UTC), 1),
        (MAINNET, 4_492_799, datetime(2020, 7, 29, 21, 44, 31, tzinfo=UTC), 207),
        (MAINNET, 4_492_800, datetime(2020, 7, 29, 21, 44, 51, tzinfo=UTC), 208),  # the hard fork to Shelley
        (MAINNET, 133_660_800, datetime(2024, 9, 1, 21, 44, 51, tzinfo=UTC), 507),  # Chang: the first block of Conway
        (PREPROD, 86_399, datetime(2022, 6, 20, 23, 59, 40, tzinfo=UTC), 3),
        (PREPROD, 86_400, datetime(2022, 6, 21, tzinfo=UTC), 4),
        (PREVIEW, 0, datetime(2022, 10, 25, tzinfo=UTC), 0),
        (PREVIEW, 86_400, datetime(2022, 10, 26, tzinfo=UTC), 1),
    ],
)
def test_slots_have_the_times_and_epochs_of_the_networks(
    network: Network, slot_no: int, time: datetime, epoch_no: int
) -> None:
    assert network.slot_time(slot_no) == time
    assert network.epoch_of(slot_no) == epoch_no


@given(st.sampled_from(NETWORKS), st.integers(0, 10_000))
def test_an_epoch_begins_where_the_previous_one_ends(network: Network, epoch_no: int) -> None:
    start = network.epoch_start(epoch_no)
    assert network.epoch_of(start) == epoch_no
    if epoch_no:
        assert network.epoch_of(start - 1) == epoch_no - 1


def test_the_pages_know_each_network_by_its_id() -> None:
    words = (Path(__file__).parents[2] / "api" / "static" / "shared" / "words.js").read_text()
    (names,) = re.findall(r"^export const NETWORKS = \[(.+)\];$", words, flags=re.MULTILINE)
    assert [name.strip(' "').lower() for name in names.split(",")] == [network.name for network in NETWORKS]
