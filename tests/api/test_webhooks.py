"""Webhooks: what is sent, signed, repeated, paused and never connected to."""

import asyncio
import base64
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
import standardwebhooks
import svix

from api.events import deliveries
from api.events.deliveries import KEPT_ATTEMPTS, Sender
from api.sources import egress
from shared import database
from tests.api.client import Client, Reply, serving
from tests.api.conftest import IssueKey
from tests.api.endpoints import Endpoint, Received, listening
from tests.api.partners import NOWHERE, Partner, partner_of
from tests.api.test_subscriptions import ALICE, Telling, of_address, telling
from tests.chain.written import Json, pays, tx
from tests.patience import PATIENCE_S

__all__ = ["telling"]

ADDRESSES = {"hook.example": "127.0.0.1", "inside.example": "127.0.0.2"}


def _look_up(host: str) -> list[str]:
    if host not in ADDRESSES:
        raise OSError("no such name")
    return [ADDRESSES[host]]


RULES = egress.webhook_rules(local=True)._replace(look_up=_look_up)


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """That of an API which takes addresses of this host."""
    return environment | {"WEBHOOKS_LOCAL": "on"}


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """An endpoint."""
    async with listening() as endpoint:
        yield endpoint


@asynccontextmanager
async def sending(database_url: str) -> AsyncIterator[Sender]:
    """The sender of a process of the aggregator."""
    connection = await database.connect(database_url)
    async with egress.opened(RULES, most_kept=100) as out:
        yield Sender(connection, out)
    connection.terminate()


@pytest.fixture
async def sender(database_url: str) -> AsyncIterator[Sender]:
    """A sender, which sends when it is told to."""
    async with sending(database_url) as sender:
        yield sender


