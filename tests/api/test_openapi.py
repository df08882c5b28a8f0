"""/openapi.json and the API agree."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import msgspec
import pytest

from api.blockfrost.routes import FACADE
from api.route import Route
from tests.api.chains import FOLLOWED, Chain
from tests.api.client import Client
from tests.api.described import CALLERS, VALUES, served
from tests.api.payments import ALICE, pays
from tests.chain.harness import Process
from tests.ports import free_port

BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
# Values that no pattern can exclude (a wrong bech32 checksum) are refused although the schema allows them. An API that
# is not ready answers 503 as documented, and a path that is not answered 501; other faults show in its metrics.
NOT_READY = re.compile(r'route="/ready(/\{network\})?",status="503"')
NOT_IMPLEMENTED = re.compile(',status="501"')
# What is read from a node answers 503, too: this API has none.
OF_NODE = re.compile(r'route=".*/(cbor|redeemers|required_signers|mempool.*)",status="503"')
# Its refusals are answers, and its answers never end: tests/api/test_streams.py has them.
STREAMS = "/events/stream$"
UNCHECKED = "positive_data_acceptance,not_a_server_error"
# Blockfrost answers 400 to a method that a path does not have, where HTTP says 405.
UNCHECKED_OF_BLOCKFROST = f"{UNCHECKED},unsupported_method"


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


@pytest.mark.timeout(7_200)
async def test_every_answer_matches_its_schema(
    environment: dict[str, str], chain: Chain, key: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    await chain.append(10, pays("a", ALICE))
    await db.execute(FOLLOWED)
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
        expected = (NOT_READY, OF_NODE, NOT_IMPLEMENTED)
        assert [line for line in faults if not any(each.search(line) for each in expected)] == []
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
    unchecked = UNCHECKED_OF_BLOCKFROST if paths.startswith("^/blockfrost") else UNCHECKED
    arguments += ["-n", example_count, "--phases", "coverage,fuzzing", "--exclude-checks", unchecked]
    arguments += ["--url", f"http://127.0.0.1:{port}", "--exclude-path-regex", STREAMS]
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", described]
    ran = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-1000:]
    return ran.stdout
