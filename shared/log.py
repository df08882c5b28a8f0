"""One structured line per event on standard error, ours and the libraries' alike.

Modules write `log = structlog.get_logger()` and `log.info("store.appended", slot_no=...)`.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor

# Below these levels a library tells nothing that an operator could use, or tells it again for every request.
LIBRARIES = {
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "ogmios": logging.WARNING,
    "websockets": logging.WARNING,
}


def configure(level: str = "info", form: str | None = None) -> None:
    """Send every log line to standard error.

    `form` is "console" (for people, coloured on a terminal), "json", or None: console on a terminal, else json.
    May be called again; the last call holds.
    """
    terminal = sys.stderr.isatty()
    every_line: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    rendering: list[Processor] = (
        [structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=structlog.dev.plain_traceback)]
        if form == "console" or (form is None and terminal)
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
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


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what sys.stderr is now: a progress bar replaces it while it draws, and lines must appear above it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr
