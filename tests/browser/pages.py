"""Pages of the service in a headless Chromium, and the checks that apply to each of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests import programs
from tests.api.client import Client

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Page

PATIENCE_MS = 60_000
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
WIDTHS = (320, 768, 1440)

# Whether each table that does not scroll ends within its card, whose padding is at least 16 px.
_TABLES_FIT = """(() => {
    const right = element => element.getBoundingClientRect().right;
    const tables = [...document.querySelectorAll(".card table")].filter(table => !table.closest(".scroll"));
    return tables.every(table => right(table) <= right(table.closest(".card")) - 15);
})()"""
_REFUSED = "Failed to load resource: the server responded with a status of 4"


@asynccontextmanager
async def chromium() -> AsyncIterator["Browser"]:
    """Debian's Chromium, driven by Playwright; a test is skipped if either is missing."""
    playwright = pytest.importorskip("playwright.async_api", reason="needs playwright, of the extra dev")
    installed = programs.found("chromium")
    async with playwright.async_playwright() as running:
        # Chromium's own sandbox does not start as root or in most containers. It only visits our page.
        started = await running.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield started
        await started.close()


@asynccontextmanager
async def new_page(browser: "Browser", api: Client, **options: Any) -> AsyncIterator["Page"]:
    """A page of a new visitor. It may fetch nothing from elsewhere and log no error, such as a breach of its policy.

    A refusal of the API does not count as an error.
    """
    context = await browser.new_context(base_url=f"http://127.0.0.1:{api.port}", **options)
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors, elsewhere = list[str](), list[str]()

    def logged(said: "ConsoleMessage") -> None:
        if said.type in ("error", "warning") and not said.text.startswith(_REFUSED):
            errors.append(said.text)

    page.on("console", logged)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda asked: None if f":{api.port}/" in asked.url else elsewhere.append(asked.url))
    yield page
    assert (errors, [url for url in elsewhere if not url.startswith(("data:", "blob:"))]) == ([], [])
    await context.close()


async def violations(page: "Page") -> list[str]:
    """The violations that axe finds once all colour transitions are over.

    Transitions inside a closed `details` stand still, so they are not awaited. A cancelled transition is over too.
    """
    from axe_playwright_python.async_playwright import Axe

    await page.evaluate(
        """Promise.allSettled(
            document.getAnimations()
                .filter(animation => animation.effect.target.checkVisibility())
                .map(animation => animation.finished)
        )"""
    )
    is_loaded = await page.evaluate("'axe' in window")
    found = await (Axe("0") if is_loaded else Axe()).run(page)
    return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found.response["violations"]]


async def assert_accessible(page: "Page") -> None:
    """Axe finds nothing in both colour schemes at each width, and at each width everything has its place."""
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            found = await violations(page)
            assert not found, (page.url, scheme, width, found)
    for width in range(WIDTHS[0], WIDTHS[-1] + 1, 80):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (page.url, width)
        assert await page.evaluate(_TABLES_FIT), (page.url, width)
