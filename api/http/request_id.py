"""Request id and W3C trace context of a request."""

import os
import re
from contextvars import ContextVar

_VALID = re.compile(r"(?!.*iiak_)[0-9A-Za-z_.:/+=@-]{1,128}")  # a key sent by mistake must not get into the log
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The trace of the request that is being answered (W3C Trace Context); requests that we send for it carry it on."""


def assign(sent: str | None) -> str:
    """The id of a request: its `X-Request-Id` if that is valid, otherwise a new one."""
    if sent is not None and _VALID.fullmatch(sent):
        return sent
    return os.urandom(16).hex()


def trace_of(sent: str | None) -> str | None:
    """A request's `traceparent`, None if it is absent or invalid."""
    return sent if sent is not None and _TRACEPARENT.fullmatch(sent) else None
