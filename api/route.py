"""The declaration of a route, used by the router, the request parser and /openapi.json."""

import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypedDict, Unpack, get_args, get_origin, get_type_hints
from urllib.parse import unquote

import msgspec

from api.answers import ChainAnswer, ChainPage
from api.ask import (
    AdminAsk,
    ChainAsk,
    ChainChange,
    ChainPost,
    EventsAsk,
    KeyAsk,
    Nothing,
    OpenAsk,
    PrimaryAsk,
    StreamAsk,
)
from api.errors import Refusal, method_not_allowed, not_found
from api.keys.caller import BOOTSTRAP, PERMISSIONS
from api.keys.restrictions import SCOPES
from api.parameters import Body, Field, Question, fields_of

ACCESS = frozenset(("open", "api key", BOOTSTRAP, *PERMISSIONS))
"""Who may call a route: everybody, API keys, the bootstrap key, or admin keys with a permission."""

JSON = "application/json"

REQUESTS_COUNTED = "Requests-Counted"
"""Shows that a bulk request counts as one for usage, rate limit and quota, regardless of how many ids it has."""

Handler = Callable[[Any], Awaitable[Any]]
Refusing = Callable[[], Refusal]
_NO_FIELDS: Mapping[str, str] = {}
_OF_API_KEYS = (ChainAsk, PrimaryAsk, ChainPost, ChainChange, EventsAsk, StreamAsk, KeyAsk)


class Options(TypedDict, total=False):
    """What only some routes declare.

    `sorted_by` says for /openapi.json what `order` sorts by. `set_by` names, for fields that the route ignores, the
    endpoints that change them. A handler of other `media_types` than JSON returns the whole response. In the
    `raw_media_type`, the body may be the bare value of its only field. `headers` names those that only some routes
    send; `api/server/app.py` sends REQUESTS_COUNTED if it is among them.
    """

    sorted_by: str
    set_by: Mapping[str, str]
    status: HTTPStatus
    media_types: Sequence[str]
    raw_media_type: str
    headers: Sequence[str]


