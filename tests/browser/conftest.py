"""A headless Chromium, and an API for it to look at."""

import shutil
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from tests.api.conftest import api, chain, db, environment, indexer, no_worker

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["api", "chain", "db", "environment", "indexer", "no_worker"]


@pytest.fixture
async def browser() -> AsyncIterator["Browser"]:
    """Debian's Chromium, driven by Playwright; a test is skipped where either is missing."""
    playwright = pytest.importorskip("playwright.async_api", reason="needs playwright, of the extra dev")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium: apt-get install chromium")
    async with playwright.async_playwright() as running:
        # Chromium's own sandbox does not start as root or in most containers. It only visits our page.
        started = await running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        await started.close()
