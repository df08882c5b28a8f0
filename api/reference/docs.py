"""The pages at / (links), /docs (the reference), /status and /console. They load from no other origin."""

from functools import cache
from pathlib import Path
from typing import Annotated

from aiohttp import web

from api import errors
from api.ask import Nothing, OpenAsk
from api.parameters import Question, Text

_MAX_NAME_LENGTH = 100
_STATIC = Path(__file__).parents[1] / "static"
_OURS = ("shared", "reference", "status", "console")
_LIBRARIES = ("preact", "htm", "uplot", "pico")
_MEDIA_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"}
_SERVED = [
    file
    for folder in (*_OURS, *_LIBRARIES)
    for file in sorted((_STATIC / folder).iterdir())
    if file.suffix in _MEDIA_TYPES
]
_FILES = {file.name: file for file in _SERVED}
assert len(_FILES) == len(_SERVED), "files of different folders need different names"
_HEADER = b"<!-- header -->"

MEDIA_TYPES = sorted(set(_MEDIA_TYPES.values()))
"""The media types of the pages' files."""

# A page may load from its own origin only. Pico's style sheet has its icons in data: URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


class DocsFile(Question, frozen=True, kw_only=True):
    """A file of a page."""

    file: Annotated[str, Text(_MAX_NAME_LENGTH)]


async def get_home(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page with links, for people who open this API in a browser."""
    return _page("home")


async def get_docs(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show the interactive documentation of this API."""
    return _page("docs")


async def get_status_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page with the state of the service, which follows /v1/status."""
    return _page("status")


async def get_console_page(ask: OpenAsk[Nothing]) -> web.Response:  # noqa: ARG001 - every handler takes the ask
    """Show a page where partners administer accounts and API keys with their admin key."""
    return _page("console")


async def get_docs_file(ask: OpenAsk[DocsFile]) -> web.Response:
    """Get a file of a page."""
    path = _FILES.get(ask.question.file)
    if path is None:
        raise errors.not_found()
    # Our modules fit together only if all of them are of the same version.
    caching = "no-cache" if path.parent.name in _OURS else "public, max-age=86400"
    headers = {**_HEADERS, "Content-Type": f"{_MEDIA_TYPES[path.suffix]};charset=utf-8", "Cache-Control": caching}
    return web.Response(body=_content(path), headers=headers)


def _page(name: str) -> web.Response:
    headers = {**_HEADERS, "Content-Type": "text/html;charset=utf-8", "Content-Security-Policy": _POLICY}
    return web.Response(body=_with_header(name), headers=headers)


@cache
def _with_header(name: str) -> bytes:
    """A page with the header that all pages share, in which its own link is marked."""
    link = f'href="/{name}"'.encode()
    header = _content(_STATIC / "header.html").replace(link, link + b' aria-current="page"')
    return _content(_STATIC / f"{name}.html").replace(_HEADER, header)


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()
