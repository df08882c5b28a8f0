"""What an account was paid for at the beginning of epochs, by its history."""

from dataclasses import dataclass, field

import pytest

from api.blockfrost.rewards import Event, Past, PoolUpdate, Reaping, rewards, show_epochs
from shared import packed
from shared.ledger import PoolNo, tx_id_of
from shared.network import PREVIEW

OWN, OTHER = PoolNo(1), PoolNo(2)
ACCOUNT, STRANGER = b"\xe0" + b"a" * 28, b"\xe0" + b"b" * 28
DEPOSIT = 500_000_000


def parameters(*owners: bytes) -> bytes:
    pool = packed.PoolParameters(bytes(32), 0, 0, "0/1", ACCOUNT, [*owners], [], None, None)
    return packed.pack_pool_parameters(pool)


def update(epoch: int, pool: PoolNo, content: bytes | None) -> PoolUpdate:
    return PoolUpdate(tx_id_of(PREVIEW.epoch_start(epoch), 0), pool, content)


@dataclass
class Case:
    """An account that is paid 700 ada at the beginning of epoch 12, for epoch 10."""

    events: list[Event] = field(default_factory=list)
    updates: list[PoolUpdate] = field(default_factory=list)
    reapings: list[Reaping] = field(default_factory=list)
    made: set[tuple[PoolNo, int]] = field(default_factory=lambda: {(OWN, 10), (OTHER, 10)})

    def told(self) -> list[tuple[int, str, PoolNo, int]]:
        past = Past(ACCOUNT, PREVIEW, self.events, self.updates, self.reapings, frozenset(self.made))
        return sorted(rewards(past, {12: 700_000_000}, [11, 12]))


JOINED, DELEGATED = Event("registration", None, 3), Event("delegation", OTHER, 3)
LED = update(3, OWN, parameters(STRANGER))
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
        (Case([JOINED], [LED, update(8, OWN, None)]), []),
        (Case([JOINED], [LED, update(9, OWN, None)]), [LEADER]),
        (Case([JOINED, DELEGATED], [LED]), [LEADER]),  # both, of which only the sum is known
        (Case([JOINED, Event("delegation", OWN, 3)], [update(3, OWN, parameters(ACCOUNT))]), [LEADER]),
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


def test_epochs_are_shown_as_ranges() -> None:
    assert show_epochs([]) == "none"
    assert show_epochs([210, 211, 212, 218]) == "210-212,218-218"
