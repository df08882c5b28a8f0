"""A headless Chromium, and an API for it to visit."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from tests.api.conftest import api, chain, db, environment, indexer, no_aggregator
from tests.browser.pages import chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["api", "chain", "db", "environment", "indexer", "no_aggregator"]


@pytest.fixture
async def browser() -> AsyncIterator["Browser"]:
    """A browser for one test."""
    async with chromium() as started:
        yield started
