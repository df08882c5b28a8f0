"""One API and one browser for all tests of a file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import msgspec

from api import worker
from api.events import subjects
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

    async def subscribed(self, credential: dict[str, Any], events: int) -> str:
        """A live subscription of a credential to blocks, with so many events. Returns its id."""
        number, subscription_id = await self.db.fetchrow(
            """
            INSERT INTO partner.subscription
                (credential_id, network_id, confirmations, state, live_step, after_slot_no, at_slot_no, subjects)
            VALUES ($1, 1, 0, 'live', 0, 0, 0, 1) RETURNING subscription_no, id
            """,
            credential["id"],
        )
        for block_no in range(1, events + 1):
            await self.tell(number, block_no)
        return str(subscription_id)

    async def tell(self, subscription_no: int, block_no: int) -> None:
        """Tell a subscription of a block."""
        body = msgspec.json.encode({"block_no": block_no, "told as": "x" * 100}).decode()
        await self.db.execute(
            """
            WITH next AS (
                UPDATE partner.subscription SET last_number = last_number + 1 WHERE subscription_no = $1
                RETURNING subscription_no, last_number
            ), object AS (INSERT INTO partner.event_object (body) VALUES ($3) RETURNING object_no)
            INSERT INTO partner.event (subscription_no, number, step, slot_no, block_no, object_no, network_id, undone,
                                       block_hash, key)
            SELECT subscription_no, last_number, x.no, 20 * x.no, x.no, object_no, 1, false, sha256('block'), $4
            FROM next, object, (SELECT $2::bigint AS no) x
            """,
            *(subscription_no, block_no, body, subjects.key_of("block")),
        )

    async def delivering(self, subscription_id: str, attempts: list[tuple[int, int | None, str | None]]) -> None:
        """A webhook of a subscription which has delivered all events but the last, and these attempts to send that.

        Each is its own number, the status and the error.
        """
        number, last = await self.db.fetchrow(
            "SELECT subscription_no, last_number FROM partner.subscription WHERE id = $1", subscription_id
        )
        await self.db.execute(
            """
            INSERT INTO partner.webhook (subscription_no, url, secret, delivered_number, failures, try_at)
            VALUES ($1, $2, $3, $4, $5, now() + interval '1 hour')
            """,
            *(number, f"https://hooks.example/{'long/' * 40}", bytes(32), last - 1, len(attempts)),
        )
        for nth, status, error in attempts:
            await self.db.execute(
                """
                INSERT INTO partner.webhook_attempt
                    (subscription_no, place, number, attempt, tried_at, took_ms, status, error)
                VALUES ($1, $2::int, $3, $2::int, now() + $2::int * interval '1 s', 15, $4, $5)
                """,
                *(number, nth, last, status, error),
            )


async def sign_in(page: "Page", key: str) -> None:
    await page.get_by_label("Admin key", exact=True).fill(key)
    await page.get_by_role("button", name="Sign in").click()
