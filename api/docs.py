"""The page at /docs: Swagger UI, vendored, on /openapi.json. No request of it leaves the origin."""

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
}

# The page may talk to its own origin only. Swagger UI's own style sheet draws its icons from data: addresses.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


class DocsFile(Question, frozen=True, kw_only=True):
    """Which file of the page."""

    file: Annotated[str, Text(_LONGEST_NAME)]


async def page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler is given what was asked
    """Show a page to read and to try this API."""
    headers = {**_HEADERS, "Content-Type": "text/html;charset=utf-8", "Content-Security-Policy": _POLICY}
    return web.Response(body=_content("docs.html"), headers=headers)


async def file(ask: OpenAsk[DocsFile]) -> web.Response:
    """Send a part of that page."""
    if ask.question.file not in _FILES:
        raise errors.not_found()
    path, media_type = _FILES[ask.question.file]
    headers = {**_HEADERS, "Content-Type": f"{media_type};charset=utf-8", "Cache-Control": "public, max-age=86400"}
    return web.Response(body=_content(path), headers=headers)


@cache
def _content(path: str) -> bytes:
    return (_STATIC / path).read_bytes()
