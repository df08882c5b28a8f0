"""The sliding minutes of processes around the beginning of an outage of Valkey. Decision 0021."""

import random
from uuid import UUID

from api.keys.limits.local import LocalLimits
from api.keys.limits.verdicts import GoodKey, Verdict

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
