"""The metrics of networks' states: the same from the API, which reads the database, and from an indexer itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import get_args

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

from shared import schema, version
from shared.network_state import (
    ROLLBACK_BOUNDS,
    ROLLBACK_DEPTHS,
    Comparison,
    NetworkState,
    NodeState,
    RollbackDepth,
)
from shared.phase import Phase
from shared.splits import NodeWord

Value = Callable[[NetworkState], float | None]
"""The value of a gauge; if it is unknown (None), the gauge is omitted."""

OF_INDEX: Sequence[tuple[str, str, Value]] = (
    ("slot", "Slot of the last indexed block", lambda state: state.slot_no),
    ("block", "Height of the last indexed block", lambda state: state.block_no),
    ("epoch", "Epoch of the last indexed block", lambda state: state.epoch_no),
    ("tip_age_seconds", "Age of the last indexed block", lambda state: state.tip_age_s),
    ("lag_blocks", "Blocks behind the node's tip", lambda state: state.lag_blocks),
    ("lag_seconds", "Seconds between the last indexed block and the node's tip", lambda state: state.lag_s),
    (
        "network_synchronization",
        "Share of the time since the network's start that is indexed, 1 at the tip",
        lambda state: state.network_synchronization,
    ),
    ("sync_progress", "Share of the node's blocks that are indexed", lambda state: state.sync_progress),
    (
        "sync_seconds_left",
        "Seconds until all blocks of the node are indexed, at the present rate",
        lambda state: state.sync_left_s,
    ),
)
OF_NODE: Sequence[tuple[str, str, Value]] = (
    (
        "connected",
        "1 while the indexer is connected to its node",
        lambda state: state.node_connected if state.indexer_running else None,
    ),
    ("tip_slot", "Slot of the node's tip as last heard", lambda state: state.node_slot_no),
    ("tip_block", "Height of the node's tip as last heard", lambda state: state.node_block_no),
    ("tip_age_seconds", "Age of the node's tip as last heard", lambda state: state.node_tip_age_s),
    ("tip_unmoved_seconds", "Time since the node's tip changed", lambda state: state.node_tip_unmoved_s),
)


def gauges(prefix: str, kinds: Iterable[tuple[str, str, Value]], states: Sequence[NetworkState]) -> Iterator[Metric]:
    """A gauge of each kind, by network."""
    for name, text, value in kinds:
        family = GaugeMetricFamily(f"{prefix}_{name}", text, labels=["network"])
        for state in states:
            measured = value(state)
            if measured is not None:
                family.add_metric([state.network], measured)
        yield family


def phases(prefix: str, states: Sequence[NetworkState]) -> Metric:
    """1 for the phase that each network is in, 0 for the others."""
    return _states(f"{prefix}_phase", "1 for the current phase", "phase", tuple(Phase), states, lambda s: s.phase)


def node_states(prefix: str, states: Sequence[NetworkState]) -> Metric:
    """1 for the state that each network's node is in, 0 for the others."""
    text = "1 for the current state of the node"
    return _states(f"{prefix}_state", text, "state", get_args(NodeState), states, lambda s: s.node)


def rollbacks(name: str, depths: Iterable[tuple[str, Iterable[RollbackDepth]]]) -> Metric:
    """A histogram of the node's rollbacks by depth, by network."""
    family = HistogramMetricFamily(name, "Blocks that a rollback of the node undid", labels=["network"])
    for network, rows in depths:
        by_depth = {row.blocks_at_most: row for row in rows}
        of_depths = [by_depth.get(depth) for depth in ROLLBACK_BOUNDS]
        counts = accumulate(0 if row is None else row.rollbacks for row in of_depths)
        bounds = (*(f"{depth}.0" for depth in ROLLBACK_DEPTHS), "+Inf")
        family.add_metric(
            [network], list(zip(bounds, counts, strict=True)), sum_value=sum(row.blocks for row in by_depth.values())
        )
    return family


def comparisons(prefix: str, results: Iterable[tuple[str, Iterable[Comparison]]]) -> Iterator[Metric]:
    """How many values were compared with the node's ledger, and how many differed, by network and kind."""
    labels = ["network", "kind"]
    compared = GaugeMetricFamily(
        f"{prefix}_compared", "Values that the last comparison with the node's ledger compared", labels=labels
    )
    differences = GaugeMetricFamily(
        f"{prefix}_differences", "Values that differed from the node's ledger at the last comparison", labels=labels
    )
    for network, kinds in results:
        for result in kinds:
            compared.add_metric([network, result.kind], result.compared)
            differences.add_metric([network, result.kind], result.differing)
    yield compared
    yield differences


def watched_nodes(states: Sequence[NetworkState]) -> Iterator[Metric]:
    """The state and the tip of each node of the networks that have several, and how many chains differ."""
    of_nodes = [(state.network, node) for state in states for node in state.nodes]
    words = GaugeMetricFamily(
        "ledgerline_watched_node_state", "1 for the current state of the node", labels=["network", "node", "state"]
    )
    tips = GaugeMetricFamily(
        "ledgerline_watched_node_tip_block", "Height of the node's tip", labels=["network", "node"]
    )
    for network, node in of_nodes:
        for word in get_args(NodeWord):
            words.add_metric([network, str(node.number), word], word == node.state)
        if node.tip is not None:
            tips.add_metric([network, str(node.number)], node.tip.block_no)
    splits = GaugeMetricFamily(
        "ledgerline_chain_splits", "Nodes whose chain differs from the index", labels=["network"]
    )
    for state in states:
        splits.add_metric([state.network], len(state.splits))
    yield from (words, tips, splits)


def build_info() -> Metric:
    """Always 1, with the versions of this program and of the database's schema that it knows."""
    family = GaugeMetricFamily(
        "ledgerline_build_info", "Version of the program and its schema; always 1", labels=["version", "schema_version"]
    )
    family.add_metric([version.VERSION, str(schema.VERSION)], 1)
    return family


def _states(
    name: str,
    text: str,
    label: str,
    labels: Iterable[str],
    states: Iterable[NetworkState],
    present: Callable[[NetworkState], str],
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["network", label])
    for state in states:
        for value in labels:
            family.add_metric([state.network, value], value == present(state))
    return family
