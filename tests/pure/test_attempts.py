"""What follows from an attempt to send an event, over the life of a webhook, by a clock of the test."""

from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.events import attempts
from api.events.attempts import ATTEMPTS, JITTER, PAUSES_S
from api.events.slots import QUICK, QUICK_EACH, SLOW, SLOW_EACH, Slots

STATUSES = st.sampled_from([None, 200, 204, 301, 404, 429, 500, 410])


class Sent(NamedTuple):
    at_s: float
    number: int
    status: int | None


def live(statuses: list[int | None], jitter: float) -> tuple[list[Sent], str]:
    """What a webhook is sent whose endpoint answers so, and how it stands at the end."""
    now_s, number, failures, sent = 0.0, 1, 0, list[Sent]()
    for status in statuses:
        standing = attempts.after(status, failures, lambda low, high: low + (high - low) * jitter)
        sent.append(Sent(now_s, number, status))
        if standing.state != "active":
            return sent, standing.state
        number, failures, now_s = number + (standing.result == "delivered"), standing.failures, now_s + standing.pause_s
    return sent, "active"


@given(st.lists(STATUSES, max_size=60), st.floats(0, 1))
def test_each_event_is_sent_until_it_is_delivered_ten_times_at_most(statuses: list[int | None], jitter: float) -> None:
    sent, state = live(statuses, jitter)
    numbers = [each.number for each in sent]
    assert numbers == sorted(numbers)
    for number in range(1, max(numbers, default=0) + 1):
        of_one = [each for each in sent if each.number == number]
        assert 1 <= len(of_one) <= ATTEMPTS
        assert [each.status for each in of_one[:-1] if each.status in (200, 204, 410)] == []
        for nth, (before, later) in enumerate(pairwise(of_one)):
            assert later.at_s - before.at_s == pytest.approx(PAUSES_S[nth] * (1 - JITTER + 2 * JITTER * jitter))
    last = [each for each in sent if each.number == numbers[-1]] if sent else []
    if last and last[-1].status == 410:
        assert state == "ended"
    elif len(last) == ATTEMPTS and last[-1].status not in (200, 204):
        assert state == "failing"
    else:
        assert state == "active" and len(sent) == len(statuses)


def test_ten_attempts_take_seventy_five_hours_and_a_half() -> None:
    sent, state = live([500] * 99, 0.5)
    assert (len(sent), state) == (10, "failing")
    assert sent[-1].at_s == pytest.approx((75 * 60 + 35) * 60 + 5)


class Taking:
    """Webhooks of partners that take slots."""

    def __init__(self) -> None:
        self.slots, self._next = Slots(), 0

    def take(self, partner: int, count: int, *, quick: bool) -> int:
        """How many of so many webhooks get a slot."""
        taken = 0
        for _ in range(count):
            self._next += 1
            self.slots.judge(self._next, delivered=quick, took_s=0.1)
            taken += self.slots.take(self._next, UUID(int=partner))
        return taken


def test_slow_webhooks_leave_slots_to_their_partner_and_to_others() -> None:
    taking = Taking()
    assert taking.take(1, 100, quick=False) == SLOW_EACH
    assert taking.take(1, 2_000, quick=True) == QUICK_EACH
    assert sum(taking.take(partner, 100, quick=False) for partner in range(2, 100)) == SLOW - SLOW_EACH
    assert sum(taking.take(partner, 100, quick=True) for partner in range(2, 100)) == QUICK - QUICK_EACH
    assert taking.slots.are_full()
    for taken in list(taking.slots.taken):
        taking.slots.free(taken)
    assert taking.take(1, 100, quick=False) == SLOW_EACH


def test_a_webhook_that_answers_late_is_slow() -> None:
    slots, partner = Slots(), UUID(int=1)
    for number in range(SLOW_EACH):
        assert slots.take(number, partner)
    slots.judge(999, delivered=True, took_s=0.2)
    assert slots.take(999, partner)
    slots.free(999)
    slots.judge(999, delivered=True, took_s=3.0)
    assert not slots.take(999, partner)
