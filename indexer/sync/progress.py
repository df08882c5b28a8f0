"""The progress of the index: a bar on a terminal, otherwise a log line every ten seconds, at the tip every minute."""

import sys
import time
from collections import deque
from typing import NamedTuple

import structlog
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from indexer.sync.signals import Signals
from shared.ledger import Point
from shared.network import Network
from shared.network_state import duration, is_at_tip

log = structlog.get_logger()

_LOG_EVERY_S = 10.0
_LOG_AT_TIP_EVERY_S = 60.0
_WINDOW_S = 30.0


class _Commit(NamedTuple):
    """A moment of the monotonic clock, and the blocks that were committed until then."""

    at_s: float
    blocks: int


class Progress:
    """Counts committed blocks. `blocks` is their number since the start, `at` the last one in words.

    `signals` has what heartbeats and metrics report.
    """

    def __init__(self, network: Network) -> None:
        self.signals = Signals(network, self.left_s)
        self.blocks = 0
        self.at = "the beginning"
        self._network = network
        self._transactions = self._block_no = 0
        self._logged_at = 0.0
        self._recent: deque[_Commit] = deque([_Commit(time.monotonic(), 0)])
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            self._bar = Bar(
                TextColumn(f"[bold]{network.name}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("block {task.completed:,.0f} of {task.total:,.0f}  epoch {task.fields[epoch]}"),
                TextColumn("{task.fields[rate]:,.0f} blocks/s  {task.fields[left]} left"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task("", total=1, epoch=0, rate=0.0, left="?")

    def start(self) -> None:
        """Show the bar, on a terminal."""
        if self._bar is not None:
            self._bar.start()

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, tip: Point, block_no: int, node_block_no: int, blocks: int, transactions: int) -> None:
        """Report a committed batch: its last block, the node's tip, and its numbers of blocks and transactions."""
        self.blocks += blocks
        self._transactions += transactions
        self._block_no = block_no
        self.at = str(tip)
        now = time.monotonic()
        self._recent.append(_Commit(now, self.blocks))
        while now - self._recent[0].at_s > _WINDOW_S and len(self._recent) > 2:
            self._recent.popleft()
        rate = self._rate(now)
        left_s = self.left_s(node_block_no)
        left = "?" if left_s is None else duration(left_s)
        epoch_no = self._network.epoch_of(tip.slot_no)
        if self._bar is not None:
            total = max(node_block_no, block_no, 1)
            self._bar.update(self._task, completed=block_no, total=total, epoch=epoch_no, rate=rate, left=left)
        elif now - self._logged_at >= (_LOG_AT_TIP_EVERY_S if is_at_tip(node_block_no, block_no) else _LOG_EVERY_S):
            self._logged_at = now
            log.info(
                "follow.progress",
                network=self._network.name,
                block_no=block_no,
                slot_no=tip.slot_no,
                epoch_no=epoch_no,
                node_block_no=node_block_no,
                blocks_per_s=round(rate, 1),
                transactions=self._transactions,
                left=left,
            )

    def left_s(self, node_block_no: int) -> float | None:
        """Seconds until the index reaches a height at the present rate; None if it is there or the rate is unknown."""
        rate = self._rate(time.monotonic())
        if not rate or is_at_tip(node_block_no, self._block_no):
            return None
        return (node_block_no - self._block_no) / rate

    def _rate(self, now: float) -> float:
        """Blocks committed per second since the oldest of the recent commits."""
        oldest = self._recent[0]
        return (self.blocks - oldest.blocks) / max(now - oldest.at_s, 1e-3)
