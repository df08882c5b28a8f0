"""The redeemers of scripts, and the lovelace that these lock: kept when blocks arrive, and undone with them."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from api.chain import script_redeemers
from indexer.verify import run as verify
from shared import address, database
from shared.ledger import script_key_of
from shared.network import PREVIEW
from tests.chain.written import ADA, POLICY, Json, Written, hash_of, mints, pays, person, tx

SCRIPT = bytes(range(28))
LOCKED = address.show(b"\x70" + SCRIPT)
STAKED = address.show(b"\x10" + SCRIPT + bytes(28))
ACCOUNT = address.show_stake(b"\xf0" + SCRIPT)
KEY_ACCOUNT = address.show_stake(b"\xe0" + bytes(28))


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


def redeemed(*pointers: tuple[str, int]) -> list[Json]:
    units = {"memory": 1, "cpu": 2}
    return [
        {"redeemer": "00", "executionUnits": units, "validator": {"purpose": purpose, "index": index}}
        for purpose, index in pointers
    ]


def places(*names: str) -> tuple[tuple[str, int], ...]:
    """The first output of each transaction, in the ledger's order of inputs."""
    return tuple(sorted(((name, 0) for name in names), key=lambda each: hash_of(each[0])))


async def indexed(db: asyncpg.Connection) -> tuple[dict[bytes, list[int]], int]:
    """The slots in which each script has redeemers, and the lovelace that scripts lock."""
    rows = await db.fetch("SELECT script_key, tx_ids FROM redeemer_tx ORDER BY script_key, chunk")
    found: dict[bytes, list[int]] = {}
    for row in rows:
        tx_ids = [int.from_bytes(row["tx_ids"][at : at + 8]) for at in range(0, len(row["tx_ids"]), 8)]
        found.setdefault(row["script_key"], []).extend(tx_id >> 16 for tx_id in tx_ids)
    return found, await db.fetchval("SELECT script_lovelace FROM tip")


@pytest.mark.parametrize("bulk", [False, True])
async def test_redeemers_are_listed_under_their_scripts(db: asyncpg.Connection, bulk: bool) -> None:
    """For inputs at both of its addresses, mints and withdrawals; not for keys, nor if scripts fail."""
    chain = Written(db, bulk=bulk)
    policy, script = bytes.fromhex(POLICY)[:16], SCRIPT[:16]
    await chain.append(10, tx("a", pays(LOCKED)), tx("b", pays(STAKED)), tx("c", pays(person("ann"))))
    spends = places("a", "b", "c")
    pointers = [("spend", at) for at, (name, _) in enumerate(spends) if name != "c"]
    await chain.append(
        20,
        tx(
            "take",
            pays(person("bob")),
            pays(LOCKED),
            spends=spends,
            redeemers=redeemed(*pointers, ("mint", 0), ("withdraw", 0), ("vote", 0)),
            mint=mints(("aa", 1)),
            withdrawals={KEY_ACCOUNT: {"ada": {"lovelace": 0}}, ACCOUNT: {"ada": {"lovelace": 0}}},
        ),
    )
    await chain.append(
        30,
        tx("failed", redeemers=redeemed(("mint", 0)), mint=mints(("aa", 1))) | {"spends": "collaterals"},
        tx("burn", redeemers=redeemed(("mint", 0)), mint=mints(("aa", -1))),
    )
    if bulk:
        assert await db.fetchval("SELECT count(*) FROM redeemer_tx_staged") == 5
        await chain.finalize()
    assert await indexed(db) == ({policy: [20, 30], script: [20, 20, 20]}, 2 * ADA)
    await chain.back_to(20)
    assert await indexed(db) == ({policy: [20], script: [20, 20, 20]}, 2 * ADA)
    await chain.back_to(10)
    assert await indexed(db) == ({}, 4 * ADA)


async def test_a_page_may_begin_and_end_within_a_transaction(db: asyncpg.Connection) -> None:
    chain = Written(db)
    counts = [2, 3, 1, 70]
    for slot, count in enumerate(counts, 1):
        locked = [tx(f"{slot} {at}", pays(LOCKED)) for at in range(count)]
        await chain.append(10 * slot, *locked)
        spends = places(*(f"{slot} {at}" for at in range(count)))
        pointers = [("spend", at) for at in range(count)]
        await chain.append(10 * slot + 1, tx(f"take {slot}", spends=spends, redeemers=redeemed(*pointers)))
    everything = [(10 * slot + 1, place) for slot, count in enumerate(counts, 1) for place in range(count)]

    async def page(limit: int, offset: int, *, newest_first: bool = False) -> list[Any]:
        asked = (SCRIPT, script_key_of(SCRIPT), limit, offset, newest_first)
        rows = await script_redeemers._listed.all(db, *asked)
        assert {row.total for row in rows} == {len(everything)}
        return [(row.tx_id >> 16, row.place) for row in rows if row.place is not None]

    for limit in (1, 2, 5, 100):
        for offset in range(len(everything) + 2):
            assert await page(limit, offset) == everything[offset : offset + limit]
            until = len(everything) - offset
            assert await page(limit, offset, newest_first=True) == everything[max(until - limit, 0) : max(until, 0)]


async def test_scripts_whose_hashes_begin_alike_have_lists_of_their_own(
    database_url: str, db: asyncpg.Connection
) -> None:
    """Of those that somebody makes, as many as 2^32 attempts give: their first 8 bytes are equal, 15 of 16 here."""
    chain, twins = Written(db), [bytes(15) + bytes([last]) * 13 for last in (1, 2, 3)]
    for block, twin in enumerate(twins * 45):
        minted = mints(("aa", 1), policy=twin.hex())
        await chain.append(10 * block + 10, tx(f"mint {block}", mint=minted, redeemers=redeemed(("mint", 0))))
    for place, twin in enumerate(twins):
        listed = await script_redeemers._listed.all(db, twin, script_key_of(twin), 100, 0, False)
        assert [row.tx_id >> 16 for row in listed] == [30 * turn + 10 * place + 10 for turn in range(45)]
        assert {row.total for row in listed} == {45}
    connection = await database.connect(database_url, PREVIEW)
    _, found = await verify.verify(connection, database_url, PREVIEW, lambda *_: None, processes=1)
    await connection.close()
    assert [str(each) for result in found for each in result.differences] == []
