"""The answers that a script of another origin may read (CORS): those below `/v1` except `/v1/admin`, those below
`/blockfrost`, and `/openapi.json`.

Keys travel in `Authorization` or `project_id`, never in cookies, so any origin may ask. Admin paths are for servers:
their answers have no CORS headers.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from aiohttp import web

from api.blockfrost import shape
from api.errors import FITTING_LIMIT
from api.repeats.caching import KNOWN_EPOCHS, METADATA_WARNING, SNAPSHOT_BLOCK

ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
EXPOSED = ANY_ORIGIN | {
    "Access-Control-Expose-Headers": f"Error-Code, ETag, {FITTING_LIMIT}, Idempotent-Replayed, Ignored-Fields, "
    f"{KNOWN_EPOCHS}, Link, {METADATA_WARNING}, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, "
    f"RateLimit-Reset, Requests-Counted, Retry-After, {SNAPSHOT_BLOCK}, X-Request-Id"
}
_PREFLIGHT = ANY_ORIGIN | {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, "
    "X-Request-Id, traceparent",
    "Access-Control-Max-Age": "7200",
}
_PREFLIGHT_OF_FACADE = _PREFLIGHT | {
    "Access-Control-Allow-Headers": "*",  # clients add their own, such as `lucid`
}


def is_shared(path: str) -> bool:
    """Whether any origin may read the answers of a path, given as in the table of routes or as in a request."""
    native = path.startswith("/v1/") and not path.startswith("/v1/admin")
    return native or path == "/openapi.json" or shape.covers(path)


def headers(path: str) -> Mapping[str, str]:
    """CORS headers of the answers of a path; none unless any origin may read them."""
    return EXPOSED if is_shared(path) else {}


def preflight(request: web.BaseRequest) -> web.Response | None:
    """The answer to a preflight request; None for other requests, and for paths that are not shared."""
    if request.method != "OPTIONS" or "Access-Control-Request-Method" not in request.headers:
        return None
    path = unquote(request.rel_url.raw_path)
    if not is_shared(path):
        return None
    return web.Response(status=204, headers=_PREFLIGHT_OF_FACADE if shape.covers(path) else _PREFLIGHT)
