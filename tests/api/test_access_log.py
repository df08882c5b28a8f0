"""The access log: one line for each answer, found by the id of its request, and without keys."""

import asyncio
import json
import re
from typing import Any
from uuid import UUID

import pytest

from api.server import app
from api.server.app import RECORDED_WITHIN_S
from tests.api.chains import Chain
from tests.api.client import Client, Reply, serving
from tests.api.partners import BOOTSTRAP_KEY, Partner
from tests.api.payments import ALICE, pays
from tests.patience import PATIENCE_S

HISTORY = f"/v1/tx/history/{ALICE}"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def logged(capsys: pytest.CaptureFixture[str], *ids: str) -> list[dict[str, Any]]:
    """The lines of these requests in the access log, once they are written."""
    lines: dict[str, dict[str, Any]] = {}
    async with asyncio.timeout(PATIENCE_S):
        while not lines.keys() >= set(ids):
            await asyncio.sleep(RECORDED_WITHIN_S / 2)
            written = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
            lines |= {line["request_id"]: line for line in written if line["event"] == "request.answered"}
    return [lines[each] for each in ids]


def id_of(reply: Reply) -> str:
    """The id of an answered request."""
    return reply.headers["X-Request-Id"]


async def test_an_answer_to_an_api_key_is_one_line(
    api: Client, chain: Chain, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await chain.append(10, pays("a", ALICE))
    reply = await api.get(f"{HISTORY}?limit=1", key)
    [line] = await logged(capsys, id_of(reply))
    assert (line["level"], line["method"], line["status"]) == ("info", "GET", 200)
    assert line["route"] == "/v1/tx/history/{address}"
    assert line["network"] == "preview"
    assert UUID(line["credential_id"])
    assert line["bytes"] == int(reply.headers["Content-Length"])
    assert 0 < line["ms"] < 60_000
    assert line["timestamp"].endswith("Z")


async def test_every_answer_has_its_line_and_none_has_a_key(
    api: Client, partner: Partner, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = [
        await api.get("/v1/nowhere"),
        await api.get(HISTORY),
        await api.get(HISTORY, key),
        await api.get(f"/v1/nowhere/{key}", key),
        await api.call("GET", "/health", headers={"X-Request-Id": key}),
        await api.call("GET", "/health", headers={"X-Request-Id": BOOTSTRAP_KEY}),
        await partner.get("/users"),
    ]
    malformed = await api.raw(b"nonsense\r\n\r\n")
    of_malformed = re.search(rb"X-Request-Id: ([0-9a-f]{32})\r\n", malformed)
    assert of_malformed
    lines = await logged(capsys, *map(id_of, sent), of_malformed[1].decode())
    assert [line["status"] for line in lines] == [404, 401, 503, 404, 200, 200, 200, 400]
    assert UUID(lines[-2]["admin_key_id"])
    assert [line["route"] for line in lines].count("none") == 3
    assert "iiak_" not in json.dumps(lines)
    assert ALICE not in json.dumps(lines)


@pytest.mark.parametrize(("sent", "kept"), [("abc-1:2/3", True), ("", False), ("a b", False), ("x" * 129, False)])
async def test_a_valid_id_is_kept_and_another_is_replaced(api: Client, sent: str, kept: bool) -> None:
    reply = await api.call("GET", "/health", headers={"X-Request-Id": sent})
    assert id_of(reply)
    assert (id_of(reply) == sent) == kept


async def test_two_requests_have_two_ids(api: Client) -> None:
    assert len({id_of(await api.get("/health")) for _ in range(20)}) == 20


async def test_an_audit_entry_names_its_request(partner: Partner) -> None:
    made = await partner.call("POST", "/users", {"name": "Bob"}, headers={"X-Request-Id": "of-the-partner"})
    assert made.status == 201
    [entry] = await partner.data("GET", "/audit-logs?limit=1")
    assert entry["details"]["request_id"] == "of-the-partner"


async def test_a_trace_reaches_the_log_unless_it_is_none(api: Client, capsys: pytest.CaptureFixture[str]) -> None:
    sent = [await api.call("GET", "/health", headers={"traceparent": trace}) for trace in (TRACE, TRACE.upper(), "x")]
    assert [line.get("traceparent") for line in await logged(capsys, *map(id_of, sent))] == [TRACE, None, None]


async def test_it_can_be_off(environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for off in ({"ACCESS_LOG": "off"}, {"LOG_LEVEL": "warning"}):
        async with serving(environment | off) as api:
            await api.get("/health")
        assert "request.answered" not in capsys.readouterr().err


async def test_a_process_that_stops_writes_the_lines_that_it_still_has(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "RECORDED_WITHIN_S", 3_600)
    async with serving(environment) as api:
        ids = [id_of(await api.get("/health")) for _ in range(3)]
        assert "request.answered" not in capsys.readouterr().err
    written = [json.loads(line) for line in capsys.readouterr().err.splitlines() if "request.answered" in line]
    assert [line["request_id"] for line in written] == ids
