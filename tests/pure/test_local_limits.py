"""The sliding minutes of processes around the beginning of an outage of Valkey. Decision 0021."""

import random
from datetime import timedelta
from uuid import UUID, uuid4

from api.keys.limits.local import LocalLimits
from api.keys.limits.verdicts import GoodKey, RunningQuota, Verdict
from api.sources import clock
from tests.api.minutes import good_key

KEY = GoodKey(UUID(int=1), 1, 60, None)
PROCESSES, SHARE = 3, 20


def admitted(limits: LocalLimits, now_s: float, good: GoodKey = KEY) -> bool:
    """Whether a process admits a request without Valkey."""
    verdict: Verdict = limits.take(good, PROCESSES, now_s)
    assert verdict.reset_s > 0
    return verdict.admitted


def test_no_window_around_an_outage_exceeds_the_limit_by_more_than_one_for_each_process() -> None:
    """Each process has just asked Valkey, whatever its own part of the admissions."""
    for seed in range(300):
        chance = random.Random(seed)
        limit = chance.randint(3, 90)
        good = GoodKey(UUID(int=1), 1, limit, None)
        processes = [LocalLimits() for _ in range(PROCESSES)]
        favourite = chance.random()
        moments: list[float] = []
        for now_s in sorted(chance.uniform(100, 160) for _ in range(chance.randint(0, 3 * limit))):
            number = 0 if chance.random() < favourite else chance.randrange(PROCESSES)
            if sum(now_s - moment < 60 for moment in moments) < limit:
                processes[number].record(good.credential_id, True, 0, now_s)
                moments.append(now_s)
        left = limit - sum(160 - moment < 60 for moment in moments)
        for process in processes:
            process.record(good.credential_id, False, left, 160)
        asked = sorted(chance.uniform(160, 219) for _ in range(4 * limit))
        moments += [now_s for now_s in asked if admitted(chance.choice(processes), now_s, good)]
        for first in moments:
            inside = sum(first <= moment < first + 60 for moment in moments)
            assert inside <= limit + PROCESSES, (seed, limit, inside)


def test_unequal_parts_of_an_exhausted_limit_stay_within_it() -> None:
    processes = [LocalLimits() for _ in range(PROCESSES)]
    for process, own in zip(processes, (24, 18, 18), strict=True):
        for _ in range(own):
            process.record(KEY.credential_id, True, 0, 100)
    assert [sum(admitted(process, 101) for _ in range(30)) for process in processes] == [0, 0, 0]
    assert [sum(admitted(process, 160.5) for _ in range(30)) for process in processes] == [20] * 3, "a minute later"


def test_a_process_that_knows_nothing_of_a_key_grants_its_share() -> None:
    assert sum(admitted(LocalLimits(), 100) for _ in range(1)) == 1
    process = LocalLimits()
    assert sum(admitted(process, 100) for _ in range(30)) == SHARE


def test_without_valkey_each_process_grants_its_share_of_the_remaining_quota() -> None:
    now = clock.now()
    quota = RunningQuota(10, "day", now, now + timedelta(hours=1), used=3)
    minutes, good = LocalLimits(), good_key(1_000, quota)
    taken = [minutes.take(good, processes=2, now_s=0) for _ in range(5)]
    assert [(each.admitted, each.quota_exceeded) for each in taken] == [(True, False)] * 3 + [(False, True)] * 2
    assert taken[-1].headers()["Retry-After"] == "60", "others may leave some of it"
    used_up = good_key(1_000, RunningQuota(10, "day", now, now + timedelta(hours=1), used=10))
    assert LocalLimits().take(used_up, processes=2, now_s=0).headers()["Retry-After"] == "3600"
    assert taken[0].quota is not None and taken[0].quota.remaining == 2
    minutes.take_unreported()
    assert minutes.take(good, processes=2, now_s=0).admitted, "the table knows of an outage after it"


def test_a_process_alone_keeps_the_same_minute() -> None:
    minutes, good, other = LocalLimits(), good_key(3), good_key(3)

    def take(at: float, key: GoodKey = good, processes: int = 1) -> Verdict:
        return minutes.take(key, processes, at)

    assert [take(at).admitted for at in (0, 10, 20, 30, 59.9)] == [True, True, True, False, False]
    assert take(60).admitted
    refused = take(61)
    assert (refused.admitted, refused.remaining, refused.reset_s) == (False, 0, 9)
    assert take(61, other).remaining == 2
    refused = take(61, processes=3)
    assert (refused.admitted, refused.remaining, refused.reset_s) == (False, 0, 59)
    assert take(70).admitted
    assert take(500).remaining == 2


def test_admissions_by_valkey_count_without_it_and_are_not_reported_twice() -> None:
    minutes, good, other = LocalLimits(), good_key(3), uuid4()
    key = good.credential_id
    minutes.record(key, True, 2, 0)
    assert [minutes.take(good, 1, at).admitted for at in (10, 20, 30)] == [True, True, False]
    assert minutes.all() == [(key, 0), (key, 10), (key, 20)]
    assert minutes.take_unreported() == [(key, 10), (key, 20)]
    assert minutes.take_unreported() == []
    assert [minutes.count(key, at) for at in (59.9, 60, 75)] == [3, 2, 1]
    minutes.record(other, True, 2, 200)
    assert minutes.all() == [(other, 200)]
