"""What Prometheus reads: requests by route and status, latencies, and how far each network's index is.

No label names a key, an account or an address. With several workers each writes to files in PROMETHEUS_MULTIPROC_DIR,
which the parent of the workers sets, and whoever is asked adds them up.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cache

import asyncpg
import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from api import health
from api.ask import Nothing, OpenAsk
from api.route import Route
from shared.lifecycle import UNREACHABLE

log = structlog.get_logger()

_NO_ROUTE = "none"

requests = Counter("ledgerline_requests", "Requests answered", ["method", "route", "status"])
latency = Histogram(
    "ledgerline_request_seconds",
    "Time from a request's head to its answer",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


def observe(route: Route | None, status: int, took_s: float) -> None:
    """Count one answer."""
    counter, histogram = _of(route, status)
    counter.inc()
    histogram.observe(took_s)


@cache
def _of(route: Route | None, status: int) -> tuple[Counter, Histogram]:
    """What counts such answers, looked up by its labels once."""
    method, path = (_NO_ROUTE, _NO_ROUTE) if route is None else (route.method, route.path)
    return requests.labels(method, path, str(status)), latency.labels(method, path)


async def metrics(ask: OpenAsk[Nothing]) -> web.Response:
    """Show everything measured so far, over all workers, in Prometheus' text format."""
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # it has no hints
    chains = CollectorRegistry()
    try:
        chains.register(_Chains(await health.standings(ask.services)))
    except (*UNREACHABLE, asyncpg.InterfaceError) as cause:
        log.warning("metrics.without_database", cause=f"{type(cause).__name__}: {cause}")
    text = generate_latest(registry) + generate_latest(chains)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Chains(Collector):
    """How far each network is indexed, as the database has it at this moment."""

    def __init__(self, standings: Sequence[health.Standing]) -> None:
        self._standings = standings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges of this scrape."""
        slot = GaugeMetricFamily("ledgerline_chain_slot", "Slot of the last block indexed", labels=["network"])
        lag = GaugeMetricFamily("ledgerline_chain_lag_slots", "Slots behind the node's tip", labels=["network"])
        live = GaugeMetricFamily("ledgerline_chain_live", "1 once histories can be asked", labels=["network"])
        running = GaugeMetricFamily("ledgerline_indexer_running", "1 while an indexer is connected", labels=["network"])
        unlike = GaugeMetricFamily(
            "ledgerline_pools_unlike",
            "Pools whose live stake was not the node's when last compared",
            labels=["network"],
        )
        for standing in self._standings:
            slot.add_metric([standing.network], standing.slot_no)
            live.add_metric([standing.network], standing.phase == "live")
            running.add_metric([standing.network], standing.indexer_running)
            if standing.lag_slots is not None:
                lag.add_metric([standing.network], standing.lag_slots)
            if standing.unlike_pools is not None:
                unlike.add_metric([standing.network], standing.unlike_pools)
        yield from (slot, lag, live, running, unlike)
