"""The page at /status in a browser: live, in both colour schemes, at each width, by keyboard, for screen readers."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.indexers import Indexer, slot_now
from tests.api.payments import ALICE, pays
from tests.browser.pages import assert_accessible, new_page, violations

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

NETWORKS = ("Mainnet", "Preview", "Preprod")


@asynccontextmanager
async def opened(browser: "Browser", api: Client, status: Any = None, **options: Any) -> AsyncIterator["Page"]:
    """The page; `status` replaces the API's answer."""
    async with new_page(browser, api, **options) as page:
        if status is not None:
            await page.route("**/v1/status", lambda route: route.fulfill(json=status))
        await page.goto("/status")
        yield page


async def test_the_page_is_live_and_accessible(
    browser: "Browser", api: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection
) -> None:
    for age_s in range(3_000, 40, -40):
        await chain.append(slot_now(age_s), pays(str(age_s), ALICE))
    await indexer.beats()
    await db.execute("INSERT INTO partner.verification VALUES (1, now(), now(), 10, 1, 500, '{}')")
    async with opened(browser, api) as page:
        network = page.get_by_role("article", name="Preview")
        await network.get_by_text("In step").wait_for()
        await network.get_by_text("block 73,").wait_for()
        await network.get_by_text("no differences up to block 1; 500 blocks compared with the node").wait_for()
        assert await page.get_by_role("status").inner_text() == "Preview is in step."
        await chain.append(slot_now(), pays("new", ALICE))
        await network.get_by_text("block 74,").wait_for()
        chart = network.get_by_role("img", name=re.compile("^Blocks of Preview in the last hour: 75, from 0 to 2 "))
        assert await chart.locator("canvas").count() == 1
        await assert_accessible(page)


async def test_updates_pause_by_keyboard(browser: "Browser", api: Client, chain: Chain, indexer: Indexer) -> None:
    await chain.append(slot_now(60), pays("first", ALICE))
    await indexer.beats()
    async with opened(browser, api) as page:
        await page.get_by_text("block 0,").wait_for()
        for reached in ("Skip to content", "Ledgerline", "Reference", "Status", "Console", "Pause updates"):
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.textContent.trim()") == reached
        await page.keyboard.press("Enter")
        again = page.get_by_role("button", name="Resume updates")
        await again.wait_for()
        assert await again.evaluate("button => button === document.activeElement")
        await chain.append(slot_now(), pays("second", ALICE))
        async with page.expect_response("**/v1/status"):
            await page.keyboard.press("Enter")
        await page.get_by_text("block 1,").wait_for()
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.getAttribute('href')") == "/v1/status"


SYNCING = {"state": "syncing", "phase": "bulk", "sync_progress": 0.4321, "sync_left_s": 4_320}
EMPTY = {"state": "empty", "block_no": None, "last_hour": None, "last_verify": None, "sync_progress": None}
SPLIT = {
    "nodes": [{"number": 1, "state": "followed"}, {"number": 2, "state": "diverged"}],
    "splits": [
        {
            "node": 2,
            "noticed_at": "2026-01-01T00:00:00Z",
            "common": {"slot_no": 9, "block_no": 1_234, "block_hash": "4" * 64},
            "our_tip": {"slot_no": 10, "block_no": 1_250, "block_hash": "5" * 64},
            "node_tip": {"slot_no": 11, "block_no": 1_260, "block_hash": "6" * 64},
        }
    ],
}
STATES: list[tuple[tuple[dict[str, Any], ...], list[str]]] = [
    (
        ({**SYNCING, "first_block_no": 5_000_000}, {"state": "node_lost", "lag_blocks": None}, EMPTY),
        ["43.21 %, about 1 h 12 min left", "block 5,000,000", "Node lost", "unknown", "Nothing is indexed yet."],
    ),
    (
        (
            {"state": "down"},
            {"state": "behind", "sync_left_s": None, "lag_blocks": 7, "lag_slots": 9, "lag_s": 9, "lock_wait_s": 80},
            {"state": "node_stalled"},
        ),
        [
            "waiting for a lock in the database for 1 min 20 s",
            "Indexer down",
            "Behind",
            "Node stalled",
            "differences in holder, stake",
            "time left unknown",
        ],
    ),
    (
        (
            {**SYNCING, "phase": "finishing"},
            {"state": "retired"},
            {**SPLIT, "state": "in_step", "last_rollback_at": "2026-01-01T00:00:00Z", "last_rollback_blocks": 5},
        ),
        [
            "the indexes are being built",
            "Retired",
            "5 blocks, ",
            "1: followed, 2: diverged",
            "after block 1,234",
            "5" * 64,
        ],
    ),
]
"""The replacement for each network's state, and the words of the page for it."""


async def test_each_state_is_shown_in_words(
    browser: "Browser", api: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection
) -> None:
    await chain.append(slot_now(60), pays("a", ALICE))
    await indexer.beats()
    await db.execute("INSERT INTO partner.verification VALUES (1, now(), now(), 10, 1, NULL, '{holder,stake}')")
    answer = (await api.get("/v1/status")).body
    (usual,) = answer["data"]["networks"]
    for states, told in STATES:
        networks = [
            {**usual, **state, "network": name.lower(), "network_id": number}
            for number, (name, state) in enumerate(zip(NETWORKS, states, strict=True))
        ]
        usage = {"queued": None, "waiting_bytes": 0, "lag_s": 3_700.0, "oldest_snapshot_s": 4_000.0}
        data = {**answer["data"], "networks": networks, "usage": usage}
        async with opened(browser, api, {"success": True, "data": data}, color_scheme="dark") as page:
            usual_words = (
                "not available, usage waits on disk",
                "1 h 1 min",
                "a session has held a snapshot for 1 h 6 min",
            )
            for words in (*told, *usual_words):
                await page.get_by_text(words).first.wait_for()
            assert await violations(page) == []


async def test_a_service_that_fails_is_reported_with_the_age_of_the_figures(
    browser: "Browser", api: Client, chain: Chain, indexer: Indexer
) -> None:
    await chain.append(slot_now(60), pays("a", ALICE))
    await indexer.beats()
    async with opened(browser, api) as page:
        await page.get_by_text("block 0,").wait_for()
        refusal = msgspec.json.encode({"success": False, "error": "Database not available"}).decode()
        await page.route("**/v1/status", lambda route: route.fulfill(body=refusal, content_type="application/json"))
        await page.get_by_role("status").get_by_text("Database not available.").wait_for()
        await page.get_by_text(re.compile(r"^The figures below are \d+\ss old\.$")).wait_for()
        assert await page.get_by_text("block 0,").count() == 1
        await page.unroute("**/v1/status")
        await page.get_by_role("status").get_by_text("Preview is in step.").wait_for()
