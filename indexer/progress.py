"""How far the index is: a bar on a terminal, a line every ten seconds in a log."""

import sys
import time
from collections import deque

import structlog
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from shared.ledger import Point
from shared.network import Network

log = structlog.get_logger()

_TELL_EVERY_S = 10.0
_WINDOW_S = 30.0


class Progress:
    """Counts what is committed. `blocks` is the number of blocks since start, `at` the last one in words."""

    def __init__(self, network: Network) -> None:
        self.blocks = 0
        self.at = "the beginning"
        self._network = network
        self._transactions = 0
        self._told_at = 0.0
        self._recent: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
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
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, tip: Point, block_no: int, node_block_no: int, blocks: int, transactions: int) -> None:
        """A batch is committed: its last block, the node's, and what it held."""
        self.blocks += blocks
        self._transactions += transactions
        self.at = str(tip)
        now = time.monotonic()
        self._recent.append((now, self.blocks))
        while now - self._recent[0][0] > _WINDOW_S and len(self._recent) > 2:
            self._recent.popleft()
        began, before = self._recent[0]
        rate = (self.blocks - before) / max(now - began, 1e-3)
        left = _duration((node_block_no - block_no) / rate) if rate else "?"
        epoch_no = self._network.epoch_of(tip.slot_no)
        if self._bar is not None:
            total = max(node_block_no, block_no, 1)
            self._bar.update(self._task, completed=block_no, total=total, epoch=epoch_no, rate=rate, left=left)
        elif now - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
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


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
