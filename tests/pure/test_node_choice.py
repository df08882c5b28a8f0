"""Which node is tried when, by the indexer and by the API."""

from hypothesis import given
from hypothesis import strategies as st

from api.sources.node_addresses import AGAIN_AFTER_S, NodeAddresses
from indexer.sync.choice import FAILOVER_AFTER_S, NodeChoice

UNREACHABLE, REFUSES, FITS = "unreachable", "refuses", "fits"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def chosen(nodes: NodeChoice, states: list[str], attempts: int) -> tuple[list[int], bool | None]:
    """The numbers of the nodes that are tried, and whether the last one is followed strictly; None if none is."""
    tried = []
    for _ in range(attempts):
        attempt = nodes.next()
        tried.append(attempt.number)
        match states[attempt.number - 1]:
            case "fits":
                nodes.follows()
                return tried, attempt.strict
            case "refuses" if attempt.strict:
                nodes.refused(attempt)
            case "refuses":
                nodes.follows()
                return tried, False
            case _:
                nodes.lost()
    return tried, None


@given(st.lists(st.sampled_from([UNREACHABLE, REFUSES, FITS]), min_size=2, max_size=8))
def test_the_first_node_that_fits_is_followed_and_else_the_first_one_if_it_answers(states: list[str]) -> None:
    clock = Clock()
    nodes = NodeChoice([f"ws://{number}" for number in range(len(states))], clock)
    clock.now_s += FAILOVER_AFTER_S
    tried, strict = chosen(nodes, states, 3 * len(states))
    if FITS in states:
        assert (tried, strict) == ([*range(1, states.index(FITS) + 2)], True)
    elif states[0] == REFUSES:
        assert (tried, strict) == ([*range(1, len(states) + 1), 1], False)
    else:
        assert (tried, strict) == ([*range(1, len(states) + 1)] * 3, None)


def test_a_lost_node_is_waited_for_before_another_is_tried() -> None:
    clock = Clock()
    nodes = NodeChoice(["ws://a", "ws://b"], clock)
    nodes.next()
    nodes.follows()
    clock.now_s += 1_000
    nodes.lost()
    clock.now_s += FAILOVER_AFTER_S - 1
    assert chosen(nodes, [UNREACHABLE, FITS], 5) == ([1] * 5, None)
    clock.now_s += 1
    assert chosen(nodes, [UNREACHABLE, FITS], 5) == ([2], True)
    assert nodes.next().number == 2, "it stays"


def test_a_single_node_is_followed_whatever_its_chain() -> None:
    nodes = NodeChoice(["ws://a"], Clock())
    attempt = nodes.next()
    assert (attempt.number, attempt.strict) == (1, False)
    assert not nodes.refused(attempt)
    assert nodes.next() == attempt


def test_another_attempt_is_made_at_once_only_if_there_is_one() -> None:
    clock = Clock()
    nodes = NodeChoice(["ws://a", "ws://b"], clock)
    assert not nodes.refused(nodes.next()), "the first one is waited for"
    nodes = NodeChoice(["ws://a", "ws://b"], clock)
    clock.now_s += FAILOVER_AFTER_S
    assert nodes.refused(nodes.next())
    assert nodes.refused(nodes.next()), "the first one is left, as if it were alone"
    assert not nodes.refused(nodes.next())
    nodes.next()
    nodes.lost()
    assert not nodes.refused(nodes.next()), "both have been tried"


def test_all_connections_of_the_api_move_to_the_next_node_and_back() -> None:
    clock = Clock()
    nodes = NodeAddresses(["ws://a", "ws://b"], clock)
    assert nodes.in_use == "ws://a"
    nodes.failed("ws://a")
    assert nodes.in_use == "ws://b"
    nodes.failed("ws://a")
    assert nodes.in_use == "ws://b", "a late failure of the first moves nothing"
    clock.now_s += AGAIN_AFTER_S
    assert nodes.in_use == "ws://a"
    nodes.failed("ws://a")
    nodes.failed("ws://b")
    assert nodes.in_use == "ws://a"


def test_the_api_returns_to_the_node_that_the_indexer_follows() -> None:
    clock = Clock()
    nodes = NodeAddresses(["ws://a", "ws://b", "ws://c"], clock)
    nodes.prefer(2)
    assert nodes.in_use == "ws://b"
    nodes.failed("ws://b")
    nodes.prefer(2)
    assert nodes.in_use == "ws://c", "it is not tried again at each look"
    clock.now_s += AGAIN_AFTER_S
    assert nodes.in_use == "ws://b"
