"""Subjects of subscriptions, as bodies name them."""

import asyncio

from api.events.subjects import SentSubject, parse_all
from shared.network import PREVIEW


async def test_other_requests_go_on_while_many_subjects_are_parsed() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(take_turns())
    parsed = await parse_all([SentSubject("metadata", label=f"{label}") for label in range(1_000)], PREVIEW)
    other.cancel()
    assert len(parsed) == 1_000
    assert turns >= 4
