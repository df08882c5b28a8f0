"""One structured line per event on standard error, for our events and those of libraries.

Modules write `log = structlog.get_logger()` and `log.info("store.rolled_back", slot_no=...)`.
"""

import logging
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from shared import schema
from shared.version import VERSION

# Below these levels, lines of a library are of no use to an operator, or repeat for every request.
LIBRARIES = {
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "ogmios": logging.WARNING,
    "websockets": logging.WARNING,
}


request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that is being answered. Every line that is logged meanwhile has it."""


def configure(level: str = "info", form: str | None = None) -> None:
    """Send every log line to standard error.

    `form` is "console" (for people, coloured on a terminal), "json", or None: console on a terminal, else json.
    May be called again; the last call counts.
    """
    terminal = sys.stderr.isatty()
    every_line: list[Processor] = [
        _add_request_id,
        structlog.stdlib.add_log_level,
        structlog.processors.MaybeTimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    rendering: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
        if is_json(form)
        else [structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[*every_line, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = _StandardError()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *every_line, structlog.stdlib.ExtraAdder()],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in LIBRARIES.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    logging.captureWarnings(True)


def is_json(form: str | None) -> bool:
    """Whether `configure` writes JSON for this form."""
    return form == "json" or (form is None and not sys.stderr.isatty())


def started(process: str, **details: object) -> None:
    """Log the name and the version of a long-running process, before its other lines.

    A process that refuses to start prints only its refusal.
    """
    about = {"process": process, "version": VERSION, "schema_version": schema.VERSION, "pid": os.getpid()}
    _first_line[:] = [partial(structlog.get_logger().info, "process.started", **about, **details)]


_first_line: list[Callable[[], None]] = []


def _add_request_id(_logger: object, _method: str, event: EventDict) -> EventDict:
    of_request = request_id.get()
    if of_request is not None:
        event["request_id"] = of_request
    return event


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr: a progress bar replaces it, so that lines appear above the bar."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    def emit(self, record: logging.LogRecord) -> None:
        if _first_line:
            _first_line.pop()()
        super().emit(record)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr
