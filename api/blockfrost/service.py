"""The service itself: `/`, `/health` and `/health/clock`, for anyone."""

import time

import msgspec

from api.ask import Nothing, OpenAsk
from api.blockfrost.shape import ROOT
from api.errors import Refusal
from api.operate import health
from shared.version import VERSION


class Root(msgspec.Struct, frozen=True):
    """The path of the API, and the version of this service."""

    url: str
    version: str


class Health(msgspec.Struct, frozen=True):
    """Whether chain requests are answered and counted, as `/ready` says."""

    is_healthy: bool


class Clock(msgspec.Struct, frozen=True):
    """The time of this server in milliseconds since 1970."""

    server_time: int


async def root(ask: OpenAsk[Nothing]) -> Root:  # noqa: ARG001 - every handler takes the ask
    """Get the version."""
    return Root(ROOT, VERSION)


async def is_healthy(ask: OpenAsk[Nothing]) -> Health:
    """Check whether requests can be answered."""
    try:
        await health.get_readiness(ask)
    except Refusal:
        return Health(is_healthy=False)
    return Health(is_healthy=True)


async def clock(ask: OpenAsk[Nothing]) -> Clock:  # noqa: ARG001 - every handler takes the ask
    """Get the server's time."""
    return Clock(time.time_ns() // 1_000_000)
