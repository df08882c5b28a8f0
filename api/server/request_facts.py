"""The facts of one request, collected while it is being answered, for the metrics and the access log."""

import time
from collections.abc import Hashable, Sequence

import msgspec
from aiohttp import web

from api.http import request_id
from api.keys import caller
from api.route import Route
from shared import log as logs


class RequestFacts(msgspec.Struct):
    """A request, from the arrival of its head on."""

    started_s: float  # on the performance counter
    method: str
    remote: str | None  # the address of the connection's other end
    request_id: str
    traceparent: str | None
    route: Route | None = None
    authenticated: caller.ApiCaller | caller.AdminKey | None = None
    ignored: Sequence[str] = ()  # parameters and body fields
    events: int = 0  # of a subscription, in the answer

    @classmethod
    def of(cls, request: web.BaseRequest) -> "RequestFacts":
        """The beginning of a request. From now on, every line that this task logs has its id."""
        headers = request.headers
        facts = cls(
            time.perf_counter(),
            request.method,
            request.remote,
            request_id.assign(headers.get("X-Request-Id")),
            request_id.trace_of(headers.get("traceparent")),
        )
        logs.request_id.set(facts.request_id)
        request_id.traceparent.set(facts.traceparent)
        return facts

    @property
    def whose(self) -> Hashable:
        """Whose turns and shares the request uses: its credential's, its admin key's, or those of its address."""
        who = self.authenticated
        if isinstance(who, caller.AdminKey):
            return who.id
        return self.remote if who is None else who.key.credential_id

    def took_s(self) -> float:
        """The time since the request's head arrived."""
        return time.perf_counter() - self.started_s
