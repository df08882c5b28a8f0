"""The samples of /docs call operations that exist, with arguments that they take."""

import ast
import inspect
import re
import shlex
from typing import Any

import msgspec
import pytest
from ledgerline_client import AsyncLedgerline, Ledgerline

from api.reference.openapi import document
from api.reference.samples import URL
from api.route import Route, Router
from api.routes import ROUTES

PATHS = document(ROUTES, {})["paths"]
SAMPLES = {
    route.operation: {
        each["label"]: each["source"] for each in PATHS[route.path][route.method.lower()]["x-codeSamples"]
    }
    for route in ROUTES
}
by_operation = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)


@by_operation
def test_curl_calls_the_route(route: Route) -> None:
    words = shlex.split(SAMPLES[route.operation]["curl"])
    (url,) = (word for word in words if word.startswith("http"))
    body = words[words.index("-d") + 1] if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    found, _ = Router(ROUTES).find(method, url.removeprefix(URL))
    assert found is route
    assert ("-H" in words) == (route.access != "open")
    assert (body is None) == (route.body is None)
    fields = {field.name for field in route.body_fields}
    assert body is None or msgspec.json.decode(body, type=dict[str, Any]).keys() <= fields


@by_operation
def test_python_calls_a_method_with_its_arguments(route: Route) -> None:
    source = SAMPLES[route.operation]["Python"]
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    (call,) = (each for each in calls if ast.unparse(each.func).startswith("service."))
    name = {"stream_events": "subscribe"}.get(route.operation, route.operation.replace("export_", "stream_"))
    assert ast.unparse(call.func) == f"service.{name}"
    positional = [ast.literal_eval(each) for each in call.args]
    named = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg is not None}
    inspect.signature(getattr(Ledgerline, name)).bind(None, *positional, **named)
    for mentioned in re.findall(r"# service\.(\w+)", source):
        assert hasattr(Ledgerline, mentioned)
        assert hasattr(AsyncLedgerline, mentioned)
