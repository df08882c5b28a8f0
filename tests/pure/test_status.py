"""The one word for the state of a network."""

from typing import get_args

import msgspec
import pytest

from api.operate.status import Word, state_of
from shared.network_state import NetworkState
from shared.splits import ChainBlock, ChainSplit
from tests.pure.network_states import INDEX, LEAD, behind, state_with

SPLITS = msgspec.json.encode([ChainSplit(1, LEAD.now, None, ChainBlock(9, 9, "a"), ChainBlock(8, 8, "b"))]).decode()
STATES: list[tuple[NetworkState, Word]] = [
    (state_with(), "in_step"),
    (state_with(retired=True), "retired"),
    (state_with(beat_age_s=30.0), "down"),
    (state_with(node_connected=False), "node_lost"),
    (state_with(behind(1_000), node_slot_no=INDEX.slot_no - 1_000, node_unmoved_s=1_000.0), "node_stalled"),
    (state_with(behind(1_000), node_slot_no=INDEX.slot_no - 1_000, node_unmoved_s=1.0), "syncing"),
    (state_with(None), "empty"),
    (state_with(behind(50_000, 2_000, "bulk")), "syncing"),
    (state_with(behind(50_000, 2_000, "bulk"), finishing=True), "syncing"),
    (state_with(behind(50_000, 2_000)), "behind"),
    (state_with(splits=SPLITS), "split"),
    (state_with(behind(50_000, 2_000), splits=SPLITS), "split"),
    (state_with(node_connected=False, splits=SPLITS), "node_lost"),
]


@pytest.mark.parametrize(("network", "word"), STATES, ids=lambda each: each if isinstance(each, str) else "")
def test_the_state_is_the_worst_that_is_known(network: NetworkState, word: Word) -> None:
    assert state_of(network) == word


def test_every_word_is_used() -> None:
    assert {word for _, word in STATES} == set(get_args(Word))
