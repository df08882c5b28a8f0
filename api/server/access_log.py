"""The access log: one line for each answer, on standard error like all other lines. It never contains a key.

JSON lines bypass structlog, which costs twenty times as much per line. Every write consists of whole lines and is short
enough for a pipe to take it atomically, so lines of processes that share standard error never mix.
"""

import logging
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import structlog

from api.keys.caller import AdminKey, ApiCaller
from api.server.request_facts import RequestFacts
from shared.log import is_json
from shared.settings import Settings

log = structlog.get_logger()

_MAX_WRITE_BYTES = 4_096  # PIPE_BUF of Linux
_EVENT = "request.answered"


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag=_EVENT):
    """One answer. `route` is the template of the path, `ms` the time until the answer was ready to be sent, and `bytes`
    the length of its body, 0 for a stream.
    """

    level: str
    timestamp: datetime
    request_id: str
    method: str
    route: str
    status: int
    ms: float
    bytes: int
    credential_id: UUID | None = None
    admin_key_id: UUID | None = None
    network: str | None = None
    traceparent: str | None = None


_encode = msgspec.json.Encoder().encode


class AccessLog:
    """The access log of one process, in the format of its other log lines."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = settings.access_log and logging.getLevelName(settings.log_level.upper()) <= logging.INFO
        self._json = is_json(settings.log_format)
        self._answers: list[_Answer] = []

    def note(self, facts: RequestFacts, status: int, size_bytes: int, took_s: float) -> None:
        """Queue one answer for the next `flush`."""
        if self._wanted:
            self._answers.append(_Answer(facts, status, size_bytes, took_s, time.time()))

    def flush(self) -> None:
        """Write the lines of the answers since the last call."""
        answers, self._answers = self._answers, []
        lines = map(_line, answers)
        if self._json:
            _write_json(lines)
            return
        for line in lines:
            fields = msgspec.to_builtins(line)
            del fields["event"], fields["level"]  # structlog adds both
            log.info(_EVENT, **fields)


class _Answer(msgspec.Struct, frozen=True):
    facts: RequestFacts
    status: int
    size_bytes: int
    took_s: float
    at_s: float  # since 1970


def _line(answer: _Answer) -> Line:
    facts = answer.facts
    of_api_key = facts.authenticated.key if isinstance(facts.authenticated, ApiCaller) else None
    return Line(
        level="info",
        timestamp=datetime.fromtimestamp(answer.at_s, UTC),
        request_id=facts.request_id,
        method=facts.method,
        route="none" if facts.route is None else facts.route.path,
        status=answer.status,
        ms=round(answer.took_s * 1000, 2),
        bytes=answer.size_bytes,
        credential_id=None if of_api_key is None else of_api_key.credential_id,
        admin_key_id=facts.authenticated.id if isinstance(facts.authenticated, AdminKey) else None,
        network=None if of_api_key is None else of_api_key.network.name,
        traceparent=facts.traceparent,
    )


def _write_json(lines: Iterable[Line]) -> None:
    together = bytearray()
    for line in lines:
        text = _encode(line)
        if len(together) + len(text) >= _MAX_WRITE_BYTES:
            _write(together)
            together.clear()
        together += text
        together += b"\n"
    _write(together)


def _write(lines: bytearray) -> None:
    if lines:
        sys.stderr.write(lines.decode())
        sys.stderr.flush()