async def sent(sender: Sender, until: Callable[[], bool] | None = None) -> None:
    """Let it send what is due now, or until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        quiet = 0
        while not (until() if until else quiet >= 2):
            sender._look_at = sender._look_at_all = 0.0
            await sender.step()
            quiet = quiet + 1 if not sender.under_way else 0
            await asyncio.sleep(0.002)


async def hook(telling: Telling, url: str, **fields: Any) -> tuple[str, str]:
    """A subscription to an address, and the secret of its webhook."""
    subscription = await telling.subscribe(of_address(ALICE))
    reply = await telling.call("PUT", f"/{subscription}/webhook", {"url": url, **fields})
    assert reply.status == 200, reply.body
    return subscription, reply.body["data"]["secret"]


async def shown(telling: Telling, subscription: str) -> Json:
    reply = await telling.call("GET", f"/{subscription}/webhook")
    assert reply.status == 200, reply.body
    data: Json = reply.body["data"]
    return data


async def pay(telling: Telling, first: int, last: int) -> None:
    """Events with these numbers, one a block."""
    for number in range(first, last + 1):
        await telling.append(10 * number, tx(f"{number}", pays(ALICE)))


async def sooner(db: asyncpg.Connection) -> None:
    """As if all pauses were over."""
    await db.execute("UPDATE partner.webhook SET try_at = now() WHERE try_at > now()")


async def counted(db: asyncpg.Connection) -> tuple[int, int]:
    """The events and the requests of webhooks in the breakdown of usage."""
    row = await db.fetchrow(
        "SELECT coalesce(sum(events), 0)::bigint, coalesce(sum(requests), 0)::bigint"
        " FROM partner.usage_hour JOIN partner.endpoint USING (endpoint_no) WHERE name = 'webhook' AND status_class = 2"
    )
    return row[0], row[1]


def verified(secret: str, message: Received) -> None:
    """Verify a message as receivers do."""
    standardwebhooks.Webhook(secret).verify(message.body, dict(message.headers))
    svix.Webhook(secret).verify(message.body, dict(message.headers))


async def test_events_arrive_in_order_signed_and_as_a_page_has_them(
    telling: Telling, endpoint: Endpoint, sender: Sender
) -> None:
    subscription, secret = await hook(telling, endpoint.url("/a?b=c"))
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    await pay(telling, 1, 20)
    await telling.back_to(190)
    await telling.told()
    await sent(sender)
    page = (await telling.events(subscription)).body["data"]
    assert [each.event for each in endpoint.received] == page
    assert endpoint.numbers == list(range(1, 22)) and page[-1]["action"] == "undo"
    for message in endpoint.received:
        verified(secret, message)
        assert message.headers["webhook-id"] == f"evt_{subscription}_{message.number}"
        assert message.headers["Content-Type"] == "application/json"
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verified(secret.replace(secret[6:9], "abc"), endpoint.received[0])
    state = await shown(telling, subscription)
    assert "secret" not in state and (state["state"], state["delivered_number"], state["failures"]) == ("active", 21, 0)
    assert [each["number"] for each in state["attempts"]] == list(range(21, 1, -1))
    assert len(state["attempts"]) == KEPT_ATTEMPTS and {each["status"] for each in state["attempts"]} == {204}


async def test_an_event_is_repeated_with_its_id_before_the_next_is_sent(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, secret = await hook(telling, endpoint.url())
    await pay(telling, 1, 3)
    endpoint.statuses.extend([204, 500, 429])
    await sent(sender)
    assert endpoint.numbers == [1, 2]
    state = await shown(telling, subscription)
    pause = datetime.fromisoformat(state["next_attempt_at"]) - datetime.now(UTC)
    assert state["failures"] == 1 and timedelta(0) < pause < timedelta(seconds=6)
    await sooner(db)
    await sent(sender)
    assert endpoint.numbers == [1, 2, 2]
    pause = datetime.fromisoformat((await shown(telling, subscription))["next_attempt_at"]) - datetime.now(UTC)
    assert timedelta(minutes=4) < pause < timedelta(minutes=6)
    await sooner(db)
    await sent(sender)
    assert endpoint.numbers == [1, 2, 2, 2, 3]
    assert len({each.headers["webhook-id"] for each in endpoint.received}) == 3
    verified(secret, endpoint.received[2])
    attempts = (await shown(telling, subscription))["attempts"]
    assert [(each["number"], each["attempt"], each["status"]) for each in attempts] == [
        (3, 1, 204),
        (2, 3, 204),
        (2, 2, 429),
        (2, 1, 500),
        (1, 1, 204),
    ]
    assert await counted(db) == (3, 0), "what counts is delivery, not attempts"


async def test_a_webhook_that_fails_ten_times_is_paused_and_replayed_from_any_number(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    watching = await telling.subscribe({"kind": "delivery.failing"})
    await pay(telling, 1, 3)
    endpoint.statuses.extend([204, *[503] * 10])
    for _ in range(12):
        await sent(sender)
        await sooner(db)
    assert endpoint.numbers == [1] + [2] * 10
    state = await shown(telling, subscription)
    assert (state["state"], state["failures"], state["next_attempt_at"]) == ("failing", 10, None)
    await telling.told()
    (failing,) = (await telling.events(watching)).body["data"]
    assert (failing["action"], failing["kind"]) == ("notice", "delivery.failing")
    assert failing["object"] == {"subscription_id": subscription, "number": 2, "status": 503, "error": None}
    reply = await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 0})
    assert (reply.status, reply.body["data"]["state"], reply.body["data"]["delivered_number"]) == (200, "active", 0)
    await sent(sender)
    assert endpoint.numbers[11:] == [1, 2, 3]
    reply = await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 4})
    assert reply.status == 400 and reply.error.startswith("after must be at most 3")
    counted = await db.fetch("SELECT result, attempts FROM partner.webhook_total ORDER BY result")
    assert [tuple(each) for each in counted] == [("delivered", 4), ("failed", 10)]


async def test_an_endpoint_that_is_gone_ends_its_webhook(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 2)
    endpoint.statuses.append(410)
    await sent(sender)
    await sooner(db)
    await sent(sender)
    assert endpoint.numbers == [1] and (await shown(telling, subscription))["state"] == "ended"
    for change, body in (("pause", None), ("resume", None), ("replay", {"after": 0})):
        reply = await telling.call("POST", f"/{subscription}/webhook/{change}", body)
        assert (reply.status, reply.headers["Error-Code"]) == (409, "webhook_ended")
    reply = await telling.call("PUT", f"/{subscription}/webhook", {"url": endpoint.url("/new")})
    assert reply.body["data"]["state"] == "active" and "secret" not in reply.body["data"]
    await sent(sender)
    assert [(each.number, each.path) for each in endpoint.received[1:]] == [(1, "/new"), (2, "/new")]


async def test_both_secrets_sign_until_the_former_one_ends(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, first = await hook(telling, endpoint.url())
    path, once = f"/v1/subscriptions/{subscription}/webhook/secret", {"Idempotency-Key": "rotation-1"}
    rotated = await telling.api.call("POST", path, telling.key, headers=once)
    second = rotated.body["data"]["secret"]
    again = await telling.api.call("POST", path, telling.key, headers=once)
    assert (again.status, again.headers["Error-Code"]) == (409, "key_not_shown_again")
    until = datetime.fromisoformat(rotated.body["data"]["webhook"]["former_secret_until"]) - datetime.now(UTC)
    assert timedelta(hours=23) < until <= timedelta(hours=24)
    await pay(telling, 1, 1)
    await sent(sender)
    verified(first, endpoint.received[0])
    verified(second, endpoint.received[0])
    await db.execute("UPDATE partner.webhook SET former_until = now()")
    await pay(telling, 2, 2)
    await sent(sender)
    verified(second, endpoint.received[1])
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verified(first, endpoint.received[1])
    assert (await shown(telling, subscription))["former_secret_until"] is None


async def test_a_private_address_is_never_connected_to(telling: Telling, endpoint: Endpoint, sender: Sender) -> None:
    async with listening("127.0.0.2") as inside:
        by_name, _ = await hook(telling, inside.url(host="inside.example"))
        redirected, _ = await hook(telling, endpoint.url())
        endpoint.statuses.append(307)
        endpoint.location = inside.url(host="127.0.0.2")
        by_address, _ = await hook(telling, "http://192.168.1.1.nip.example/")
        await pay(telling, 1, 1)
        await sent(sender)
        assert inside.received == [] and endpoint.numbers == [1]
        attempts = [(await shown(telling, each))["attempts"] for each in (by_name, by_address, redirected)]
        assert [(each["status"], each["error"]) for (each,) in attempts] == [
            (None, "unreachable"),
            (None, "unreachable"),
            (307, None),
        ]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook.example",
        "http://hook.example/",
        "ftp://hook.example/",
        "https://user:word@hook.example/",
        "https://hook.example:22/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.0.0.8/",
        "https://[::ffff:169.254.169.254]/",
        f"https://hook.example/{'x' * 2048}",
    ],
)
async def test_a_url_that_is_never_requested_is_refused(
    environment: dict[str, str], key: str, telling: Telling, url: str
) -> None:
    subscription = await telling.subscribe(of_address(ALICE))
    async with serving(environment | {"WEBHOOKS_LOCAL": "off"}) as api:
        path = f"/v1/subscriptions/{subscription}/webhook"
        reply = await api.call("PUT", path, key, json={"url": url})
        assert reply.status == 400 and reply.error.startswith("url must be a public https:// URL"), reply.body
        assert (await api.get(path, key)).headers["Error-Code"] == "webhook_not_found"


async def test_the_log_does_not_have_the_url_of_an_answer_that_is_malformed(
    telling: Telling, sender: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"malformed\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        subscription, _ = await hook(telling, f"http://hook.example:{port}/?token=hidden")
        await pay(telling, 1, 1)
        await sent(sender)
    (attempt,) = (await shown(telling, subscription))["attempts"]
    captured = capsys.readouterr()
    assert attempt["error"] == "invalid_response"
    assert "webhooks.not_sent" in captured.out + captured.err
    assert "hidden" not in captured.out + captured.err


async def test_a_paused_webhook_is_sent_nothing_until_it_is_resumed(
    telling: Telling, endpoint: Endpoint, sender: Sender
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    endpoint.hold.clear()
    await pay(telling, 1, 3)
    await sent(sender, until=lambda: endpoint.numbers == [1])
    reply = await telling.call("POST", f"/{subscription}/webhook/pause")
    assert reply.body["data"]["state"] == "paused"
    endpoint.hold.set()
    await sent(sender)
    assert endpoint.numbers == [1]
    assert (await shown(telling, subscription))["delivered_number"] == 1, "it had been sent before"
    await telling.call("POST", f"/{subscription}/webhook/resume")
    await sent(sender)
    assert endpoint.numbers == [1, 2, 3]


async def test_what_was_under_way_when_the_position_changed_does_not_move_it(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 2)
    await sent(sender)
    endpoint.hold.clear()
    await pay(telling, 3, 3)
    await sent(sender, until=lambda: endpoint.numbers == [1, 2, 3])
    await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 1})
    endpoint.hold.set()
    await sent(sender)
    assert endpoint.numbers == [1, 2, 3, 2, 3]
    assert await counted(db) == (5, 0), "it was acknowledged nevertheless"


async def test_a_webhook_may_begin_after_a_number(telling: Telling, endpoint: Endpoint, sender: Sender) -> None:
    subscription = await telling.subscribe(of_address(ALICE))
    await pay(telling, 1, 4)
    reply = await telling.call("PUT", f"/{subscription}/webhook", {"url": endpoint.url(), "after": 5})
    assert reply.error.startswith("after must be at most 4")
    await telling.call("PUT", f"/{subscription}/webhook", {"url": endpoint.url(), "after": 2})
    await sent(sender)
    assert endpoint.numbers == [3, 4]


async def test_events_that_are_no_longer_kept_stop_a_webhook_instead_of_being_skipped(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 3)
    await db.execute("DELETE FROM partner.event WHERE number = 1")
    await sent(sender)
    state = await shown(telling, subscription)
    assert endpoint.numbers == [] and state["state"] == "failing"
    assert state["attempts"][0]["error"] == "events_not_kept"
    reply = await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 0})
    assert (reply.status, reply.error) == (410, "Events before number 2 are no longer kept")
    await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 1})
    await sent(sender)
    assert endpoint.numbers == [2, 3]


@pytest.mark.parametrize(
    ("ends", "begins"),
    [
        ("UPDATE partner.user_account SET status = 'suspended'", "UPDATE partner.user_account SET status = 'active'"),
        ("UPDATE partner.credential SET scopes = '{pools}'", "UPDATE partner.credential SET scopes = '{}'"),
        ("UPDATE partner.credential SET expires_at = now()", "UPDATE partner.credential SET expires_at = NULL"),
        ("UPDATE partner.credential SET revoked_at = now()", None),
    ],
    ids=["suspended", "restricted", "expired", "revoked"],
)
async def test_a_credential_whose_keys_are_refused_is_sent_nothing(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection, ends: str, begins: str | None
) -> None:
    await hook(telling, endpoint.url())
    await db.execute(ends)
    await pay(telling, 1, 1)
    await sent(sender)
    assert endpoint.numbers == []
    if begins:
        await db.execute(begins)
        await sent(sender)
        assert endpoint.numbers == [1]


@pytest.mark.parametrize(
    "change", ["UPDATE partner.credential SET revoked_at = now()", None], ids=["revoked", "rotated"]
)
async def test_what_was_read_ahead_for_a_slow_endpoint_is_read_again(
    telling: Telling,
    endpoint: Endpoint,
    sender: Sender,
    db: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    change: str | None,
) -> None:
    monkeypatch.setattr(deliveries, "_READ_FOR_S", 0.0)
    subscription, secret = await hook(telling, endpoint.url())
    await pay(telling, 1, 2)
    endpoint.hold.clear()
    await sent(sender, until=lambda: endpoint.numbers == [1])
    if change is None:
        secret = (await telling.call("POST", f"/{subscription}/webhook/secret")).body["data"]["secret"]
    else:
        await db.execute(change)
    endpoint.hold.set()
    await sent(sender)
    assert endpoint.numbers == ([1, 2] if change is None else [1])
    if change is None:
        verified(secret, endpoint.received[1])


async def test_a_webhook_that_skips_its_events_while_they_are_due_goes_on(
    telling: Telling, endpoint: Endpoint, sender: Sender, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 3)
    due = await deliveries._due.all(db, [], 10)

    class Before:
        """What was due before the events were skipped."""

        async def all(self, *_: object) -> list[deliveries._Due]:
            monkeypatch.undo()
            return due

    await telling.call("POST", f"/{subscription}/webhook/replay", {"after": 3})
    monkeypatch.setattr(deliveries, "_due", Before())
    await sent(sender)
    state = await shown(telling, subscription)
    assert (state["state"], state["attempts"], endpoint.numbers) == ("active", [], [])
    await pay(telling, 4, 4)
    await sent(sender)
    assert endpoint.numbers == [4]


async def test_a_partner_with_many_webhooks_does_not_hide_those_of_others(
    telling: Telling, api: Client, endpoint: Endpoint, db: asyncpg.Connection
) -> None:
    partners = [await partner_of(api, name) for name in ("many", "few")]
    for partner, webhooks in zip(partners, (3, 1), strict=True):
        _, key = await partner.issued(await partner.user())
        for _ in range(webhooks):
            created = await telling.call("POST", "", {"subjects": [of_address(ALICE)]}, key)
            await telling.call("PUT", f"/{created.body['data']['id']}/webhook", {"url": endpoint.url()}, key)
    await telling.told()
    await pay(telling, 1, 1)
    found = await deliveries._due.all(db, [], 2)
    assert {str(each.admin_key_id) for each in found} == {partner.record["id"] for partner in partners}


async def test_a_sender_that_is_killed_loses_nothing_and_repeats_what_was_under_way(
    telling: Telling, endpoint: Endpoint, database_url: str, db: asyncpg.Connection
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 4)
    endpoint.statuses.append(204)
    async with sending(database_url) as first:
        running = asyncio.create_task(first.run())
        while endpoint.numbers != [1, 2]:
            endpoint.came.clear()
            if endpoint.numbers == [1]:
                endpoint.hold.clear()
            await asyncio.wait_for(endpoint.came.wait(), PATIENCE_S)
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1"
        await db.fetch(ended, first._db.get_server_pid())
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await asyncio.wait_for(running, PATIENCE_S)
    endpoint.hold.set()
    async with sending(database_url) as second:
        await sent(second)
    assert endpoint.numbers in ([1, 2, 2, 3, 4], [1, 1, 2, 2, 3, 4])
    assert (await shown(telling, subscription))["delivered_number"] == 4
    assert await counted(db) == (4, 0), "with the commit of each result, whatever is repeated"


async def test_a_killed_aggregator_is_followed_by_another(
    telling: Telling, endpoint: Endpoint, aggregator: Callable[[], subprocess.Popen[bytes]]
) -> None:
    _, secret = await hook(telling, endpoint.url(host="127.0.0.1"))
    await pay(telling, 1, 4)
    endpoint.hold.clear()
    first = aggregator()
    await asyncio.wait_for(endpoint.came.wait(), PATIENCE_S)
    os.killpg(first.pid, signal.SIGKILL)
    endpoint.hold.set()
    aggregator()
    async with asyncio.timeout(PATIENCE_S):
        while endpoint.numbers[-1] != 4:
            endpoint.came.clear()
            await endpoint.came.wait()
    assert endpoint.numbers == [1, 1, 2, 3, 4]
    verified(secret, endpoint.received[-1])


async def test_a_partner_sees_the_webhooks_of_its_credentials(
    telling: Telling, partner: Partner, endpoint: Endpoint
) -> None:
    credential, key = await partner.issued(await partner.user())
    created = await telling.call("POST", "", {"subjects": [of_address(ALICE)]}, key)
    await telling.call("PUT", f"/{created.body['data']['id']}/webhook", {"url": endpoint.url()}, key)
    (webhook,) = await partner.data("GET", f"/credentials/{credential['id']}/webhooks")
    assert (webhook["id"], webhook["url"]) == (created.body["data"]["id"], endpoint.url())
    assert "secret" not in webhook


async def test_endpoints_that_do_not_answer_delay_no_others(
    telling: Telling, endpoint: Endpoint, sender: Sender
) -> None:
    """More of them than a partner has slots for."""
    async with listening() as dead:
        dead.hold.clear()
        quick, _ = await hook(telling, endpoint.url())
        await pay(telling, 1, 1)
        await sent(sender)
        for _ in range(40):
            await hook(telling, dead.url(), after=0)
        await pay(telling, 2, 9)
        await sent(sender, until=lambda: endpoint.numbers == list(range(1, 10)))
        assert 0 < len(dead.received) <= 32 and (await shown(telling, quick))["failures"] == 0


async def test_another_credentials_webhook_is_not_found(
    telling: Telling, endpoint: Endpoint, issue_key: IssueKey
) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    stranger = await issue_key()
    replies: list[tuple[Reply, Reply]] = []
    for method, path, body in (
        ("PUT", "", {"url": endpoint.url()}),
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/secret", None),
        ("POST", "/replay", {"after": 0}),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
    ):
        foreign, missing = [
            await telling.call(method, f"/{each}/webhook{path}", body, stranger) for each in (subscription, NOWHERE)
        ]
        replies.append((foreign, missing))
    assert {each.status for pair in replies for each in pair} == {404}
    assert all(foreign.body == missing.body for foreign, missing in replies)
    assert (await telling.call("DELETE", f"/{subscription}/webhook")).status == 200
    assert (await telling.call("GET", f"/{subscription}/webhook")).headers["Error-Code"] == "webhook_not_found"


async def test_a_deleted_webhook_is_sent_nothing_more(telling: Telling, endpoint: Endpoint, sender: Sender) -> None:
    subscription, _ = await hook(telling, endpoint.url())
    await pay(telling, 1, 1)
    endpoint.hold.clear()
    await sent(sender, until=lambda: endpoint.numbers == [1])
    await telling.call("DELETE", f"/{subscription}/webhook")
    await telling.call("PUT", f"/{subscription}/webhook", {"url": endpoint.url("/other")})
    endpoint.hold.set()
    await sent(sender)
    assert [each.path for each in endpoint.received] == ["/", "/other"]
