"""`/metrics`: what the calling key's credential has used in the last 30 days, as `GET /v1/admin/usage` counts it."""

from collections import Counter
from uuid import UUID

import msgspec

from api import errors
from api.ask import KeyAsk, Nothing
from api.blockfrost.shape import ROOT
from shared import sql


class Calls(msgspec.Struct, frozen=True):
    """The requests of a day (UTC), which begins at `time`, in seconds since 1970."""

    time: int
    calls: int


class EndpointCalls(msgspec.Struct, frozen=True):
    """The same of the paths that begin with a segment, such as `blocks`, here or below /v1."""

    time: int
    calls: int
    endpoint: str


class _Day(msgspec.Struct, frozen=True):
    began_at_s: int
    requests: int


class _EndpointDay(msgspec.Struct, frozen=True):
    began_at_s: int
    endpoint: str
    requests: int


_sql = sql.beside(__file__)
_days = _sql.query("days", _Day)
_endpoint_days = _sql.query("endpoint_days", _EndpointDay)


async def by_day(ask: KeyAsk[Nothing]) -> list[Calls]:
    """List the requests of this key's credential by day. Days without requests are left out."""
    return [Calls(row.began_at_s, row.requests) for row in await _read(ask, _days)]


async def by_endpoint(ask: KeyAsk[Nothing]) -> list[EndpointCalls]:
    """List the requests of this key's credential by day and by the first segment of their paths."""
    calls = Counter[tuple[int, str]]()
    for row in await _read(ask, _endpoint_days):
        calls[row.began_at_s, _segment(row.endpoint)] += row.requests
    return [EndpointCalls(began_at_s, requests, segment) for (began_at_s, segment), requests in sorted(calls.items())]


def _segment(endpoint: str) -> str:
    """The first segment of a path below the façade or /v1; `/` for the façade's root. `endpoint` is `GET /v1/key`.

    An endpoint without a path (UNKNOWN_ENDPOINT) is its own segment.
    """
    _, _, path = endpoint.rpartition(" ")
    below = path.removeprefix(ROOT).removeprefix("/v1")
    return below.removeprefix("/").split("/")[0] or "/"


async def _read(ask: KeyAsk[Nothing], query: sql.Query[sql.Row]) -> list[sql.Row]:
    key = await ask.services.callers.read_key(ask.key_hash)
    if key is None:
        raise errors.invalid_api_key()
    owner: UUID = key.credential_id
    async with ask.services.admin_pool.turn(owner) as pool, pool.acquire() as db:
        return await query.all(db, owner)
