"""`python -m api verify-usage` finds every kind of contradiction in the tables of usage."""

from uuid import UUID

import asyncpg
import pytest

from api import worker
from api.commands import verify_usage
from api.usage import hours
from tests.api.test_old_snapshot import Alternating, add_credentials, batches

CHANGES: tuple[tuple[str, list[str]], ...] = (
    ("SELECT", []),
    ("UPDATE partner.usage SET successful = successful + 1 WHERE part = 0", ["minutes"]),
    ("DELETE FROM partner.usage WHERE credential_id IN (SELECT credential_id FROM partner.usage LIMIT 1)", ["minutes"]),
    ("UPDATE partner.usage SET minute = minute + interval '1 day' WHERE part = 0", ["minutes"]),
    ("UPDATE partner.usage_hour SET took_us = took_us - 1 WHERE part = 0", ["hours"]),
    ("UPDATE partner.usage_hour SET status_class = 5 WHERE status_class = 2", ["hours"]),
    ("UPDATE partner.usage_hour SET durations = durations || ((400::bigint << 48) + 1) WHERE part > 0", ["durations"]),
    ("DELETE FROM partner.usage_hour WHERE status_class = 4", ["hours"]),
    ("UPDATE partner.usage_day SET limited = failed + 1 WHERE part = 0", ["limited"]),
    ("UPDATE partner.usage_total SET failed = failed - 1 WHERE part = 0", ["total"]),
    ("DELETE FROM partner.usage_total", ["total"]),
    ("DELETE FROM partner.usage_day WHERE part > 0", ["hours", "minutes", "total"]),
    (
        "INSERT INTO partner.usage_kept VALUES (true, now(), now());"
        " DELETE FROM partner.usage; DELETE FROM partner.usage_hour",
        [],
    ),
)


async def test_each_contradiction_is_named(
    db: asyncpg.Connection, credential_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hours, "_part", Alternating())
    monkeypatch.setattr(verify_usage, "_MAX_CREDENTIALS", 2)
    for batch in batches(await add_credentials(db, credential_id, 4), 20):
        assert await worker.add_batch(db, batch)
    for change, names in CHANGES:
        trial = db.transaction()
        await trial.start()
        await db.execute(change)
        compared, found = await verify_usage.differences(db)
        assert (change, sorted({each.compared for each in found})) == (change, names)
        assert compared == 5
        assert all(str(each).startswith(f"credential {each.credential_id}") for each in found)
        await trial.rollback()
