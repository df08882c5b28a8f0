"""The state of a network over time: no figure stays green once its reference is lost."""

import msgspec
import pytest

from shared import network_state
from shared.leader import SILENT_AFTER_S
from shared.network import MAINNET, PREVIEW
from shared.network_state import IndexState, NetworkState
from tests.pure.network_states import LEAD, NOW_SLOT, OLD_S, behind, state_with


def test_in_step() -> None:
    found = state_with()
    assert (found.ready, found.node, network_state.reasons(found)) == (True, "followed", [])
    assert (found.tip_age_s, found.node_tip_age_s) == (15, 15)
    assert (found.lag_blocks, found.lag_slots, found.lag_s) == (0, 0, 0)
    assert (found.network_synchronization, found.sync_progress, found.sync_left_s) == (1.0, 1.0, None)


# The event, then `node`, `ready`, and the reasons.
FAULTS: dict[str, tuple[NetworkState, str, bool, list[str]]] = {
    "the node has just been lost": (
        state_with(node_connected=False),
        "lost",
        True,
        ["the node of preview is not connected"],
    ),
    "the node has long been lost": (
        state_with(behind(3_700), node_connected=False, node_slot_no=NOW_SLOT - 3_700, node_unmoved_s=3_700),
        "lost",
        False,
        ["the node of preview is not connected", "the last block of preview is 1 h 01 min old"],
    ),
    "the node has stalled": (
        state_with(behind(720), node_slot_no=NOW_SLOT - 720, node_unmoved_s=720),
        "stalled",
        False,
        [
            "the node of preview is connected, but its tip has not moved for 12 min 00 s: the node has stalled",
            "the last block of preview is 12 min 00 s old",
        ],
    ),
    "the node catches up itself": (
        state_with(behind(200_000), node_slot_no=NOW_SLOT - 200_000, node_unmoved_s=2),
        "syncing",
        False,
        [
            "the node of preview is syncing: its tip is 2 d 7 h old",
            "the last block of preview is 2 d 7 h old",
        ],
    ),
    "the index catches up": (
        state_with(behind(4_000, 200), sync_left_s=65.2),
        "followed",
        False,
        ["the last block of preview is 1 h 06 min old: 95.0% of the blocks, about 1 min 05 s left"],
    ),
    "a commit waits for a lock": (
        state_with(behind(75, 3), lock_wait_s=12.4),
        "followed",
        True,
        [
            "a commit of the indexer of preview has waited 12 s for a lock that another session of the database holds, "
            "and the node is 3 blocks ahead"
        ],
    ),
    "a commit has waited for a moment": (state_with(behind(75, 3), lock_wait_s=1.0), "followed", True, []),
    "a commit waits that is not of a block": (state_with(lock_wait_s=12.4), "followed", True, []),
    "the indexer was killed": (
        state_with(behind(400), leading=False),
        "unknown",
        False,
        ["no indexer is running for preview", "the last block of preview is 6 min 40 s old"],
    ),
    "the indexer hangs": (
        state_with(beat_age_s=SILENT_AFTER_S),
        "unknown",
        True,
        ["no indexer is running for preview"],
    ),
    "the indexer has stopped by itself": (
        state_with(leading=False, refused="its node is on another network"),
        "unknown",
        True,
        ["no indexer is running for preview (the last one stopped because its node is on another network)"],
    ),
    "a task fails": (
        state_with(failing=["ledger state"]),
        "followed",
        True,
        ["the background task ledger state of the indexer of preview fails"],
    ),
    "nothing is indexed yet": (state_with(None), "followed", False, ["nothing is indexed for preview yet"]),
    "an indexer ran once, against a wrong node": (
        state_with(None, leading=False, refused="its node is on another network"),
        "unknown",
        False,
        [
            "no indexer is running for preview (the last one stopped because its node is on another network)",
            "nothing is indexed for preview yet (if it never should be: python -m api networks retire preview)",
        ],
    ),
    "the first sync": (
        state_with(behind(50_000, 1_000, "bulk"), sync_left_s=4_320.0),
        "followed",
        False,
        ["preview is syncing: 75.0% of the blocks, about 1 h 12 min left, then indexes are built"],
    ),
    "the end of the first sync, in its first step": (
        state_with(behind(50_000, 1_000, "bulk"), finishing=True, node_unmoved_s=9_999, node_slot_no=NOW_SLOT - 9_999),
        "unknown",
        False,
        ["preview is syncing: all blocks are read, and the indexes are being built"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_distinguished_from_the_others(fault: str) -> None:
    found, node, ready, reasons = FAULTS[fault]
    assert (found.node, found.ready, network_state.reasons(found)) == (node, ready, reasons)


@pytest.mark.parametrize("blocks", [0, 9, 10])
def test_no_time_is_left_once_the_index_has_reached_the_tip_of_the_last_heartbeat(blocks: int) -> None:
    found = state_with(behind(15, blocks), sync_left_s=1.2)
    assert found.sync_left_s == (1 if blocks == 10 else None)


def test_no_lag_is_reported_to_a_node_that_is_not_heard() -> None:
    """The last tip heard is ours: the lag to it would stay 0."""
    for found in (state_with(node_connected=False), state_with(leading=False), state_with(beat_age_s=SILENT_AFTER_S)):
        assert (found.lag_blocks, found.lag_slots, found.lag_s) == (None, None, None)
        assert (found.node_block_no, found.node_tip_age_s) == (4_000, 15), "the last tip heard is told, with its age"


def test_a_retired_network_is_not_ready() -> None:
    assert state_with().ready and not state_with(retired=True).ready


def test_the_lag_is_in_blocks_slots_and_seconds() -> None:
    index = IndexState("live", MAINNET.byron_slots - 10, 100)
    lead = msgspec.structs.replace(LEAD, node_slot_no=MAINNET.byron_slots + 5, node_block_no=107)
    found = network_state.derive(MAINNET, index, lead, OLD_S)
    assert (found.lag_blocks, found.lag_slots, found.lag_s) == (7, 15, 10 * 20 + 5)


@pytest.mark.parametrize(
    ("age_s", "share"), [(0, 1.0), (120, 1.0), (121, 0.99999), (50_000_000, 0.5), (100_000_000, 0.0)]
)
def test_synchronization_is_that_of_ogmios(age_s: int, share: float) -> None:
    assert network_state.synchronization(PREVIEW, NOW_SLOT - age_s, LEAD.now) == share


def test_a_block_from_the_future_is_new() -> None:
    found = state_with(behind(-30))
    assert (found.tip_age_s, found.ready, found.network_synchronization) == (0, True, 1.0)
