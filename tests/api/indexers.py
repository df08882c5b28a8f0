"""An indexer of preview as the API sees it: its session, and its heartbeats."""

from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec

from shared import leader
from shared.network import PREVIEW


class Indexer:
    """The session of an indexer, and the content of its heartbeats."""

    def __init__(self, writer: asyncpg.Connection) -> None:
        self.writer = writer

    async def beats(self, *failing: str, **report: Any) -> None:
        """A heartbeat; unless `report` differs, the node is connected and its tip is recent."""
        usual = leader.Report(True, 60.0, slot_now() - 5, 7, 5.0)
        known = msgspec.structs.replace(usual, **report)
        assert await leader.beat(self.writer, PREVIEW, self.writer.get_server_pid(), list(failing), known)


def slot_now(age_s: int = 0) -> int:
    """The slot of preview now, or `age_s` seconds ago."""
    return int((datetime.now(UTC) - PREVIEW.start_time).total_seconds()) - age_s
