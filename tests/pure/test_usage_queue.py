"""Messages to the aggregator."""

from uuid import uuid4

import msgspec

from api.usage import queue
from api.usage.queue import UsageBatch, batch_of
from api.usage.spool import Spools
from tests.api.counting import (
    ENDPOINTS,
    HISTORY,
)


def test_messages_are_json_and_small(spools: Spools) -> None:
    credential_id = uuid4()
    for _ in range(1_000):
        spools.count(credential_id, HISTORY.number, 200, 0.1)
    spools.all[0].sync()
    message = queue._message(batch_of(spools.all[0], ENDPOINTS), "id")
    assert len(message.encode()) < 2_000
    assert msgspec.convert(message.args[0], UsageBatch) == batch_of(spools.all[0], ENDPOINTS)
