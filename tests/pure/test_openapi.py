"""/openapi.json describes every route, and is what its format demands."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.answers import Answer
from api.ask import Nothing, OpenAsk
from api.reference.openapi import document
from api.route import Route
from api.routes import EVERY_ROUTE, ROUTES
from tests.api.described import CALLERS, served


def parts(described: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(described, dict):
        yield described
    for part in described.values() if isinstance(described, dict) else described if isinstance(described, list) else ():
        yield from parts(part)


def test_the_document_is_openapi_3_1() -> None:
    described = served()
    assert described["openapi"] == "3.1.0"
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(described)] == []


def test_every_route_is_described() -> None:
    described = served()["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == {
        (route.method, route.path) for route in ROUTES
    }
    operations = [operation for methods in described.values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert operation["summary"]
        assert all(parameter["description"] for parameter in operation["parameters"])
        assert {"400", "500", "503"} <= operation["responses"].keys()


async def untagged(ask: OpenAsk[Nothing]) -> Answer[str]:  # noqa: ARG001 - every handler takes the ask
    """Answer in a module that has no tag."""
    return Answer(data="")


def test_a_module_without_a_tag_is_noticed() -> None:
    with pytest.raises(AssertionError, match="GET /untagged: _TAGS lacks the module test_openapi"):
        document([Route("GET", "/untagged", untagged, "open")], {})


def test_every_reference_resolves() -> None:
    described = served()
    references = {part["$ref"] for part in parts(described) if "$ref" in part}
    components = described["components"]
    assert references == {f"#/components/{kind}/{name}" for kind in ("schemas", "headers") for name in components[kind]}


def test_no_description_is_indented_like_code() -> None:
    texts = [part["description"] for part in parts(served()) if isinstance(part.get("description"), str)]
    assert any("\n\n" in text for text in texts)
    assert [text for text in texts if "\n    " in text] == []


def test_only_fields_that_may_be_absent_are_optional() -> None:
    schemas = served()["components"]["schemas"]
    optional = {
        (name, field)
        for name, schema in schemas.items()
        for field in schema["properties"].keys() - set(schema["required"])
    }
    assert {("CursorPaging", "next_cursor"), ("Value", "assets")} <= optional
    assert not {field for _, field in optional} & {"success", "data", "pagination", "last_updated", "message"}


def test_every_time_has_the_format_date_time() -> None:
    """Every field that is named like a time, in answers and in bodies."""
    found = 0
    for part in parts(served()):
        for name, schema in part.get("properties", {}).items():
            if re.search(r"(_at|_time|period_start|period_end)$", name):
                found += 1
                kinds = [each for each in parts(schema) if each.get("type") != "null" and "format" in each]
                assert {each["format"] for each in kinds} in ({"date-time"}, {"date", "date-time"}), name
    assert found > 20


@pytest.mark.parametrize(
    ("path", "method", "status", "errors"),
    [
        ("/v1/tx/hash/{hash}", "get", "404", {"Not found", "Transaction not found"}),
        ("/v1/tx/hash/{hash}", "get", "429", {"Rate limit exceeded", "Quota exceeded"}),
        ("/v1/tx/history/{address}", "get", "401", {"Missing or invalid API key"}),
        (
            "/v1/admin/users",
            "post",
            "409",
            {
                "external_id already in use",
                "Idempotency-Key was used with another body",
                "Already executed: the answer was erased with its account",
            },
        ),
        (
            "/v1/admin/users",
            "get",
            "403",
            {"Invalid admin API key", "Permission denied: manage_users required"},
        ),
    ],
)
def test_refusals_are_described_word_for_word(path: str, method: str, status: str, errors: set[str]) -> None:
    content = served()["paths"][path][method]["responses"][status]["content"]["application/json"]
    assert {example["value"]["error"] for example in content["examples"].values()} == errors


def test_every_post_documents_the_header_and_no_other_operation_does() -> None:
    for methods in document(ROUTES, {})["paths"].values():
        for method, operation in methods.items():
            headers = [each["name"] for each in operation["parameters"] if each["in"] == "header"]
            assert headers == (["Idempotency-Key"] if method == "post" else []), operation["operationId"]


def test_every_path_is_fuzzed_by_one_caller() -> None:
    for route in EVERY_ROUTE:
        assert len([pattern for pattern in CALLERS if re.search(pattern, route.path)]) == 1, route.path
