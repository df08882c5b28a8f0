"""The Python client against a running service: every operation, pages, exact integers, errors, retries."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from ledgerline_client import AsyncLedgerline, Ledgerline, LedgerlineError

from clients import generate
from indexer.blocks.effects import Output
from tests.api.chains import Chain, Tx
from tests.api.client import Client
from tests.api.partners import Partner
from tests.api.payments import ALICE, BOB, pays, raw

MANY = 7
LARGE = 2**63 - 1


def test_the_generated_files_are_those_of_the_table_of_routes() -> None:
    for path, text in generate.files().items():
        assert path.read_text() == text, f"{path.name}: run python -m clients.generate"


def onboard(url: str, admin_key: str) -> str:
    """The life of a customer, in the synchronous client; returns its API key."""
    with Ledgerline(url, admin_key=admin_key) as service:
        user = service.create_user(name="Alice", external_id="customer-1", metadata={"tier": 2**60 + 1})["data"]
        assert service.get_user_by_external_id("customer-1")["data"]["metadata"] == {"tier": 2**60 + 1}
        issued = [
            service.create_credential(name=str(number), user_account_id=user["id"], network_id=1)["data"]
            for number in range(MANY)
        ]
        listed = list(service.iterate_credentials(limit=2))
        assert [each["name"] for each in listed] == [str(number) for number in reversed(range(MANY))]
        service.update_credential(issued[0]["credential"]["id"], description="new")
        service.revoke_credential(issued[1]["credential"]["id"])
        assert len(list(service.iterate_credentials(limit=3))) == MANY - 1
        assert len(list(service.iterate_credentials(limit=3, include_revoked=True))) == MANY
        with pytest.raises(LedgerlineError, match="409 external_id already in use") as refused:
            service.create_user(name="Bob", external_id="customer-1")
        assert refused.value.status == 409
        assert refused.value.request_id
        assert service.export_usage(file_format="csv").startswith("user_account_id,")
        with pytest.raises(ValueError, match="needs api_key="):
            service.get_pool("pool1")
        return issued[0]["api_key"]


async def test_a_customer_is_onboarded_and_asks_the_chain(api: Client, partner: Partner, chain: Chain) -> None:
    url = f"http://127.0.0.1:{api.port}"
    key = await asyncio.to_thread(onboard, url, partner.admin_key)
    rich = Tx(name="rich", outputs=[Output(raw(BOB), LARGE)])
    await chain.append(9, rich)
    for slot_no in range(10, 14):
        await chain.append(slot_no, pays(f"{slot_no} a", ALICE), pays(f"{slot_no} b", ALICE))
    async with AsyncLedgerline(url, api_key=key) as service:
        every = [each["tx_hash"] async for each in service.iterate_transaction_history(ALICE, limit=1)]
        page = await service.list_transaction_history(ALICE)
        assert every == [each["tx_hash"] for each in page["data"]]
        assert len(set(every)) == len(every) == 8
        [output] = (await service.get_transaction(rich.hash.hex()))["data"]["outputs"]
        assert output["value"]["lovelace"] == LARGE
        with pytest.raises(LedgerlineError, match="404 Transaction not found"):
            await service.get_transaction("0" * 64)
        assert (await service.get_health())["data"]["status"]


@pytest.fixture
async def busy() -> AsyncIterator[tuple[str, list[str]]]:
    """A service that is busy at first, and the methods of the requests to it."""
    methods: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        methods.append(request.method)
        if len(methods) < 3:
            status = 429 if request.path.endswith("/users") else 503
            body = {"success": False, "error": "busy"}
            return web.json_response(body, status=status, headers={"Retry-After": "0"})
        return web.json_response({"success": True, "data": {}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")), methods


async def test_a_busy_service_is_asked_again(busy: tuple[str, list[str]]) -> None:
    url, methods = busy
    async with AsyncLedgerline(url, api_key="k", admin_key="a") as service:
        await service.get_pool("pool1")
    assert methods == ["GET"] * 3


async def test_what_may_have_been_done_is_not_repeated(busy: tuple[str, list[str]]) -> None:
    url, methods = busy
    async with AsyncLedgerline(url, admin_key="a") as service:
        with pytest.raises(LedgerlineError, match="503 busy"):
            await service.create_credential(name="x", user_account_id="u", network_id=1)
        assert methods == ["POST"]
        await service.create_user(name="Alice")
    assert methods == ["POST"] * 3, "a 429 has done nothing"


def test_an_unreachable_service_is_an_error(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    monkeypatch.setattr("ledgerline_client.http.MOST_TRIES", 2)
    with Ledgerline(f"http://127.0.0.1:{unused_tcp_port}") as service, pytest.raises(httpx.ConnectError):
        service.get_health()
