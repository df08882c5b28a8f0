"""The progress of an index in the log: frequent while it catches up, rare at the node's tip."""

import pytest
from structlog.testing import capture_logs

from indexer.sync import progress
from shared.ledger import Point
from shared.network import PREVIEW


@pytest.mark.parametrize(("behind", "lines"), [(0, 10), (9, 10), (1_000, 60)])
def test_a_line_a_minute_at_the_tip(monkeypatch: pytest.MonkeyPatch, behind: int, lines: int) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    shown = progress.Progress(PREVIEW)
    with capture_logs() as logged:
        for block_no in range(120):
            shown.advance(Point(block_no * 20, b"\0" * 32), block_no, block_no + behind, 1, 0)
            now += 5.0
    assert len(logged) == lines
    assert (logged[-1]["left"] == "?") == (lines == 10), "at the tip, a rate says nothing of what is left"
