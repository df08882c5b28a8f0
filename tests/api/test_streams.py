"""Streams of events, as readers see them: what is sent, continued, bounded, ended and refused."""

import asyncio
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from api.events import stream as streams
from api.http import sending
from api.keys import tickets
from api.sources import clock
from api.usage.spool import spools_in
from tests.api.client import Client, serving
from tests.api.conftest import IssueKey
from tests.api.counting import mine_of
from tests.api.partners import NOWHERE, Partner
from tests.api.reading_streams import Sent, reading
from tests.api.test_subscriptions import ALICE, Telling, batch_in, of_address, telling
from tests.chain.written import hash_of, pays, tx
from tests.patience import PATIENCE_S

__all__ = ["telling"]

NEVER_MS = 3_600_000


def is_idle(event: Sent) -> bool:
    return event.name == "idle"


def is_end(event: Sent) -> bool:
    return event.name == "refused"


async def ticket_of(telling: Telling, subscription: str) -> str:
    reply = await telling.call("POST", f"/{subscription}/tickets")
    assert reply.status == 201, reply.body
    assert reply.headers["Cache-Control"] == "no-store"
    text: str = reply.body["data"]["ticket"]
    return text


async def test_a_stream_sends_what_a_page_has_and_then_each_event_as_it_happens(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    await telling.append(20, tx("a", pays(ALICE)))
    async with reading(telling.api.port, alice, key=telling.key) as stream:
        assert stream.answer.headers["Content-Type"] == "text/event-stream;charset=utf-8"
        first, idle = await stream.until(is_idle)
        assert (first.name, first.last_id) == ("apply", "1")
        assert (idle.data["next"], idle.last_id) == (1, "1")
        await telling.append(30, tx("b", pays(ALICE)))
        await telling.back_to(20)
        last = await telling.append(35, tx("c", pays(ALICE)))
        seen = [first]
        while seen[-1].data.get("number") != 4:
            seen += [event for event in await stream.until(is_idle) if event.name != "idle"]
        page = (await telling.events(alice)).body
        assert [event.data for event in seen] == page["data"]
        assert [event.name for event in seen] == ["apply", "apply", "undo", "apply"]
        assert page["pagination"]["complete_to"]["block_hash"] == last


async def test_a_stream_that_is_silent_says_up_to_which_block(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.2)
    alice = await telling.subscribe(of_address(ALICE))
    async with reading(telling.api.port, alice, key=telling.key) as stream:
        await stream.next()
        block_hash = await telling.append(40)
        await stream.until(lambda event: event.data["complete_to"]["block_hash"] == block_hash)


async def test_a_stream_continues_after_the_last_id_or_a_block(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    block_hash = await telling.append(20, tx("a", pays(ALICE)))
    await telling.append(30, tx("b", pays(ALICE)))
    for options in (
        {"headers": {"Last-Event-ID": "1"}, "query": {"after": "0"}},
        {"query": {"after": "1"}},
        {"query": {"after_block": block_hash}},
    ):
        async with reading(telling.api.port, alice, key=telling.key, **options) as stream:
            assert [event.last_id for event in await stream.until(is_idle)] == ["2", "2"], options
    async with reading(telling.api.port, alice, key=telling.key, query={"after": "2"}) as stream:
        await stream.next()
        assert stream.last_id == "2", "a reader that has seen no event knows its position"


async def test_a_long_log_is_read_page_by_page(telling: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_PAGE_BYTES", 1)
    alice = await telling.subscribe(of_address(ALICE))
    await telling.append(20, *(tx(f"{at}", pays(ALICE)) for at in range(5)))
    async with reading(telling.api.port, alice, key=telling.key) as stream:
        assert [event.last_id for event in await stream.until(is_idle)] == ["1", "2", "3", "4", "5", "5"]


async def test_a_ticket_reads_its_own_stream_only(telling: Telling, issue_key: IssueKey) -> None:
    alice, other = await telling.subscribe(of_address(ALICE)), await telling.subscribe({"kind": "block"})
    ticket = await ticket_of(telling, alice)
    async with reading(telling.api.port, alice, query={"ticket": ticket}) as stream:
        assert (await stream.next()).name == "idle"
    for subscription, wrong in ((other, ticket), (alice, ticket[:-3] + "AAA"), (alice, "x"), (alice, f"{ticket}A")):
        async with reading(telling.api.port, subscription, query={"ticket": wrong}) as stream:
            assert stream.answer.status == 200
            (refused,) = await stream.rest()
            assert refused.data == {"code": "invalid_ticket", "error": "Invalid or expired ticket", "final": True}
            assert stream.retry_ms == NEVER_MS
    reply = await telling.api.get(f"/v1/subscriptions/{alice}?ticket={ticket}")
    assert reply.status == 401, "it is no key"
    stranger = await issue_key()
    assert (await telling.call("POST", f"/{alice}/tickets", key=stranger)).status == 404
    assert (await telling.call("GET", f"/{alice}/events/stream", key=stranger)).status == 404


async def test_a_first_request_is_refused_by_its_status_and_a_further_one_by_an_event(telling: Telling) -> None:
    path, wrong = f"/v1/subscriptions/{NOWHERE}/events/stream", telling.key[:-1] + "x"
    for key, status, code in ((telling.key, 404, "subscription_not_found"), (wrong, 403, "invalid_api_key")):
        reply = await telling.api.get(path, key)
        assert (reply.status, reply.headers["Error-Code"]) == (status, code)
        async with reading(telling.api.port, NOWHERE, key=key, headers={"Last-Event-ID": "1"}) as stream:
            assert (stream.answer.status, stream.answer.headers["Error-Code"]) == (200, code)
            (refused,) = await stream.rest()
            assert (refused.name, refused.data["code"], refused.data["final"]) == ("refused", code, True)


async def test_streams_of_a_credential_are_bounded(telling: Telling, environment: Mapping[str, str]) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    async with (
        serving({**environment, "EVENTS_STREAMS_EACH": "1"}) as api,
        reading(api.port, alice, key=telling.key) as stream,
    ):
        await stream.next()
        reply = await api.get(f"/v1/subscriptions/{alice}/events/stream", telling.key)
        assert (reply.status, reply.error) == (503, "Too many streams are in progress: try again later")
        async with reading(api.port, alice, key=telling.key, headers={"Last-Event-ID": "0"}) as refused:
            (event,) = await refused.rest()
            assert (event.data["code"], event.data["final"]) == ("too_many_concurrent_requests", False)
            assert 5_000 <= refused.retry_ms <= 10_000


async def test_a_revoked_key_ends_its_streams(
    telling: Telling, partner: Partner, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.1)
    alice = await telling.subscribe(of_address(ALICE))
    ticket = await ticket_of(telling, alice)
    async with (
        reading(telling.api.port, alice, key=telling.key) as stream,
        reading(telling.api.port, alice, query={"ticket": ticket}) as ticketed,
    ):
        await stream.next()
        await ticketed.next()
        await db.execute("UPDATE partner.credential SET revoked_at = now()")
        for each in (stream, ticketed):
            assert (await each.rest())[-1].data == {
                "code": "invalid_api_key",
                "error": "Invalid API key",
                "final": True,
            }
            assert each.retry_ms == NEVER_MS
    assert partner


async def test_a_ticket_ends_its_stream_when_it_expires(telling: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.1)
    alice = await telling.subscribe(of_address(ALICE))
    ticket = await ticket_of(telling, alice)
    async with reading(telling.api.port, alice, query={"ticket": ticket}) as stream:
        await stream.next()
        claimed = tickets.parse(ticket)
        assert claimed is not None
        monkeypatch.setattr(clock, "now", lambda: claimed.expires_at)
        assert (await stream.rest())[-1].data["code"] == "invalid_ticket"


async def test_a_deleted_subscription_ends_its_streams(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    async with reading(telling.api.port, alice, key=telling.key) as stream:
        await stream.next()
        assert (await telling.call("DELETE", f"/{alice}")).status == 200
        assert (await stream.until(is_end))[-1].data["code"] == "subscription_not_found"


async def test_streams_end_with_the_process_and_say_when_to_come_back(
    telling: Telling, environment: Mapping[str, str]
) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    async with serving(environment) as api:
        opened = reading(api.port, alice, key=telling.key)
        stream = await opened.__aenter__()
        await stream.next()
        ending = asyncio.create_task(stream.rest())
    assert await asyncio.wait_for(ending, PATIENCE_S) == []
    assert 200 <= stream.retry_ms <= 2_000
    await opened.__aexit__(None, None, None)


async def test_a_reader_that_does_not_read_is_cut_off_and_holds_up_no_stop(
    telling: Telling, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time, and at once if the process ends meanwhile. It holds no more than a page."""
    alice = await telling.subscribe(of_address(ALICE))
    for slot in range(20, 60, 10):
        many = [pays(ALICE, *((f"{asset:02x}", 1) for asset in range(250))) for _ in range(30)]
        await telling.append(slot, *(tx(f"{slot} {at}", *many) for at in range(4)))

    def silent(port: int) -> socket.socket:
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader.connect(("127.0.0.1", port))
        path = f"/v1/subscriptions/{alice}/events/stream"
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {telling.key}\r\n\r\n".encode())
        return reader

    async def is_open(value: float) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while streams._open._value.get() != value:
                await asyncio.sleep(0.02)

    async with serving(environment) as api:
        with silent(api.port):
            await is_open(1)
            monkeypatch.setattr(sending, "_GRACE_S", 0.2)
            await is_open(1)
    await is_open(0)
    with silent(telling.api.port):
        await is_open(0)


async def test_the_ticket_is_in_no_log(
    telling: Telling, api: Client, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    ticket = await ticket_of(telling, alice)
    async with reading(api.port, alice, query={"ticket": ticket}) as stream:
        await stream.next()
    async with reading(api.port, NOWHERE, query={"ticket": ticket}) as stream:
        await stream.rest()
    await asyncio.sleep(0.3)
    printed = capfd.readouterr()
    assert ticket not in printed.out + printed.err + caplog.text
    assert hash_of("a")


async def test_head_opens_no_stream(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    reply: Any = await telling.call("HEAD", f"/{alice}/events/stream")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream;charset=utf-8")
    assert streams._open._value.get() == 0


async def test_the_events_of_a_stream_are_counted_as_delivered(
    telling: Telling, environment: Mapping[str, str], db: asyncpg.Connection
) -> None:
    """With the request that has opened it, each once."""
    blocks = await telling.subscribe({"kind": "block"})
    await telling.append(20)
    await telling.append(30)
    async with reading(telling.api.port, blocks, key=telling.key) as stream:
        await stream.until(is_idle)
        await telling.append(40)
        await stream.until(is_idle)
    async with reading(telling.api.port, blocks, key=telling.key, query={"after": "3"}) as stream:
        await stream.until(is_idle)
    credential_id = await db.fetchval("SELECT id FROM partner.credential")
    name = "GET /v1/subscriptions/{id}/events/stream"
    delivered = [
        (part.status_class, part.requests, part.events)
        for path_of_spool in spools_in(Path(environment["DATA_DIR"]) / "usage")
        for part in mine_of(batch_in(path_of_spool), credential_id)
        if part.endpoint == name
    ]
    assert delivered == [(2, 2, 3)]


async def test_the_minutes_of_a_stream_are_counted_once_each(
    telling: Telling, environment: Mapping[str, str], db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have begun when something is sent, whatever else is sent in them; HEAD opens none."""
    later_s = 0.0
    monkeypatch.setattr(streams, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later_s))
    blocks = await telling.subscribe({"kind": "block"})
    await telling.call("HEAD", f"/{blocks}/events/stream")
    async with reading(telling.api.port, blocks, key=telling.key) as stream:
        await stream.until(is_idle)
        for slot, later_s in ((20, 0.0), (30, 61.0), (40, 61.0), (50, 190.0)):  # noqa: B007 - the clock reads it
            await telling.append(slot)
            await stream.until(is_idle)
    async with reading(telling.api.port, blocks, key=telling.key) as stream:
        await stream.until(is_idle)
    credential_id = await db.fetchval("SELECT id FROM partner.credential")
    parts = [
        part
        for path_of_spool in spools_in(Path(environment["DATA_DIR"]) / "usage")
        for part in mine_of(batch_in(path_of_spool), credential_id)
        if part.endpoint == "GET /v1/subscriptions/{id}/events/stream"
    ]
    assert [(part.status_class, part.requests, part.stream_minutes) for part in parts] == [(2, 3, 4 + 1)]
