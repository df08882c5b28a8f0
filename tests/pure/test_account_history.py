"""The search for the transaction of an account at which a page of its history begins."""

from itertools import accumulate
from random import Random
from typing import Any

import pytest

from api.blockfrost import account_history
from api.blockfrost.account_history import _NEAR, _before, _Rank
from shared.ledger import StakeNo

MOST_PROBES = 12


class Rows:
    """The answers of a statement that always has one row."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, 0

    async def only(self, _: object, __: StakeNo, place: int) -> Any:
        self.asked += 1
        return self.answer(place)


def histories(random: Random) -> list[int]:
    """The number of addresses in each transaction of an account."""
    count = random.choice([1, 10, _NEAR + 1, 200, 3_000, 50_000])
    match random.randrange(3):
        case 0:
            return [1] * count
        case 1:
            return [random.randint(1, 5) for _ in range(count)]
    return [1 if random.random() < 0.9 else random.randint(2, 400) for _ in range(count)]


async def test_no_page_of_a_long_history_takes_more_than_three_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one whose transactions have some addresses each, as those of a wallet: each probe looks up every address."""
    random = Random(1)
    before = [0, *accumulate(random.choice((1, 1, 2, 3)) for _ in range(100_000))]
    rank, end = Rows(lambda place: _Rank(place, before[place])), len(before) - 1
    monkeypatch.setattr(account_history, "_rank", rank)
    monkeypatch.setattr(account_history, "_tx_id", Rows(lambda place: place))
    for entry in random.sample(range(before[-1]), 100):
        rank.asked = 0
        found = await _before(None, StakeNo(1), _Rank(0, 0), _Rank(end, before[end]), entry)
        assert found.entries <= entry < before[found.transactions + _NEAR + 1]
        assert rank.asked <= 3


@pytest.mark.parametrize("seed", range(40))
async def test_a_page_begins_shortly_before_its_first_entry_after_few_probes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    before = [0, *accumulate(histories(random))]
    rank = Rows(lambda place: _Rank(place, before[place]))
    monkeypatch.setattr(account_history, "_rank", rank)
    monkeypatch.setattr(account_history, "_tx_id", Rows(lambda place: place))
    first, last = sorted(random.sample(range(len(before)), 2))
    entry = random.randrange(before[first], before[last])
    found = await _before(
        None,  # no database is asked
        StakeNo(1),
        _Rank(first, before[first]),
        _Rank(last, before[last]),
        entry,
    )
    place = max(at for at in range(first, last) if before[at] <= entry)
    assert found.entries == before[found.transactions] <= entry
    assert max(first, place - _NEAR) <= found.transactions <= place
    assert rank.asked <= MOST_PROBES
