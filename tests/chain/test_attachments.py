"""Datums and scripts: those of recorded blocks, and the transaction that the index keeps for each."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from shared import database, packed
from shared.ledger import datum_hash_of, script_hash_of
from shared.network import PREVIEW
from tests.chain.written import Written, hash_of, pays, person, tx

PLUTUS = {"language": "plutus:v2", "cbor": "4e4d01000033222220051200120011"}
DATUM = bytes.fromhex("d8799f4568656c6c6fff")
ALICE = person("alice")


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def shown(db: asyncpg.Connection) -> tuple[list[Any], list[Any]]:
    """Datums and scripts, each with the slot of the transaction that showed it first."""
    datums = await db.fetch("SELECT tx_id >> 16, body FROM datum ORDER BY hash")
    scripts = await db.fetch("SELECT tx_id >> 16, language, body FROM script ORDER BY hash")
    return [*map(tuple, datums)], [*map(tuple, scripts)]


@pytest.mark.parametrize("bulk", [False, True], ids=["live", "bulk"])
async def test_each_datum_and_script_is_kept_once_until_its_first_transaction_is_undone(
    db: asyncpg.Connection, *, bulk: bool
) -> None:
    chain = Written(db, bulk=bulk)
    digest = datum_hash_of(DATUM)
    plutus = bytes.fromhex(PLUTUS["cbor"])
    script_hash = script_hash_of(2, plutus)
    witnesses: Any = {"datums": {digest.hex(): DATUM.hex()}, "scripts": {script_hash.hex(): PLUTUS}}
    await chain.append(10, tx("a", pays(ALICE)), to_tip=0)
    inline = pays(ALICE, datum=DATUM.hex()) | {"script": PLUTUS}
    await chain.append(20, tx("b", pays(ALICE), inline), tx("c", pays(ALICE, datumHash=digest.hex())))
    await chain.append(30, tx("d", pays(ALICE), **witnesses))
    once = [(20, DATUM)], [(20, 2, plutus)]
    assert await shown(db) == once
    rows = {row["hash"].hex(): packed.unpack_attached(row["attached"]) for row in await db.fetch("TABLE tx")}
    assert rows == {
        hash_of("a"): {},
        hash_of("b"): {1: packed.Attached(1, digest, inline=True, script_hash=script_hash)},
        hash_of("c"): {0: packed.Attached(0, digest, inline=False, script_hash=None)},
        hash_of("d"): {},
    }
    await chain.back_to(20)
    assert await shown(db) == once
    await chain.back_to(10)
    assert await shown(db) == ([], [])
    await chain.append(40, tx("d", pays(ALICE), **witnesses))
    assert await shown(db) == ([(40, DATUM)], [(40, 2, plutus)])
