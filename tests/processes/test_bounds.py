"""The memory of a worker, whatever a valid key asks."""

import asyncio
from pathlib import Path

from shared import database
from shared.network import PREVIEW
from tests import long_answers
from tests.campaigns import bounds
from tests.chain.harness import issue_keys
from tests.processes.api_process import running

LOADED_S = 4.0


async def test_a_worker_stays_below_400_mb(environment: dict[str, str], tmp_path: Path) -> None:
    """Under the load of the campaign, which also measures what it costs another key."""
    url = environment["DATABASE_URL"]
    db = await database.connect(url, PREVIEW)
    await long_answers.fill(db, bounds.LONG_ONES)
    await db.close()
    keys = await issue_keys(url, PREVIEW.name, 1)
    with running(environment, tmp_path) as (api, port):
        await bounds.until_answered(port)
        statuses = await asyncio.to_thread(bounds.load, port, keys[0], LOADED_S, 1)
        assert statuses.keys() <= bounds.ANSWERED, api.output()
        assert statuses["200"]
        assert bounds.peak_bytes(api.popen.pid) < bounds.MOST_MEMORY
