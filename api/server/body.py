"""The body of a request: received within bounds of bytes and time, decompressed, and read as its route declares it."""

import asyncio
import zlib
from collections.abc import Hashable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from api import errors
from api.http.turns import Turns
from api.parameters import Body, json_object, read_body
from api.route import Route
from api.server import ignored
from api.server.request_facts import RequestFacts

MAX_BODY_BYTES = 1024**2
_SHORT_BODY = 65_536
_LONG_BODIES, _LONG_BODIES_EACH = 32, 4  # longer ones that are received at a time, per process and caller
_SEND_WITHIN_S = 20.0


def refuse_large(request: web.BaseRequest) -> None:
    """Refuse a body by its announced length, before reading it. Other bodies are measured while they arrive."""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise errors.body_too_large()


class Bodies:
    """The bodies of all requests of a process."""

    def __init__(self) -> None:
        self._long = Turns(None, _LONG_BODIES, _LONG_BODIES_EACH, "requests with long bodies")

    async def read(
        self, route: Route, request: web.BaseRequest, facts: RequestFacts
    ) -> tuple[Mapping[str, Any], Body | None]:
        """The fields of a body as they were sent, and the body. Raises Refusal.

        A body is a JSON object or, in the route's own media type, the bare value of its only field. It is None if the
        route takes none. Ignored fields are noted in `facts`.
        """
        if route.body is None:
            return {}, None
        content = await self._content(request, facts.whose)
        is_raw = route.raw_media_type and request.content_type == route.raw_media_type
        sent = {route.body_fields[0].name: content.hex()} if is_raw else json_object(content)
        facts.ignored = [*facts.ignored, *ignored.body_fields(route.body_fields, sent)]
        return sent, read_body(route.body, route.body_fields, sent)

    async def _content(self, request: web.BaseRequest, whose: Hashable) -> bytes:
        """The content of a body. A long one, or one of unknown length, is received in a turn of its caller."""
        if request.content_length is not None and request.content_length <= _SHORT_BODY:
            return await _received(request)
        async with self._long.turn(whose):
            return await _received(request)


async def _received(request: web.BaseRequest) -> bytes:
    expected = request.headers.get("Expect")
    if expected is not None:
        if expected.lower() != "100-continue":
            raise errors.expectation_failed()
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    try:
        async with asyncio.timeout(_SEND_WITHIN_S):
            body = await request.read()
    except TimeoutError as cause:
        raise errors.request_timeout() from cause
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as cause:
        # NOTE: a ConnectionError is the client's: it has gone before the end of its body.
        raise errors.malformed_request() from cause
    return _decoded(body, ",".join(request.headers.getall("Content-Encoding", ())).strip().lower())


def _decoded(body: bytes, encoding: str) -> bytes:
    """The body without its Content-Encoding: gzip or deflate, the latter with or without a zlib header (RFC 9110).

    An empty body may have any encoding. Raises Refusal.
    """
    if encoding in ("", "identity") or not body:
        return body
    if encoding not in ("gzip", "deflate"):
        raise errors.malformed_request()
    bare = encoding == "deflate" and body[0] & 0x0F != zlib.DEFLATED
    window = 31 if encoding == "gzip" else -15 if bare else 15
    decompressor = zlib.decompressobj(window)
    try:
        decoded = decompressor.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error as cause:
        raise errors.malformed_request() from cause
    if len(decoded) > MAX_BODY_BYTES:
        raise errors.body_too_large()
    if not decompressor.eof or decompressor.unused_data:
        raise errors.malformed_request()
    return decoded
