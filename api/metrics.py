"""What Prometheus reads: requests by route and status, latencies, and how far each network's index is.

No label names a key, an account or an address. With several workers each writes to files in PROMETHEUS_MULTIPROC_DIR,
which the parent of the workers sets, and whoever is asked adds them up.
"""

import os

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from api.route import Route

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
    method, path = (_NO_ROUTE, _NO_ROUTE) if route is None else (route.method, route.path)
    requests.labels(method, path, str(status)).inc()
    latency.labels(method, path).observe(took_s)


def text() -> bytes:
    """Everything measured so far, over all workers, in Prometheus' text format."""
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
