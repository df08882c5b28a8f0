"""The result of `verify` is recorded, and `--every` repeats it."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from indexer.store import beginning
from indexer.verify import record, rounds
from shared import database, schema
from shared.network import PREPROD, PREVIEW
from tests.chain.harness import Ledgerline
from tests.chain.written import Written, mints, pays, person, tx

COIN = b"Coin".hex()
OPTIONS = rounds.VerifyOptions(PREVIEW, None, 100.0, 0)
RECORDED = "SELECT slot_no, block_no, node_blocks, differing, ended_at >= began_at AS ended FROM partner.verification"


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def write(db: asyncpg.Connection) -> None:
    await Written(db).append(10, tx("a", pays(person("p"), (COIN, 1)), mint=mints((COIN, 1))))


async def test_the_last_result_replaces_the_previous_one(database_url: str, db: asyncpg.Connection) -> None:
    await write(db)
    for spoil, differing in (("SELECT", []), ("UPDATE holder SET quantity = 2", ["holder"])):
        await db.execute(spoil)
        other = await database.connect(database_url, PREVIEW)
        outcome = await rounds.once(other, database_url, OPTIONS, lambda *_: None)
        await other.close()
        assert outcome.verification.differing == differing
        assert [tuple(row) for row in await db.fetch(RECORDED)] == [(10, 1, None, differing, True)]


async def test_a_round_is_due_one_interval_after_the_start_of_the_last_one(db: asyncpg.Connection) -> None:
    assert await record.due_in_s(db, PREVIEW, 3_600) == 0
    began_at = await db.fetchval("SELECT now() - interval '1 min'")
    await record.keep(db, PREVIEW, record.Verification(began_at, 10, 1, None, []))
    assert 3_400 < await record.due_in_s(db, PREVIEW, 3_600) <= 3_540
    assert await record.due_in_s(db, PREVIEW, 59) == 0
    assert await record.due_in_s(db, PREPROD, 3_600) == 0
    async with schema.commit(db):
        await beginning.forget_verification(db, PREVIEW)
    assert await db.fetch(RECORDED) == []


def test_verify_every_repeats_through_failures_until_sigterm(ledgerline: Ledgerline, finish: Any) -> None:
    async def do(statement: str | None) -> None:
        db = await database.connect(ledgerline.database_url, PREVIEW)
        await (write(db) if statement is None else db.execute(statement))
        await db.close()

    process = ledgerline.start("indexer", "verify", "--network", "preview", "--every", "1s")
    try:
        process.says("verify.failed", "preview: nothing is indexed yet")
        finish(do(None))
        process.says("verify.matched", '"slot_no": 10')
        finish(do("UPDATE holder SET quantity = 2"))
        process.says("verify.differs", "indexed 2, recomputed 1", '"differing": ["holder"')
        assert process.stop() == 0
    finally:
        process.kill()
