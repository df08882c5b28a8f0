"""What the Python client does when a service is busy, breaks off or is away, and that it is generated."""

import asyncio

import httpx
import pytest
from ledgerline_client import AsyncLedgerline, Ledgerline, LedgerlineError

from clients import generate
from tests.api.busy import QUOTA_OPENS_AGAIN_S, REFUSED_TIMES, busy_at_first
from tests.api.downloading import LINES, endless_download


def test_the_generated_files_follow_from_their_sources_and_are_marked_as_generated() -> None:
    marked = (generate.CHECKOUT / ".gitattributes").read_text().splitlines()
    for path, text in generate.files().items():
        assert path.read_text() == text, f"{path.name}: run make generated"
        assert f"{path.relative_to(generate.CHECKOUT)} linguist-generated" in marked


async def test_requests_to_a_busy_service_are_retried_if_that_is_safe() -> None:
    async with busy_at_first() as (url, requests), AsyncLedgerline(url, api_key="k", admin_key="a") as service:
        await service.get_pool("pool1")
        await service.create_user(name="Alice")
        assert len(requests["/v1/pools/pool1"]) == len(requests["/v1/admin/users"]) == REFUSED_TIMES + 1
        with pytest.raises(LedgerlineError, match="503 busy"):
            await service.revoke_credential("c")
        assert len(requests["/v1/admin/credentials/c"]) == 1, "it may have been done"
        with pytest.raises(LedgerlineError, match="429 busy") as used_up:
            await service.get_own_key()
        assert used_up.value.retry_after_s == QUOTA_OPENS_AGAIN_S
        assert len(requests["/v1/key"]) == 1


async def test_a_post_is_repeated_with_one_idempotency_key_also_after_a_lost_connection() -> None:
    async with busy_at_first() as (url, requests):
        with Ledgerline(url, admin_key="a") as service:
            await asyncio.to_thread(service.suspend_user, "u")
            await asyncio.to_thread(service.suspend_user, "u", idempotency_key="mine")
        *once, given = requests["/v1/admin/users/u/suspend"]
        assert (len(once), len(set(once)), given) == (REFUSED_TIMES + 1, 1, "mine")
        async with AsyncLedgerline(url, admin_key="a") as service:
            await service.reactivate_user("u")
        assert len(set(requests["/v1/admin/users/u/reactivate"]) - {None}) == 1


async def test_a_download_is_read_line_by_line_while_it_arrives() -> None:
    async with endless_download() as url, AsyncLedgerline(url, admin_key="a") as service:
        lines = []
        async for line in service.stream_usage(file_format="csv"):
            lines.append(line)
            await service.get_health()  # which lets the download go on
        assert lines == LINES
        with Ledgerline(url, admin_key="a") as waiting:
            assert await asyncio.to_thread(list, waiting.stream_usage()) == LINES


async def test_a_download_that_breaks_off_is_an_error() -> None:
    async with endless_download() as url, AsyncLedgerline(url, admin_key="a") as service:
        await service.get_health()
        export = service.stream_usage(file_format="ndjson")
        assert [await anext(export), await anext(export)] == LINES[:2]
        with pytest.raises(httpx.TransportError):
            await anext(export)


def test_an_unreachable_service_is_an_error(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    monkeypatch.setattr("ledgerline_client.http.MAX_TRIES", 2)
    with Ledgerline(f"http://127.0.0.1:{unused_tcp_port}") as service, pytest.raises(httpx.ConnectError):
        service.get_health()
