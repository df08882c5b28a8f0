"""One API and one browser for all tests of a file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import msgspec

from api import worker
from api.usage.queue import BreakdownSum, UsageBatch
from tests.api.client import Client
from tests.api.partners import Partner, partner_of
from tests.browser.pages import new_page

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

HOUR_S = 3_600


class Site(msgspec.Struct):
    """One API and one browser for all tests of a file; each test has its own partners."""

    api: Client
    browser: "Browser"
    db: asyncpg.Connection

    @asynccontextmanager
    async def visit(self, key: str, **options: Any) -> AsyncIterator["Page"]:
        """The console, signed in with an admin key. The key never appears in the address or in localStorage."""
        async with new_page(self.browser, self.api, **options) as page:
            await page.goto("/console")
            await sign_in(page, key)
            await page.get_by_role("navigation", name="Pages").wait_for()
            yield page
            assert key not in page.url
            assert await page.evaluate("localStorage.length") == 0
            assert await page.context.cookies() == []

    async def partner(self, name: str = "ACME") -> Partner:
        """A new partner."""
        return await partner_of(self.api, name)

    async def used(self, credential: dict[str, Any], requests: int, status_class: int = 2) -> None:
        """Requests of a credential in this hour, by the aggregator's own commit."""
        now_s = await self.db.fetchval("SELECT extract(epoch FROM now())::bigint")
        part = BreakdownSum(
            credential["id"], now_s // HOUR_S, "GET /v1/key", status_class, requests, requests * 2_000, [30 << 48 | 7]
        )
        assert await worker.add_batch(self.db, UsageBatch(uuid4().hex, 0, 38, [], [part]))


async def sign_in(page: "Page", key: str) -> None:
    await page.get_by_label("Admin key", exact=True).fill(key)
    await page.get_by_role("button", name="Sign in").click()
