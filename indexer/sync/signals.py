"""The state of this indexer and of its node: for its heartbeats, and for the metrics that it serves.

Metrics are collected in threads of the metrics server. A standby only reports that it is one.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
from prometheus_client import REGISTRY, Counter, Histogram, Metric, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from indexer.ogmios import frames
from indexer.store.position import IndexPosition
from shared import gauges, leader, network_state, splits
from shared.network import Network
from shared.phase import Phase
from shared.splits import WatchedNode

_PREFIX = "ledgerline_indexer"
_blocks = Counter("ledgerline_indexer_blocks", "Blocks committed", ["network"])
_transactions = Counter("ledgerline_indexer_transactions", "Transactions committed", ["network"])
_commits = Histogram(
    "ledgerline_indexer_commit_seconds",
    "Time of a commit of blocks",
    ["network"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
_rollbacks = Histogram(
    "ledgerline_indexer_rollback_blocks",
    "Blocks that a rollback of the node undid",
    ["network"],
    buckets=network_state.ROLLBACK_DEPTHS,
)
_interruptions = Counter(
    "ledgerline_indexer_interruptions",
    "Errors of Postgres or the node after which the indexer reconnected",
    ["network"],
)


class _Tip(msgspec.Struct, frozen=True):
    slot_no: int
    block_no: int


class Signals:
    """The state of one indexer. `changed` is set when a heartbeat should be sent immediately.

    `left_s` returns the time until the index reaches a height of the node, None if it is unknown.
    """

    def __init__(self, network: Network, left_s: Callable[[int], float | None]) -> None:
        self.changed = asyncio.Event()
        self.network, self._left_s = network, left_s
        self._leading = self._connected = False
        self._since = self._node_moved_at = time.monotonic()
        self._node_tip: _Tip | None = None
        self._tip: _Tip | None = None
        self._phase = Phase.EMPTY
        self._nodes: list[WatchedNode] = []
        of_network = {"network": network.name}
        self._blocks, self._transactions = _blocks.labels(**of_network), _transactions.labels(**of_network)
        self._commits, self._rollbacks = _commits.labels(**of_network), _rollbacks.labels(**of_network)
        self._interruptions = _interruptions.labels(**of_network)

    def leads(self, *, leading: bool) -> None:
        """Note whether this indexer leads its network."""
        self._leading = leading

    def node_is(self, *, connected: bool) -> None:
        """Note whether the node is connected."""
        if connected != self._connected:
            self._connected, self._since = connected, time.monotonic()
            self.changed.set()

    def heard(self, tip: frames.NodePoint | None) -> None:
        """Note the node's tip; None is the origin."""
        if tip is not None and (moved_to := _Tip(tip.slot, tip.height)) != self._node_tip:
            self._node_tip, self._node_moved_at = moved_to, time.monotonic()

    def watched(self, nodes: list[WatchedNode]) -> None:
        """Note how the nodes stand to each other, if there are several."""
        if [node.state for node in nodes] != [node.state for node in self._nodes]:
            self.changed.set()
        self._nodes = nodes

    def stands_at(self, position: IndexPosition | None, phase: Phase) -> None:
        """Note the position and the phase of the index."""
        self._tip = None if position is None else _Tip(position.slot_no, position.block_no)
        if phase is not self._phase:
            self._phase = phase
            self.changed.set()

    def committed(
        self, slot_no: int, block_no: int, phase: Phase, blocks: int, transactions: int, took_s: float
    ) -> None:
        """Note a committed batch; its last block is the tip."""
        self._tip, self._phase = _Tip(slot_no, block_no), phase
        self._blocks.inc(blocks)
        self._transactions.inc(transactions)
        self._commits.observe(took_s)

    def rolled_back(self, blocks: int) -> None:
        """Note a rollback of this many blocks."""
        self._rollbacks.observe(blocks)

    def interrupted(self) -> None:
        """Note that an error ended the connections."""
        self._interruptions.inc()

    def report(self) -> leader.Report:
        """The content of a heartbeat now."""
        now, tip = time.monotonic(), self._node_tip
        return leader.Report(
            node_connected=self._connected,
            node_since_s=now - self._since,
            node_slot_no=None if tip is None else tip.slot_no,
            node_block_no=None if tip is None else tip.block_no,
            node_unmoved_s=None if tip is None else now - self._node_moved_at,
            sync_left_s=self._left_s(tip.block_no) if tip is not None and self._connected else None,
            finishing=self._phase is Phase.FINISHING,
            nodes=splits.encode_nodes(self._nodes).decode(),
        )

    def state(self) -> network_state.NetworkState | None:
        """The state of the network as far as this process knows it, None while it does not lead."""
        if not self._leading:
            return None
        report, now, tip = self.report(), datetime.now(UTC), self._tip
        heartbeat = leader.LastHeartbeat(
            network_id=self.network.network_id,
            retired=False,
            leading=True,
            beat_age_s=0.0,
            failing=[],
            version=None,
            node_connected=report.node_connected,
            node_since=now - timedelta(seconds=report.node_since_s),
            node_slot_no=report.node_slot_no,
            node_block_no=report.node_block_no,
            node_unmoved_s=report.node_unmoved_s,
            sync_left_s=report.sync_left_s,
            finishing=report.finishing,
            refused=None,
            lock_wait_s=None,
            nodes=report.nodes,
            splits="[]",
            now=now,
        )
        phase = Phase.LIVE if self._phase is Phase.LIVE else Phase.BULK
        index = None if tip is None else network_state.IndexState(phase, tip.slot_no, tip.block_no)
        # NOTE: without an age limit, since none of these metrics says whether the node has stalled.
        return network_state.derive(self.network, index, heartbeat, math.inf)


@contextmanager
def served(signals: Signals, host: str, port: int) -> Iterator[None]:
    """Serve the metrics of this process over HTTP until the block ends. Raises OSError if the port can't be opened."""
    collector = _Metrics(signals)
    REGISTRY.register(collector)
    try:
        server, thread = start_http_server(port, host)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    finally:
        REGISTRY.unregister(collector)


class _Metrics(Collector):
    """The gauges of an indexer, measured at each scrape."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    def collect(self) -> Iterator[Metric]:
        """The gauges of this scrape."""
        known = self._signals.state()
        states = [] if known is None else [known]
        leading = GaugeMetricFamily(f"{_PREFIX}_leading", "1 while this indexer leads its network", labels=["network"])
        leading.add_metric([self._signals.network.name], known is not None)
        yield leading
        yield gauges.build_info()
        yield from gauges.gauges(_PREFIX, gauges.OF_INDEX, states)
        yield gauges.phases(_PREFIX, states)
        yield from gauges.gauges(f"{_PREFIX}_node", gauges.OF_NODE, states)
