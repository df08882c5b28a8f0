"""States of preview with different indexes or heartbeats, at one moment."""

from typing import Any

import msgspec

from shared import network_state
from shared.leader import LastHeartbeat
from shared.network import PREVIEW
from shared.network_state import IndexState, NetworkState

OLD_S = 300
NOW_SLOT = 100_000_000
LEAD = LastHeartbeat(
    network_id=1,
    retired=False,
    leading=True,
    beat_age_s=1.0,
    failing=[],
    version="1",
    node_connected=True,
    node_since=None,
    node_slot_no=NOW_SLOT - 15,
    node_block_no=4_000,
    node_unmoved_s=15.0,
    sync_left_s=None,
    finishing=False,
    refused=None,
    lock_wait_s=None,
    nodes="[]",
    splits="[]",
    now=PREVIEW.slot_time(NOW_SLOT),
)
INDEX = IndexState("live", NOW_SLOT - 15, 4_000)


def state_with(index: IndexState | None = INDEX, **lead: Any) -> NetworkState:
    """The state of an index under a leader in step, whose heartbeat differs by `lead`."""
    return network_state.derive(PREVIEW, index, msgspec.structs.replace(LEAD, **lead), OLD_S)


def behind(slots: int, blocks: int = 0, phase: str = "live") -> IndexState:
    """An index that is `slots` behind the clock and `blocks` behind the node."""
    return IndexState(phase, NOW_SLOT - slots, 4_000 - blocks)
