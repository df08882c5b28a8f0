"""The Python client against a running service: every operation, pages, exact integers, errors, retries."""

import asyncio
from itertools import islice

import pytest
from ledgerline_client import AsyncLedgerline, Ledgerline, LedgerlineError

from api.events import stream
from indexer.blocks.effects import PaidOutput
from tests.api.chains import Chain, Tx
from tests.api.client import Client
from tests.api.partners import Partner
from tests.api.payments import ALICE, BOB, pays, raw
from tests.api.test_subscriptions import Telling, telling

__all__ = ["telling"]

MANY = 7
LARGE = 2**63 - 1


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
        service.update_user(user["id"], email="a@example.com", billing_plan="gold")
        changed = service.update_user(user["id"], email=None)["data"]
        assert (changed["email"], changed["billing_plan"]) == (None, "gold"), "null clears, an absent field stays"
        service.revoke_credential(issued[1]["credential"]["id"])
        assert len(list(service.iterate_credentials(limit=3))) == MANY - 1
        assert len(list(service.iterate_credentials(limit=3, include_revoked=True))) == MANY
        with pytest.raises(LedgerlineError, match="409 external_id already in use") as refused:
            service.create_user(name="Bob", external_id="customer-1")
        assert refused.value.status == 409
        assert refused.value.request_id
        list(service.iterate_user_usage_breakdown(user["id"], group_by="endpoint"))
        assert service.export_usage(file_format="csv").startswith("user_account_id,")
        assert next(service.stream_usage(file_format="csv")).startswith("user_account_id,")
        with pytest.raises(ValueError, match="needs api_key="):
            service.get_pool("pool1")
        return rotated(service, url, issued[0]["credential"]["id"], issued[0]["api_key"])


def rotated(service: Ledgerline, url: str, credential_id: str, former_key: str) -> str:
    """The further life of a key; returns the new one."""
    assert service.update_credential(credential_id, description="new")["data"]["description"] == "new"
    assert service.update_credential(credential_id, description=None)["data"]["description"] is None
    key = service.rotate_credential(credential_id, overlap_seconds=3600)["data"]["api_key"]
    with Ledgerline(url, api_key=former_key) as customer:
        assert customer.get_own_key()["data"]["credential_id"] == credential_id
        customer.api_key = key
        assert customer.get_own_key()["data"]["expires_at"] is None, "the former key has an end"
    service.update_credential_limits(credential_id, rate_limit_per_minute=500, quota={"requests": 1000, "per": "day"})
    service.update_credential_limits(credential_id, quota=None)
    limits = service.get_credential_limits(credential_id)["data"]
    assert (limits["rate_limit_per_minute"], limits["quota"]) == (500, None)
    service.update_credential_restrictions(credential_id, scopes=["transactions"], ip_networks=["192.0.2.0/24"])
    with Ledgerline(url, api_key=key) as customer, pytest.raises(LedgerlineError, match="403 IP address not allowed"):
        customer.get_own_key()
    service.update_credential_restrictions(credential_id, ip_networks=None)
    assert service.get_credential_restrictions(credential_id)["data"]["scopes"] == ["transactions"]
    return key


async def test_a_customer_is_onboarded_and_queries_the_chain(api: Client, partner: Partner, chain: Chain) -> None:
    url = f"http://127.0.0.1:{api.port}"
    key = await asyncio.to_thread(onboard, url, partner.admin_key)
    rich = Tx(name="rich", outputs=[PaidOutput(raw(BOB), LARGE)])
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


async def test_a_deleted_customer_is_gone(api: Client, partner: Partner) -> None:
    async with AsyncLedgerline(f"http://127.0.0.1:{api.port}", admin_key=partner.admin_key) as service:
        user = (await service.create_user(name="Alice"))["data"]
        assert (await service.delete_user(user["id"]))["data"]["id"] == user["id"]
        with pytest.raises(LedgerlineError, match="404 User account not found"):
            await service.get_user(user["id"])


async def test_a_refused_download_is_an_error(api: Client) -> None:
    url = f"http://127.0.0.1:{api.port}"
    async with AsyncLedgerline(url, admin_key="a") as service:
        with pytest.raises(LedgerlineError, match="403 Invalid admin API key"):
            await anext(service.stream_usage())
    with Ledgerline(url, admin_key="a") as waiting, pytest.raises(LedgerlineError, match="403 Invalid admin API key"):
        await asyncio.to_thread(list, waiting.stream_usage())


async def test_a_subscription_is_followed_and_its_end_is_an_error(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over streams that end all the time. tests/api/test_streams_over_forks.py has restarts."""
    monkeypatch.setattr(stream, "MAX_OPEN_S", 0.2)
    url, subscription = f"http://127.0.0.1:{telling.api.port}", await telling.subscribe({"kind": "block"})

    def first(count: int) -> list[int]:
        with Ledgerline(url, api_key=telling.key) as service:
            return [event["number"] for event in islice(service.subscribe(subscription), count)]

    reading = asyncio.create_task(asyncio.to_thread(first, 3))
    for slot in (20, 30, 40):
        await telling.append(slot)
        await asyncio.sleep(0.3)
    assert await reading == [1, 2, 3]
    async with AsyncLedgerline(url, api_key=telling.key) as service:
        numbers = [event["number"] async for event in service.iterate_events(subscription, limit=2)]
        assert numbers == [1, 2, 3]
        further = service.subscribe(subscription, after=3)
        ended = asyncio.ensure_future(anext(further))
        await asyncio.sleep(0.1)
        await telling.call("DELETE", f"/{subscription}")
        with pytest.raises(LedgerlineError, match="404 Subscription not found"):
            await ended
