"""Limits over outages of Valkey, without Valkey: what processes admit, whatever fails and whenever. Decision 0021."""

import random
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from api.keys.limits.state import AWAY, HOLD_S, OPEN, OWING, TRANSITIONS, Participant
from api.keys.limits.verdicts import Verdict
from api.keys.restrictions import KeyUse
from tests.pure.limits_world import STEP_S, Process, World

LIMIT = 12

pauses_s = st.sampled_from((0, 0, 0.05, 0.3, 0.3, 1, 3, 30))
requests = st.tuples(st.just("ask"), st.integers(0, 2), st.integers(1, LIMIT + 3), pauses_s)


def events(*names: str) -> st.SearchStrategy[list[tuple[str, int, int, float]]]:
    """Requests, mixed with what happens to Valkey, its data or one of the processes."""
    others = st.tuples(st.sampled_from(names), st.integers(0, 2), st.just(1), pauses_s)
    return st.lists(st.one_of(requests, others), min_size=4, max_size=20)


def happen(world: World, name: str, process: Process) -> None:
    """One event."""
    match name:
        case "ask":
            if not process.frozen:
                process.ask()
        case "data are lost":
            world.valkey.lose()
        case "Valkey is away":
            for each in world.processes:
                each.cut()
        case "one is cut off":
            process.cut()
        case "one is back":
            process.connected = True
        case "one gets an error":
            process.fail()
        case "one starts":
            world.start()
        case "one freezes":
            process.frozen = True
        case "one thaws":
            process.frozen = False


def played(seed: int, happened: list[tuple[str, int, int, float]]) -> World:
    """Three processes after these events."""
    world = World(3, LIMIT, random.Random(seed))
    for name, number, times, pause_s in happened:
        for _ in range(times):
            happen(world, name, world.processes[number])
        world.run(pause_s)
    return world


OUTAGES = (
    *("data are lost", "Valkey is away", "one is cut off", "one is back", "one is back"),
    *("one gets an error", "one freezes", "one thaws", "one starts"),
)


@given(st.integers(), events("data are lost"))
@settings(deadline=None)
def test_no_minute_admits_more_than_the_limit_when_data_are_lost(
    seed: int, happened: list[tuple[str, int, int, float]]
) -> None:
    """Unless they are lost so often that requests wait in vain for reports, which are lost too."""
    world = played(seed, happened)
    assert world.fullest() <= LIMIT or world.has_waited_in_vain


@given(st.integers(), events(*OUTAGES))
@example(0, [("ask", 0, 1, 0), ("ask", 1, 11, 0), ("ask", 0, 1, 0), ("one is cut off", 0, 1, 1)])
@settings(deadline=None)
def test_once_all_have_reported_valkey_counts_what_each_admitted_alone(
    seed: int, happened: list[tuple[str, int, int, float]]
) -> None:
    world = played(seed, happened)
    for at_s, is_settled in world.admitted:
        # What a process admits alone at the same moment follows: it would owe a report otherwise, which takes time.
        alone = sum(other_s == at_s and not other_is_settled for other_s, other_is_settled in world.admitted)
        assert not is_settled or world.before(at_s) - alone <= LIMIT


@given(st.integers(), events(*OUTAGES))
@settings(deadline=None)
def test_after_any_trouble_all_processes_share_the_limit_again_and_none_waits_for_long(
    seed: int, happened: list[tuple[str, int, int, float]]
) -> None:
    world = played(seed, happened)
    for process in world.processes:
        process.connected, process.frozen = True, False
    world.run(5)
    assert world.is_settled()
    assert {process.part.life.decode() for process in world.processes} == {world.valkey.life}
    assert all(process.part.processes == len(world.processes) for process in world.processes)


def test_every_transition_of_the_table_happens() -> None:
    rare = [("data are lost", 0, 1, 0.0), ("ask", 0, 2, 0.0), ("one gets an error", 0, 1, 1.0)]
    met = played(0, rare).met
    for seed in range(100):
        chance = random.Random(seed)
        names = ("ask", *OUTAGES)
        often = [(chance.choice(names), chance.randrange(3), 2, chance.choice((0, 0.05, 0.3, 1))) for _ in range(40)]
        met |= played(seed, often).met
    assert met == {(state, event) for state, events in TRANSITIONS.items() for event in events}


def test_a_process_that_starts_does_not_hold_the_requests_of_others() -> None:
    world = World(2, LIMIT, random.Random(1))
    world.start()
    for _ in range(100):
        world.run(STEP_S)
        assert [process.part.state for process in world.processes[:2]] == [OPEN, OPEN]
    assert world.processes[2].part.state is OPEN


