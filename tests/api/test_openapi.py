"""/openapi.json and the API agree."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.answers import Answer
from api.ask import Nothing, OpenAsk
from api.blockfrost.routes import FACADE
from api.reference.openapi import document
from api.route import Route
from api.routes import EVERY_ROUTE, ROUTES
from tests.api.chains import Chain, hash_of
from tests.api.client import Client
from tests.api.payments import ALICE, pays
from tests.chain.harness import Process
from tests.ports import free_port

VALUES = {
    **dict.fromkeys(("block", "epoch"), "latest"),
    **dict.fromkeys(("hash", "tx_hash"), hash_of("a").hex()),
    "index": "0",
    "address": ALICE,
}
BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
# Values that no pattern can exclude (a wrong bech32 checksum) are refused although the schema allows them. An API that
# is not ready answers 503 as documented, and a path that is not answered 501; other faults show in its metrics.
NOT_READY = re.compile(r'route="/ready(/\{network\})?",status="503"')
NOT_IMPLEMENTED = ',status="501"'
UNCHECKED = "positive_data_acceptance,not_a_server_error"

# The caller of the fuzzer's requests, by path pattern. Every path of the table matches one pattern.
CALLERS = {
    "^/v1/(?!admin/)": "API key",
    "^/v1/admin/(?!admin-keys)": "partner",
    "^/v1/admin/admin-keys": "operator",
    "^/(?!v1/|blockfrost/)": "nobody",
    "^/blockfrost/": "API key",
}


def served() -> Any:
    """The document as clients get it."""
    return msgspec.json.decode(msgspec.json.encode(document(ROUTES, VALUES)))


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


async def test_the_examples_of_the_document_work(api: Client, chain: Chain, key: str) -> None:
    paths = (await api.get("/openapi.json")).body["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert not any("example" in parameter for operation in operations for parameter in operation["parameters"])
    await chain.append(10, pays("a", ALICE))
    reply = await api.get("/openapi.json")
    assert (reply.status, reply.body) == (200, served())
    for path, name in (("/v1/tx/hash/{hash}", "hash"), ("/v1/tx/history/{address}", "address")):
        (parameter,) = (found for found in reply.body["paths"][path]["get"]["parameters"] if found["in"] == "path")
        answer = await api.get(path.replace(f"{{{name}}}", parameter["example"]), key)
        assert answer.status == 200
        assert answer.body["data"]


def test_every_path_is_fuzzed_by_one_caller() -> None:
    for route in EVERY_ROUTE:
        assert len([pattern for pattern in CALLERS if re.search(pattern, route.path)]) == 1, route.path


@pytest.mark.timeout(7_200)
async def test_every_answer_matches_its_schema(
    environment: dict[str, str], chain: Chain, key: str, tmp_path: Path
) -> None:
    await chain.append(10, pays("a", ALICE))
    port = free_port()
    settings = {**environment, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
    api = Process(["api", "--port", str(port)], settings, tmp_path / "api.log")
    api.says("api.listening")
    keys = {"API key": key, "partner": await partner_key(port), "operator": BOOTSTRAP_KEY, "nobody": "none"}
    facade = tmp_path / "blockfrost.json"
    facade.write_bytes(msgspec.json.encode(plain_document(FACADE)))
    sent = 0
    try:
        for pattern, caller in CALLERS.items():
            described = str(facade) if pattern == "^/blockfrost/" else f"http://127.0.0.1:{port}/openapi.json"
            report = await asyncio.to_thread(fuzz, port, described, keys[caller], pattern, tmp_path)
            found = re.search(r"([1-9][0-9]*) generated, [0-9]+ passed", report)
            assert found is not None, report
            sent += int(found[1])
        assert "request.failed" not in api.output()
        faults = re.findall(
            r'^ledgerline_requests_total\{.*status="5..".*(?<! 0\.0)$', await metrics(port), flags=re.MULTILINE
        )
        assert [line for line in faults if not NOT_READY.search(line) and NOT_IMPLEMENTED not in line] == []
    finally:
        api.stop()
        print(f"{sent} requests")  # shown by pytest -s


async def partner_key(port: int) -> str:
    """A new admin key with every permission."""
    url, headers = f"http://127.0.0.1:{port}/v1/admin/admin-keys", {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.post(url, json={"entity_name": "F"}) as made:
        found: str = (await made.json())["data"]["key"]
    return found


def plain_document(routes: Sequence[Route]) -> Any:
    """An OpenAPI document that describes only the requests of routes: any answer matches it."""
    paths: dict[str, Any] = {}
    for route in routes:
        parameters = [
            {
                "name": field.name,
                "in": "path" if f"{{{field.name}}}" in route.path else "query",
                "required": field.required or f"{{{field.name}}}" in route.path,
                "schema": field.kind.schema,
                **({"example": VALUES[field.name]} if field.name in VALUES else {}),
            }
            for field in route.fields
        ]
        operation: Any = {"parameters": parameters, "responses": {"default": {"description": "Any answer."}}}
        if route.body is not None:
            properties = {field.name: field.kind.schema for field in route.body_fields}
            content = {"application/json": {"schema": {"type": "object", "properties": properties}}}
            operation["requestBody"] = {"content": content}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "Fuzzed", "version": "1"}, "paths": paths}


async def metrics(port: int) -> str:
    """The metrics of the API."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as response:
        return await response.text()


def fuzz(port: int, described: str, token: str, paths: str, folder: Path) -> str:
    """Send schemathesis' requests to some paths; returns its report, and fails if it finds a fault."""
    example_count = os.environ.get("FUZZ_EXAMPLES", "1")
    arguments = ["--include-path-regex", paths, "-H", f"Authorization: Bearer {token}", "--no-color", "--seed", "1"]
    arguments += ["-n", example_count, "--phases", "coverage,fuzzing", "--exclude-checks", UNCHECKED]
    arguments += ["--url", f"http://127.0.0.1:{port}"]
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", described]
    ran = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-1000:]
    return ran.stdout
