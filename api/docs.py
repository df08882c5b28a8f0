"""The pages at / (links), /docs (Swagger UI on /openapi.json), /status and /console. They load from no other origin."""

from functools import cache
from pathlib import Path
from typing import Annotated

from aiohttp import web

from api import errors
from api.ask import Nothing, OpenAsk
from api.parameters import Question, Text

_LONGEST_NAME = 100
_STATIC = Path(__file__).parent / "static"
_FILES = {
    "swagger-ui-bundle.js": ("swagger-ui/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("swagger-ui/swagger-ui.css", "text/css"),
    "docs.js": ("docs.js", "text/javascript"),
    "docs.css": ("docs.css", "text/css"),
    "home.css": ("home.css", "text/css"),
    "status.js": ("status.js", "text/javascript"),
    "status.css": ("status.css", "text/css"),
    "console.css": ("console/console.css", "text/css"),
    **{file.name: (f"console/{file.name}", "text/javascript") for file in sorted((_STATIC / "console").glob("*.js"))},
    "preact.mjs": ("preact/preact.mjs", "text/javascript"),
    "htm.mjs": ("htm/htm.mjs", "text/javascript"),
    "uPlot.esm.js": ("uplot/uPlot.esm.js", "text/javascript"),
    "uPlot.min.css": ("uplot/uPlot.min.css", "text/css"),
    "pico.min.css": ("pico/pico.min.css", "text/css"),
}

MEDIA_TYPES = sorted({media_type for _, media_type in _FILES.values()})
"""The media types of the pages' files."""

# A page may load from its own origin only. Swagger UI's style sheet and Pico's have their icons in data: URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


class DocsFile(Question, frozen=True, kw_only=True):
    """A file of a page."""

    file: Annotated[str, Text(_LONGEST_NAME)]


async def home_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page with links, for people who open this API in a browser."""
    return _page("home.html")


async def docs_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show the interactive documentation of this API."""
    return _page("docs.html")


async def status_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page with the state of the service, which follows /v1/status."""
    return _page("status.html")


async def console_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page where partners administer accounts and API keys with their admin key."""
    return _page("console.html")


async def file(ask: OpenAsk[DocsFile]) -> web.Response:
    """Get a file of a page."""
    if ask.question.file not in _FILES:
        raise errors.not_found()
    path, media_type = _FILES[ask.question.file]
    # The console's modules fit together only if all of them are of the same version.
    caching = "no-cache" if path.startswith("console/") else "public, max-age=86400"
    headers = {**_HEADERS, "Content-Type": f"{media_type};charset=utf-8", "Cache-Control": caching}
    return web.Response(body=_content(path), headers=headers)


def _page(path: str) -> web.Response:
    headers = {**_HEADERS, "Content-Type": "text/html;charset=utf-8", "Content-Security-Policy": _POLICY}
    return web.Response(body=_content(path), headers=headers)


@cache
def _content(path: str) -> bytes:
    return (_STATIC / path).read_bytes()
