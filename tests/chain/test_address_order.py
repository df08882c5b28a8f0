"""The addresses of an account are in the order of their first use, whatever the batches and the forks."""

from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from api.chain.accounts import addresses_pages
from api.parameters import Order
from shared import address, database
from shared.network import PREVIEW
from tests.chain.model import Json
from tests.chain.written import ADA, Written, tx

STAKE = bytes([9]) * 28
PEOPLE = 40


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


class Paid:
    """Blocks whose transactions pay to addresses of one account, many at a time, and the expected order."""

    def __init__(self, random: Random) -> None:
        self._random, self._number = random, 0
        self.blocks: list[tuple[int, list[Json]]] = []

    def grow(self, count: int) -> list[tuple[int, list[Json]]]:
        """Add blocks of new transactions."""
        last = self.blocks[-1][0] if self.blocks else 0
        self.blocks += [(last + 20 * (place + 1), self._transactions()) for place in range(count)]
        return self.blocks[-count:]

    def _transactions(self) -> list[Json]:
        found = []
        for _ in range(self._random.randrange(4)):
            self._number += 1
            people = [self._random.randrange(PEOPLE) for _ in range(self._random.randrange(1, 5))]
            found.append(tx(f"{self._random.random()} {self._number}", *map(pays, people)))
        return found

    @property
    def order(self) -> list[str]:
        paid = [output["address"] for _, each in self.blocks for done in each for output in done["outputs"]]
        return list(dict.fromkeys(paid))


def pays(who: int) -> Json:
    """An output to one of the account's addresses, whose bytes are in no particular order."""
    key = bytes([(who * 97) % 256]) * 28
    return {"address": address.show(b"\x00" + key + STAKE), "value": {"ada": {"lovelace": 2 * ADA}}}


async def listed(db: asyncpg.Connection, order: Order = "asc", passed: str | None = None) -> list[str]:
    raw = None if passed is None else address.parse(passed, PREVIEW)
    rows = await addresses_pages[order].all(db, b"\xe0" + STAKE, 10 * PEOPLE, 0, raw)
    return [address.show(row.raw) for row in rows if row.raw is not None]


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("bulk", [True, False])
async def test_addresses_are_in_the_order_of_their_first_use(db: asyncpg.Connection, bulk: bool, most: int) -> None:
    """`most` is the size of a batch, as the order may not depend on it; nor on the forks."""
    random = Random(f"{bulk} {most}")
    paid, chain = Paid(random), Written(db, bulk=bulk)
    for _ in range(12):
        if len(paid.blocks) > 8 and random.random() < 0.6:
            del paid.blocks[-random.randint(1, 7) :]
            await chain.back_to(paid.blocks[-1][0])
        blocks = paid.grow(random.randint(1, 8))
        while blocks:
            batch, blocks = blocks[:most], blocks[most:]
            await chain.append_batch(batch)
        if not bulk:
            assert await listed(db) == paid.order
    if bulk:
        await chain.finalize()
    assert await listed(db) == paid.order
    assert len(paid.order) > PEOPLE // 2
    count = await db.fetchval("SELECT address_count FROM stake WHERE raw = $1", b"\xe0" + STAKE)
    assert count == len(paid.order)


@pytest.mark.parametrize("passed", [0, 7, PEOPLE])
async def test_a_cursor_that_a_fork_takes_out_of_use_comes_last(db: asyncpg.Connection, passed: int) -> None:
    """`passed` is the place of the cursor's address in the order of first use; PEOPLE: a fork has undone its use."""
    chain = Written(db)
    await chain.append_batch([(20, [tx("kept", *map(pays, range(1, 20)))]), (40, [tx("undone", pays(0))])])
    order = await listed(db)
    cursor = order[-1] if passed == PEOPLE else order[passed]
    await chain.back_to(20)
    assert await listed(db) == order[:-1]
    assert await listed(db, "asc", cursor) == order[passed + 1 : -1]
    assert await listed(db, "desc", cursor) == order[:-1][:passed][::-1]
