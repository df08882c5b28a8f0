"""The one word for the state of a network."""

from typing import get_args

import pytest

from api.operate.status import Word, state_of
from shared.network_state import NetworkState
from tests.pure.network_states import INDEX, behind, of

STATES: list[tuple[NetworkState, Word]] = [
    (of(), "in_step"),
    (of(retired=True), "retired"),
    (of(beat_age_s=30.0), "down"),
    (of(node_connected=False), "node_lost"),
    (of(behind(1_000), node_slot_no=INDEX.slot_no - 1_000, node_unmoved_s=1_000.0), "node_stalled"),
    (of(behind(1_000), node_slot_no=INDEX.slot_no - 1_000, node_unmoved_s=1.0), "syncing"),
    (of(None), "empty"),
    (of(behind(50_000, 2_000, "bulk")), "syncing"),
    (of(behind(50_000, 2_000, "bulk"), finishing=True), "syncing"),
    (of(behind(50_000, 2_000)), "behind"),
]


@pytest.mark.parametrize(("network", "word"), STATES, ids=lambda each: each if isinstance(each, str) else "")
def test_the_state_is_the_worst_that_is_known(network: NetworkState, word: Word) -> None:
    assert state_of(network) == word


def test_every_word_is_used() -> None:
    assert {word for _, word in STATES} == set(get_args(Word))
