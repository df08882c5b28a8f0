"""/openapi.json and the API agree."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.openapi import document
from api.routes import ROUTES
from tests.api.chains import Chain, hash_of
from tests.api.client import Client
from tests.api.payments import ALICE, pays
from tests.chain.harness import Process, free_port

VALUES = {
    **dict.fromkeys(("block", "epoch"), "latest"),
    **dict.fromkeys(("hash", "tx_hash"), hash_of("a").hex()),
    "index": "0",
    "address": ALICE,
}
BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
# Values that no pattern can exclude (a wrong bech32 checksum) are refused although the schema allows them. An API that
# is not ready answers 503 as documented; other faults show in its metrics.
NOT_READY = re.compile(r'route="/ready(/\{network\})?",status="503"')
UNCHECKED = "positive_data_acceptance,not_a_server_error"


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
def test_refusals_are_described_word_by_word(path: str, method: str, status: str, errors: set[str]) -> None:
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


@pytest.mark.timeout(1_800)
async def test_every_answer_matches_its_schema(
    environment: dict[str, str], chain: Chain, key: str, tmp_path: Path
) -> None:
    await chain.append(10, pays("a", ALICE))
    port = free_port()
    settings = {**environment, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
    api = Process(["api", "--port", str(port)], settings, tmp_path / "api.log")
    api.says("api.listening")
    sent = 0
    try:
        for token, paths in (
            (key, "^/v1/(tx|assets|pools|addresses|accounts|utxos|bulk)"),
            (BOOTSTRAP_KEY, "^/v1/admin"),
            ("none", "^/[^v]"),
        ):
            report = await asyncio.to_thread(fuzz, port, token, paths, tmp_path)
            found = re.search(r"([1-9][0-9]*) generated, [0-9]+ passed", report)
            assert found is not None, report
            sent += int(found[1])
        assert "request.failed" not in api.output()
        faults = re.findall(r'^ledgerline_requests_total\{.*status="5..".*', await metrics(port), flags=re.MULTILINE)
        assert [line for line in faults if not NOT_READY.search(line)] == []
    finally:
        api.stop()
        print(f"{sent} requests")  # shown by pytest -s


async def metrics(port: int) -> str:
    """What the API counted."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as response:
        return await response.text()


def fuzz(port: int, token: str, paths: str, folder: Path) -> str:
    """Send schemathesis' requests to some paths; returns its report, and fails if it finds a fault."""
    example_count = os.environ.get("FUZZ_EXAMPLES", "15")
    arguments = ["--include-path-regex", paths, "-H", f"Authorization: Bearer {token}", "--no-color", "--seed", "1"]
    arguments += ["-n", example_count, "--phases", "coverage,fuzzing", "--exclude-checks", UNCHECKED]
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"http://127.0.0.1:{port}/openapi.json"]
    ran = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-1000:]
    return ran.stdout
