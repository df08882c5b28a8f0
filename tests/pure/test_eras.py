"""The eras of the public networks, against Blockfrost's own answers (blockfrost-tests, `network/eras`)."""

from fractions import Fraction

import pytest

from api.blockfrost.eras import Era, summaries
from shared.network import MAINNET, PREPROD, PREVIEW, Network

F = Fraction(1, 20)

PUBLISHED = {
    "mainnet": [  # start and end: time, slot, epoch
        (0, 0, 0),
        (89_856_000, 4_492_800, 208),
        (101_952_000, 16_588_800, 236),
        (108_432_000, 23_068_800, 251),
        (125_280_000, 39_916_800, 290),
        (157_680_000, 72_316_800, 365),
        (219_024_000, 133_660_800, 507),
    ],
    "preprod": [
        (0, 0, 0),
        (1_728_000, 86_400, 4),
        (2_160_000, 518_400, 5),
        (2_592_000, 950_400, 6),
        (3_024_000, 1_382_400, 7),
        (5_184_000, 3_542_400, 12),
        (70_416_000, 68_774_400, 163),
    ],
    "preview": [*[(0, 0, 0)] * 5, (259_200, 259_200, 3), (55_814_400, 55_814_400, 646)],
}


def shown(eras: list[Era]) -> list[tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]]:
    return [
        (
            (each.start.time, each.start.slot, each.start.epoch),
            (each.end.time, each.end.slot, each.end.epoch),
            (each.parameters.epoch_length, each.parameters.slot_length, each.parameters.safe_zone),
        )
        for each in eras
    ]


@pytest.mark.parametrize(
    ("network", "k", "first_blocks", "byron", "later"),
    [
        (
            MAINNET,
            2_160,
            {
                "shelley": 4_492_800,
                "allegra": 16_588_815,
                "mary": 23_068_800,
                "alonzo": 39_916_975,
                "babbage": 72_316_896,
                "conway": 133_660_855,
            },
            (21_600, 20, 4_320),
            (432_000, 1, 129_600),
        ),
        (
            PREPROD,
            2_160,
            {
                "shelley": 86_440,
                "allegra": 518_440,
                "mary": 950_410,
                "alonzo": 1_382_422,
                "babbage": 3_542_499,
                "conway": 68_774_499,
            },
            (21_600, 20, 4_320),
            (432_000, 1, 129_600),
        ),
        (
            PREVIEW,
            432,
            {"alonzo": 0, "babbage": 259_215, "conway": 55_814_428},
            (4_320, 20, 864),
            (86_400, 1, 25_920),
        ),
    ],
)
def test_eras_are_those_that_blockfrost_gives(
    network: Network,
    k: int,
    first_blocks: dict[str, int],
    byron: tuple[int, int, int],
    later: tuple[int, int, int],
) -> None:
    bounds = PUBLISHED[network.name]
    tip = network.epoch_start(700)
    end_slot = network.epoch_start(701)
    end = (int((network.slot_time(end_slot) - network.start_time).total_seconds()), end_slot, 701)
    expected = [(start, stop, later) for start, stop in zip(bounds, [*bounds[1:], end], strict=True)]
    expected[0] = (*expected[0][:2], byron)
    assert shown(summaries(network, first_blocks, tip, k, F)) == expected


def test_the_present_era_ends_an_epoch_later_in_the_safe_zone() -> None:
    """Once the rest of an epoch is within the safe zone, the next one can't begin another era."""
    start = PREVIEW.epoch_start(700)
    for epoch_slot, end in ((0, 701), (86_400 - 25_920 - 1, 701), (86_400 - 25_920, 702), (86_399, 702)):
        assert summaries(PREVIEW, {"conway": 0}, start + epoch_slot, 432, F)[-1].end.epoch == end


def test_a_chain_in_byron_has_one_era() -> None:
    assert shown(summaries(MAINNET, {}, 100, 2_160, F)) == [
        ((0, 0, 0), (89_856_000, 4_492_800, 208), (21_600, 20, 4_320))
    ]
