"""A service that is busy at first."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

REFUSED_TIMES = 2
QUOTA_OPENS_AGAIN_S = 86_400
MAX_PAUSE_S = 65

Requests = dict[str, list[str | None]]

_RATE_LIMITED = "/v1/admin/users"
_QUOTA_USED_UP = "/v1/key"
_SLOWED_DOWN = "/v1/network"
_SILENT = "/v1/status"
_CUT_OFF = "/v1/admin/users/u/suspend"
_PAUSES_S = {_QUOTA_USED_UP: QUOTA_OPENS_AGAIN_S, _SLOWED_DOWN: MAX_PAUSE_S}


@asynccontextmanager
async def busy_at_first() -> AsyncIterator[tuple[str, Requests]]:
    """Its address, and the idempotency keys of the requests to each path. The first REFUSED_TIMES to each are refused.

    Most get 503. `users` gets 429 for a rate limit, `network` 429 with the longest pause that clients accept, and `key`
    429 for a quota that resets in a day. `status` is never answered, and the first connection of a suspension is
    dropped.
    """
    requests: Requests = defaultdict(list)
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        requests[request.path].append(request.headers.get("Idempotency-Key"))
        if request.path == _CUT_OFF and len(requests[request.path]) == 1:
            assert request.transport is not None
            request.transport.abort()
        if request.path == _SILENT:
            await over.wait()
        if len(requests[request.path]) > REFUSED_TIMES:
            return web.json_response({"success": True, "data": {}})
        status = 429 if request.path in (_RATE_LIMITED, *_PAUSES_S) else 503
        retry_after_s = _PAUSES_S.get(request.path, 0)
        headers = {"Retry-After": str(retry_after_s), "Error-Code": "busy"}
        return web.json_response({"success": False, "error": "busy"}, status=status, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        try:
            yield str(server.make_url("")), requests
        finally:
            over.set()