def test_each_loss_of_data_is_waited_for() -> None:
    world = World(3, LIMIT, random.Random(1))
    for _ in range(3):
        world.valkey.lose()
        world.processes[0].ask()
        world.run(HOLD_S)
    assert (len(world.admitted), world.has_waited_in_vain) == (3, False)


def test_a_silent_process_delays_others_only_briefly_and_may_have_used_all_but_their_shares() -> None:
    world = World(3, LIMIT, random.Random(1))
    speaking, other, silent = world.processes
    silent.frozen = True
    world.valkey.lose()
    opens_at_s = world.now_s + 60
    for process in (speaking, speaking, *[other] * 6):  # fewer and more than their shares together
        process.ask()
    world.run(HOLD_S + 1)
    for process in (speaking, other) * (LIMIT // 2):
        process.ask()
        world.run(0.5)
    assert (len(world.admitted), world.refused) == (8, 12)
    assert HOLD_S <= world.longest_wait_s <= HOLD_S + 2 * STEP_S
    world.run(30)
    refused = speaking.part.take_held(world.lease, KeyUse(), world.now_s)
    assert isinstance(refused, Verdict)
    assert opens_at_s <= world.now_s + refused.reset_s <= opens_at_s + 2, "until the life is a minute old"
    world.run(30)
    assert speaking.part.state is other.part.state is OPEN


@pytest.mark.parametrize("trouble", ["Valkey is away", "data are lost"])
def test_what_is_reported_twice_counts_once_and_what_is_reported_in_part_is_completed(trouble: str) -> None:
    """All connections break, or data are lost again, at each step of the report."""
    for broken_after in range(12):
        world = World(2, LIMIT, random.Random(1))
        process = world.processes[0]
        for number in range(5_000):
            process.part.own.record(UUID(int=number % 7), True, 0, world.now_s)
        world.valkey.lose()
        world.run(broken_after * STEP_S)
        happen(world, trouble, process)
        for each in world.processes:
            each.connected = True
        world.run(5)
        assert len(world.valkey.minute) == 5_000, broken_after
        assert world.is_settled()


def test_admissions_during_an_outage_are_reported_to_the_data_that_survived_it() -> None:
    """One by one, in any order, each without those that Valkey knows."""
    world = World(3, LIMIT, random.Random(1))
    for process in world.processes:
        process.ask()
    world.run(1)
    for process in world.processes:
        process.cut()
        for _ in range(LIMIT):
            process.ask()
        assert process.part.state is AWAY
    assert len(world.admitted) == len(world.valkey.minute) + LIMIT - 3 == LIMIT
    for process in reversed(world.processes):
        process.connected = True
        world.run(1)
    world.run(HOLD_S)
    assert world.is_settled()
    assert len(world.valkey.minute) == LIMIT


def test_what_is_admitted_alone_while_a_heartbeat_is_on_its_way_is_reported() -> None:
    world = World(2, 1_000, random.Random(1))
    process = world.processes[0]
    for _ in range(200):
        process.ask()
        process.fail()
        world.run(STEP_S)
        assert process.part.state is not OPEN or not process.part.own.unreported
    world.run(5)
    assert world.is_settled()
    assert len(world.valkey.minute) >= len(world.admitted) > 100


def test_known_peers_are_kept_until_a_new_life_is_open() -> None:
    """Valkey, which has lost its data, learns from them who has yet to report."""
    part = Participant(b"first")
    part.heard(0, b"data1.1", 1, 3, 0, b"first", b"second", b"third")
    part.heard(1, b"data2.1", 0, 1, 60_000_000, b"first")
    assert (set(part.peers), part.processes) == ({b"first", b"second", b"third"}, 3)
    part.heard(2, b"data2.1", 1, 2, 0, b"first", b"second")
    assert (set(part.peers), part.processes) == ({b"first", b"second"}, 2)


@pytest.mark.parametrize("accepted", [True, False])
def test_the_answer_to_a_report_of_an_earlier_life_changes_nothing(accepted: bool) -> None:
    part = Participant(b"first")
    part.heard(0, b"data1.1", 0, 1, 60_000_000, b"first")
    earlier = part.next_report(0)
    assert earlier is not None and earlier.life == b"data1.1"
    part.heard(1, b"data1.2", 0, 1, 60_000_000, b"first")
    part.reported(earlier, accepted)
    assert (part.state, part.life) == (OWING, b"")
    now = part.next_report(1)
    assert now is not None and now.life == b"data1.2"
