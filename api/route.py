"""What a route is: one declaration that the router, the reading of requests and /openapi.json go by."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import unquote

import msgspec

from api.ask import AdminAsk, ChainAsk, Nothing, OpenAsk
from api.errors import Refusal, method_not_allowed, not_found
from api.parameters import Body, Field, Question, fields_of

Permission = Literal["manage_users", "manage_credentials", "view_usage", "view_audit_logs"]
Who = Literal["open", "api key", "bootstrap"] | Permission
JSON = "application/json"
Handler = Callable[[Any], Awaitable[Any]]


class Route:
    """One method on one path template, what it asks of a caller, and who answers.

    Question, body and answer are those of the handler's annotations: `async def handler(ask: AdminAsk[Question, Body])
    -> Answer`; a handler of another `media_type` makes the whole response. `errors` lists what the handler itself may
    refuse, for /openapi.json.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler,
        who: Who,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        media_type: str = JSON,
        errors: Sequence[Callable[[], Refusal]] = (),
    ) -> None:
        self.method, self.path, self.handler, self.who = method, path, handler, who
        self.status, self.media_type, self.errors = int(status), media_type, tuple(errors)

        hints = get_type_hints(handler)
        asked = hints["ask"]
        self.ask: type = get_origin(asked) or asked
        expected = {"open": OpenAsk, "api key": ChainAsk}.get(who, AdminAsk)
        assert self.ask is expected, f"{method} {path}: {who} callers make a {expected.__name__}"
        question, body = (*get_args(asked), None, None)[:2]
        self.question: type[Question] = question or Nothing
        self.body: type[Body] | None = None if body is type(None) else body
        self.answer: Any = hints["return"]
        self.fields: tuple[Field, ...] = fields_of(self.question)
        self.body_fields: tuple[Field, ...] = fields_of(self.body) if self.body else ()

        self.parameters = tuple(
            (position, segment[1:-1]) for position, segment in enumerate(_segments(path)) if _is_parameter(segment)
        )
        names = {name for _, name in self.parameters}
        assert names <= {field.name for field in self.fields}, f"{method} {path}: the question lacks a path parameter"


class Router:
    """Finds the route of a request. Of two templates that fit, the one that is literal where they differ first."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in _segments(route.path):
                node = node.parameter() if _is_parameter(segment) else node.literal.setdefault(segment, _Node())
            assert route.method not in node.routes, f"{route.method} {route.path} is declared twice"
            node.routes[route.method] = route

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """The route, and the values of its path parameters. HEAD is a GET whose body stays here (RFC 9110, 9.3.2).

        Raises Refusal 404 and 405.
        """
        segments = _segments(raw_path)
        if "%" in raw_path:
            # Bytes that are no UTF-8 become lone surrogates, which every kind of parameter refuses.
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
    """A position in the paths: what may follow it, and the routes that end here, by method."""

    routes: dict[str, Route] = {}
    literal: dict[str, "_Node"] = {}
    any: "_Node | None" = None

    def parameter(self) -> "_Node":
        """What follows a path parameter."""
        if self.any is None:
            self.any = _Node()
        return self.any

    def at(self, segments: Sequence[str]) -> "_Node | None":
        """Where `segments` lead, None where no route ends there. An empty segment is no path parameter."""
        if not segments:
            return self if self.routes else None
        first, rest = segments[0], segments[1:]
        if first in self.literal and (found := self.literal[first].at(rest)):
            return found
        return self.any.at(rest) if self.any is not None and first else None


def _segments(path: str) -> list[str]:
    return path.split("/")


def _is_parameter(segment: str) -> bool:
    return segment.startswith("{")
