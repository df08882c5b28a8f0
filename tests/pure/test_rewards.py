"""What an account was paid for at the beginning of epochs, by its history."""

from dataclasses import dataclass, field

import pytest

from api.blockfrost.rewards import (
    Event,
    Past,
    PoolUpdate,
    Reaping,
    active_epochs,
    deposits,
    leading_by,
    rewards,
    show_epochs,
)
from shared.ledger import PoolNo, tx_id_of
from shared.network import PREVIEW

FIRST, OWN, OTHER = PoolNo(0), PoolNo(1), PoolNo(2)
DEPOSIT = 500_000_000


def update(epoch: int, *, named: bool, pool: PoolNo = OWN) -> PoolUpdate:
    return PoolUpdate(tx_id_of(PREVIEW.epoch_start(epoch), 0), pool, named)


@dataclass
class Case:
    """An account that is paid 700 ada at the beginning of epoch 12, for epoch 10."""

    events: list[Event] = field(default_factory=list)
    updates: list[PoolUpdate] = field(default_factory=list)
    reapings: list[Reaping] = field(default_factory=list)
    made: set[PoolNo] = field(default_factory=lambda: {FIRST, OWN, OTHER})

    def told(self) -> list[tuple[int, str, PoolNo, int]]:
        past, leading = Past(self.events, self.reapings), leading_by(self.updates, self.reapings, PREVIEW)
        earned = past.earned({12: 700_000_000}, [11, 12])
        return sorted([*deposits(past), *rewards(past, earned, {10: self.made}, leading)])


JOINED, DELEGATED = Event("registration", None, 3), Event("delegation", OTHER, 3)
LED = update(3, named=True)
MEMBER, LEADER = (10, "member", OTHER, 700_000_000), (10, "leader", OWN, 700_000_000)


@pytest.mark.parametrize(
    "case, expected",
    [
        (Case([JOINED, DELEGATED]), [MEMBER]),
        (Case([JOINED, Event("delegation", OTHER, 8)]), [MEMBER]),
        (Case([JOINED, Event("delegation", OTHER, 9)]), []),
        (Case([JOINED, DELEGATED, Event("delegation", OWN, 9)]), [MEMBER]),
        (Case([JOINED, DELEGATED], made=set()), []),
        (Case([JOINED, DELEGATED, Event("deregistration", None, 8), Event("registration", None, 9)]), []),
        (Case([JOINED, DELEGATED], reapings=[Reaping(OTHER, 8, False)]), []),
        (Case([JOINED, DELEGATED], reapings=[Reaping(OTHER, 9, False)]), [MEMBER]),
        (Case([JOINED, DELEGATED], reapings=[Reaping(OTHER, 3, False)]), [MEMBER]),
        (Case([JOINED], [LED]), [LEADER]),
        (Case([JOINED], [LED], made={OTHER}), []),
        (Case([JOINED], [update(8, named=True)]), [LEADER]),
        (Case([JOINED], [update(9, named=True)]), []),
        (Case([JOINED], [LED, update(7, named=False)]), []),
        (Case([JOINED], [LED, update(8, named=False)]), [LEADER]),  # a change counts an epoch later than a first one
        (Case([JOINED], [update(3, named=False), update(8, named=True)]), []),
        (Case([JOINED], [update(8, named=True), update(8, named=False)]), [LEADER]),
        (Case([JOINED], [LED, update(8, named=False)], [Reaping(OWN, 8, False)]), []),  # the first since it retired
        (Case([JOINED], [LED, update(8, named=False)], [Reaping(OTHER, 8, False)]), [LEADER]),
        (Case([JOINED], [LED, update(3, named=True, pool=FIRST)]), [(10, "leader", FIRST, 700_000_000)]),
        (Case([JOINED, DELEGATED], [LED]), [MEMBER]),  # anyone can register a pool that names the account
        (Case([JOINED, DELEGATED], [LED], made={OWN}), [LEADER]),
        (Case([JOINED, Event("delegation", OWN, 3)], [LED]), [LEADER]),
        (Case([JOINED, Event("delegation", OWN, 3)], [LED, update(3, named=True, pool=FIRST)]), [LEADER]),
        (
            Case([JOINED, DELEGATED], reapings=[Reaping(OWN, 12, True)]),
            [(10, "member", OTHER, 700_000_000 - DEPOSIT), (12, "pool_deposit_refund", OWN, DEPOSIT)],
        ),
        (Case([JOINED], reapings=[Reaping(OWN, 5, True)]), [(5, "pool_deposit_refund", OWN, DEPOSIT)]),
        (Case([JOINED, Event("deregistration", None, 4)], reapings=[Reaping(OWN, 5, True)]), []),
        (Case([], []), []),
    ],
)
def test_a_payment_is_what_history_has_a_reason_for(case: Case, expected: list[tuple[int, str, PoolNo, int]]) -> None:
    assert case.told() == expected


def test_pools_of_the_genesis_count_at_once_and_changes_after_three_epochs() -> None:
    tx_ids = [-1, *(tx_id_of(PREVIEW.epoch_start(epoch), 0) for epoch in (0, 4, 6, 6, 9))]
    assert active_epochs(tx_ids, [6], PREVIEW) == [0, 3, 7, 8, 9, 12]
    assert active_epochs([], [6], PREVIEW) == []


def test_epochs_are_shown_as_ranges() -> None:
    assert show_epochs([]) == "none"
    assert show_epochs([210, 211, 212, 218]) == "210-212,218-218"
