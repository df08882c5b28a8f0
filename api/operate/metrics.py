"""Prometheus metrics: requests, usage on its way to the tables, credentials that expire, webhooks, and each network's
index.

No label contains a key, an account or a Cardano address. With several API processes, each writes to files in
PROMETHEUS_MULTIPROC_DIR, which their parent sets; the process that is scraped sums them.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec
from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from api.ask import Nothing, OpenAsk
from api.operate import network_states
from api.route import Route
from api.services import Services
from api.sources.shared_reading import in_time
from api.usage import backlog
from shared import gauges, sql
from shared.network import by_id, by_name
from shared.phase import Phase

_NO_ROUTE = "none"
_MEASURED_WITHIN_S = 6.0  # of the 10 s after which Prometheus gives up by default


class _Expiring(msgspec.Struct, frozen=True):
    within_7_days: int
    within_30_days: int


class _PoolMetadata(msgspec.Struct, frozen=True):
    network_id: int
    fetched: int
    failed: int
    waiting: int
    new_fetched: int
    new_failed: int
    new_waiting: int


class _Webhooks(msgspec.Struct, frozen=True):
    state: str
    webhooks: int


class _Attempts(msgspec.Struct, frozen=True):
    result: str
    attempts: int


_sql = sql.beside(__file__)
_expiring = _sql.query("expiring", _Expiring)
_pool_metadata = _sql.query("pool_metadata", _PoolMetadata)
_webhooks = _sql.query("webhooks", _Webhooks)
_webhook_attempts = _sql.query("webhook_attempts", _Attempts)
_webhook_lag = _sql.values("webhook_lag", float)

requests = Counter("ledgerline_requests", "Requests answered", ["method", "route", "status"])
latency = Histogram(
    "ledgerline_request_seconds",
    "Time from a request's head to its answer",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


def expect(routes: Iterable[Route]) -> None:
    """Show these routes with 0 requests: Prometheus sees no increase of a counter that appears with its first one."""
    for route in routes:
        for status in (route.status, 500, 503):
            requests.labels(route.method, route.path, str(status))
    for status in (400, 404, 405):
        _labelled(None, status)


_answers: list[tuple[Route | None, int, float]] = []


def note(route: Route | None, status: int, took_s: float) -> None:
    """Queue one answer for the next `flush`."""
    _answers.append((route, status, took_s))


def flush() -> None:
    """Count the answers since the last call."""
    for route, status, took_s in _answers:
        counter, histogram = _labelled(route, status)
        counter.inc()
        histogram.observe(took_s)
    _answers.clear()


@cache
def _labelled(route: Route | None, status: int) -> tuple[Counter, Histogram]:
    """The metrics of these labels, looked up once."""
    method, path = (_NO_ROUTE, _NO_ROUTE) if route is None else (route.method, route.path)
    return requests.labels(method, path, str(status)), latency.labels(method, path)


async def get_metrics(ask: OpenAsk[Nothing]) -> web.Response:
    """Show the metrics of all processes that share this port, as Prometheus text."""
    ask.services.count_connections()
    flush()
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # it has no hints
    now = CollectorRegistry()
    now.register(_Measured(await ask.services.shared_readings.get("metrics", lambda: _measured(ask.services))))
    text = generate_latest(registry) + generate_latest(now)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Measured(Collector):
    """Metrics that were measured before the scrape."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        """The metrics of this scrape."""
        return self._metrics


async def _measured(services: Services) -> list[Metric]:
    """The metrics of the servers, without those that do not answer in time."""
    families = await asyncio.gather(
        in_time(_usage_metrics(services), _MEASURED_WITHIN_S, "metrics.without_usage"),
        in_time(_chain_metrics(services), _MEASURED_WITHIN_S, "metrics.without_database"),
        in_time(_expiring_credentials(services), _MEASURED_WITHIN_S, "metrics.without_database"),
        in_time(_pool_metadata_states(services), _MEASURED_WITHIN_S, "metrics.without_database"),
        in_time(_webhook_metrics(services), _MEASURED_WITHIN_S, "metrics.without_database"),
    )
    return [metric for metrics in families if metrics is not None for metric in metrics]


async def _usage_metrics(services: Services) -> list[Metric]:
    return list(backlog.gauges(await services.usage_backlog.measured()))


async def _chain_metrics(services: Services) -> list[Metric]:
    """The states of the networks, their rollbacks and comparisons, without retired networks."""
    states = [state for state in await network_states.network_states(services) if not state.retired]
    rollbacks = [(state.network, await network_states.rollbacks(services, by_name[state.network])) for state in states]
    comparisons = [
        (state.network, await network_states.comparisons(services, by_name[state.network])) for state in states
    ]
    return [
        gauges.build_info(),
        *gauges.gauges("ledgerline_chain", (*gauges.OF_INDEX, *_OF_CHAIN), states),
        gauges.phases("ledgerline_chain", states),
        gauges.rollbacks("ledgerline_chain_rollback_blocks", rollbacks),
        *gauges.gauges("ledgerline_node", gauges.OF_NODE, states),
        gauges.node_states("ledgerline_node", states),
        *gauges.gauges("ledgerline", _OF_INDEXER, states),
        *gauges.watched_nodes(states),
        *gauges.comparisons("ledgerline_ledger", comparisons),
    ]


async def _expiring_credentials(services: Services) -> list[Metric]:
    async with services.key_pool.acquire() as db:
        expiring = await _expiring.only(db)
    text = "Valid credentials that expire within this number of days"
    gauge = GaugeMetricFamily("ledgerline_credentials_expiring", text, labels=["days"])
    gauge.add_metric(["7"], expiring.within_7_days)
    gauge.add_metric(["30"], expiring.within_30_days)
    return [gauge]


async def _pool_metadata_states(services: Services) -> list[Metric]:
    async with services.key_pool.acquire() as db:
        rows = await _pool_metadata.all(db)
    labels = ["network", "state"]
    every = GaugeMetricFamily("ledgerline_pool_metadata", "Registered metadata of pools, by state", labels=labels)
    new = GaugeMetricFamily("ledgerline_pool_metadata_new", "Those first seen in the last 7 days", labels=labels)
    for row in rows:
        network = by_id[row.network_id].name
        for state in ("fetched", "failed", "waiting"):
            every.add_metric([network, state], getattr(row, state))
            new.add_metric([network, state], getattr(row, f"new_{state}"))
    return [every, new]


async def _webhook_metrics(services: Services) -> list[Metric]:
    async with services.key_pool.acquire() as db:
        states = {row.state: row.webhooks for row in await _webhooks.all(db)}
        attempts_made = {row.result: row.attempts for row in await _webhook_attempts.all(db)}
        lag_s = await _webhook_lag.only(db)
    webhooks = GaugeMetricFamily("ledgerline_webhooks", "Webhooks, by state", labels=["state"])
    for state in ("active", "paused", "failing", "ended"):
        webhooks.add_metric([state], states.get(state, 0))
    made = CounterMetricFamily("ledgerline_webhook_attempts", "Attempts to send events to webhooks", labels=["result"])
    for result in ("delivered", "failed", "gone", "not_kept"):
        made.add_metric([result], attempts_made.get(result, 0))
    text = "For how long an event could have been sent to a webhook and was not"
    return [webhooks, made, GaugeMetricFamily("ledgerline_webhook_lag_seconds", text, value=lag_s)]


_OF_CHAIN: Sequence[tuple[str, str, gauges.Value]] = (
    ("transactions", "Transactions indexed", lambda state: state.transactions),
    ("lag_slots", "Slots behind the node's tip", lambda state: state.lag_slots),
    ("live", "1 once the index can be queried", lambda state: state.phase is Phase.LIVE),
    ("ready", "1 while the network is live, recent enough and not retired", lambda state: state.ready),
)
_OF_INDEXER: Sequence[tuple[str, str, gauges.Value]] = (
    ("indexer_running", "1 while an indexer is running", lambda state: state.indexer_running),
    ("indexer_beat_age_seconds", "Age of the indexer's last heartbeat", lambda state: state.beat_age_s),
    (
        "indexer_lock_wait_seconds",
        "How long a commit of the indexer has waited for a lock of another session",
        lambda state: (state.lock_wait_s or 0) if state.indexer_running else None,
    ),
    (
        "pools_stake_mismatch",
        "Pools whose live stake differed from the node's at the last comparison",
        lambda state: state.pools_stake_mismatch,
    ),
)