class Route:
    """One method on one path template, its handler, and who may call it.

    The handler's name is that of the operation in /openapi.json and the clients, and its annotations declare question,
    body and answer: `async def get_user(ask: AdminAsk[Question, Body]) -> Answer`. `scope` is what an API key must
    cover (`api/keys/restrictions.py`), "" if any key may call the route. For /openapi.json, `errors` lists the refusals
    that the handler raises.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler,
        access: str,
        scope: str = "",
        errors: Sequence[Refusing] = (),
        **options: Unpack[Options],
    ) -> None:
        self.method, self.path, self.handler, self.operation = method, path, handler, handler.__name__
        self.access, self.scope, self.errors = access, scope, tuple(errors)
        self.sorted_by, self.set_by = options.get("sorted_by", ""), options.get("set_by", _NO_FIELDS)
        self.status = int(options.get("status", HTTPStatus.OK))
        self.media_types, self.headers = tuple(options.get("media_types", (JSON,))), tuple(options.get("headers", ()))
        self.raw_media_type = options.get("raw_media_type", "")
        self.name = f"{method} {path}"
        self.number = zlib.crc32(self.name.encode())  # names the route in spools; the same in every version

        hints = get_type_hints(handler)
        asked = hints["ask"]
        self.ask: type = get_origin(asked) or asked
        question, body = (*get_args(asked), None, None)[:2]
        self.question: type[Question] = question or Nothing
        self.body: type[Body] | None = None if body is type(None) else body
        self.answer: Any = hints["return"]
        kind = get_origin(self.answer) or self.answer
        # executed once per `Idempotency-Key`
        self.runs_once = method == "POST" and self.ask in (AdminAsk, ChainChange, EventsAsk)
        self.may_be_kept = method == "GET" and self.ask is ChainAsk and self.media_types == (JSON,)
        self.answers_from_tip = isinstance(kind, type) and issubclass(kind, ChainAnswer | ChainPage)
        self.fields: tuple[Field, ...] = fields_of(self.question)
        self.body_fields: tuple[Field, ...] = fields_of(self.body) if self.body else ()

        self.parameters = tuple(
            (position, segment[1:-1]) for position, segment in enumerate(_segments(path)) if _is_parameter(segment)
        )
        self._check()

    def _check(self) -> None:
        """Assert that the route and its handler agree."""
        name, access = self.name, self.access
        assert access in ACCESS, f"{name}: {access!r} is not one of {sorted(ACCESS)}"
        assert self.scope in ("", *SCOPES), f"{name}: {self.scope!r} is not one of {SCOPES}"
        expected = {"open": (OpenAsk,), "api key": _OF_API_KEYS}.get(access, (AdminAsk,))
        assert self.ask in expected, f"{name}: the handler of a route for {access!r} takes one of {expected}"
        assert bool(self.scope) == issubclass(self.ask, ChainAsk), f"{name}: chain routes have a scope, only they"
        fields = {field.name for field in self.fields}
        assert {parameter for _, parameter in self.parameters} <= fields, f"{name}: the question lacks a path parameter"
        assert ("order" in fields) == bool(self.sorted_by), f"{name}: `sorted_by` goes with the parameter order"


# The words in which the tables of routes are written. Each says who may call, and ends in the refusals of the handler.


def anyone(path: str, handler: Handler, *errors: Refusing, **options: Unpack[Options]) -> Route:
    """A GET that needs no key."""
    return Route("GET", path, handler, "open", "", errors, **options)


def get(path: str, handler: Handler, scope: str, *errors: Refusing, **options: Unpack[Options]) -> Route:
    """A GET with an API key."""
    return Route("GET", path, handler, "api key", scope, errors, **options)


def ordered(
    path: str, handler: Handler, scope: str, *errors: Refusing, by: str = "slot, then position in the block"
) -> Route:
    """A GET with an API key, of a list that has an `order`."""
    return get(path, handler, scope, *errors, sorted_by=by)


def post(path: str, handler: Handler, scope: str, *errors: Refusing, **options: Unpack[Options]) -> Route:
    """A POST with an API key."""
    return Route("POST", path, handler, "api key", scope, errors, **options)


def put(path: str, handler: Handler, scope: str, *errors: Refusing, **options: Unpack[Options]) -> Route:
    """A PUT with an API key."""
    return Route("PUT", path, handler, "api key", scope, errors, **options)


def delete(path: str, handler: Handler, scope: str, *errors: Refusing, **options: Unpack[Options]) -> Route:
    """A DELETE with an API key."""
    return Route("DELETE", path, handler, "api key", scope, errors, **options)


def admin(
    access: str, method: str, path: str, handler: Handler, *errors: Refusing, **options: Unpack[Options]
) -> Route:
    """Any method, with an admin key that has the permission `access`, or with the bootstrap key."""
    return Route(method, path, handler, access, "", errors, **options)


class Router:
    """Finds the route of a request. If two templates match, the one that is literal where they first differ wins."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in _segments(route.path):
                node = node.parameter() if _is_parameter(segment) else node.literal.setdefault(segment, _Node())
            assert route.method not in node.routes, f"{route.method} {route.path} is declared twice"
            node.routes[route.method] = route

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """The route, and the values of its path parameters. HEAD is a GET without the body (RFC 9110, 9.3.2).

        Raises Refusal 404 and 405.
        """
        segments = _segments(raw_path)
        if "%" in raw_path:
            # Bytes that are not UTF-8 become lone surrogates, which every kind of parameter refuses.
            segments = [unquote(segment, errors="surrogateescape") for segment in segments]
        node = self._root.at(segments)
        if node is None:
            raise not_found()
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = [*node.routes, "HEAD"] if "GET" in node.routes else [*node.routes]
            raise method_not_allowed(", ".join(sorted(allowed)))
        return route, {name: segments[position] for position, name in route.parameters}


class _Node(msgspec.Struct):
    """A node in the tree of paths: the segments that may follow, and the routes that end here, by method."""

    routes: dict[str, Route] = {}
    literal: dict[str, "_Node"] = {}
    any: "_Node | None" = None

    def parameter(self) -> "_Node":
        """The node after a path parameter."""
        if self.any is None:
            self.any = _Node()
        return self.any

    def at(self, segments: Sequence[str]) -> "_Node | None":
        """The node at `segments`, None if no route ends there. An empty segment is not a path parameter."""
        if not segments:
            return self if self.routes else None
        first, rest = segments[0], segments[1:]
        if first in self.literal and (node := self.literal[first].at(rest)):
            return node
        return self.any.at(rest) if self.any is not None and first else None


def _segments(path: str) -> list[str]:
    return path.split("/")


def _is_parameter(segment: str) -> bool:
    return segment.startswith("{")
