"""The memory of an API process, whatever a valid key asks."""

import asyncio
from pathlib import Path

from shared import database
from shared.network import PREVIEW
from tests import long_answers
from tests.campaigns import bounds
from tests.campaigns.bounds import BULK, LONG_ONES, Request
from tests.chain.harness import issue_keys
from tests.long_answers import LONG
from tests.processes.api_process import running

MAX_GROWTH_BYTES = 45_000_000
"""What so few requests may add to the peak: half as much again as they do. Whole bodies in memory add twice that."""

_HASHES = tuple(long_answers.hash_at(number).hex() for number in range(LONG_ONES))
_ORDINARY = long_answers.hash_at(LONG_ONES + long_answers.HOLDING_TRANSACTIONS).hex()
OF_ONE_KEY = {
    Request("POST", BULK, _HASHES, encoding="gzip"): "400",
    Request("GET", bounds.WHOLE_PAGE, encoding="zstd", is_read=False): "200",
    Request("HEAD", f"/v1/tx/hash/{_HASHES[0]}"): "200",
}
OF_ANOTHER = {
    Request("POST", BULK, (_ORDINARY,), junk_bytes=1_000_000): "200",
    Request("GET", f"/v1/addresses/{LONG}/utxos?limit=500"): "400",
}


async def test_the_longest_answers_take_little_memory(environment: dict[str, str], tmp_path: Path) -> None:
    """Two keys ask for them at the same time. The campaign asks for ten minutes, and measures what others notice."""
    url = environment["DATABASE_URL"]
    db = await database.connect(url, PREVIEW)
    await long_answers.fill(db, LONG_ONES)
    await db.close()
    keys = await issue_keys(url, PREVIEW.name, 2)
    with running(environment, tmp_path) as (api, port):
        await bounds.until_answered(port)
        before = bounds.peak_bytes(api.popen.pid)
        sent = zip(keys, (OF_ONE_KEY, OF_ANOTHER), strict=True)
        statuses = await asyncio.gather(*(bounds.at_once(port, key, list(asked)) for key, asked in sent))
        assert statuses == [list(OF_ONE_KEY.values()), list(OF_ANOTHER.values())], api.output()
        assert bounds.peak_bytes(api.popen.pid) - before < MAX_GROWTH_BYTES
