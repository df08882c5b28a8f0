"""The packed histories of addresses and assets: live, in bulk and after rollbacks, they match the chain."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import asyncpg
import pytest

from indexer.blocks.genesis import Genesis, GenesisOutput
from indexer.rows.histories import HistoryCounts, HistoryEntries
from indexer.store import balances, beginning
from indexer.store import histories as stored_histories
from indexer.verify.entries import PARTITIONS, Listed
from indexer.verify.history import numbers
from indexer.verify.keys import PRIME, key_of, weight_of
from indexer.verify.moments import Moment
from indexer.verify.tables import histories
from shared import address, database
from shared.ledger import AddressNo, AssetNo, TxId, tx_id_of
from shared.network import PREVIEW
from tests.chain.written import ADA, Written, hash_of, mints, pays, person, tx

NAME = "00"
MAX_QUANTITY = (1 << 64) - 1


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


class Paid:
    """A chain whose transactions all pay to one address, every other one an asset, and the expected entries."""

    def __init__(self, db: asyncpg.Connection, seed: int, *, bulk: bool) -> None:
        self.chain, self._random, self._number = Written(db, bulk=bulk), Random(seed), 0
        self.blocks: list[tuple[int, list[tuple[TxId, int]]]] = []

    async def append(self, count: int) -> None:
        """Add a block of `count` transactions, each with the quantity that it pays."""
        slot_no = 20 * (len(self.blocks) + 1)
        entries, transactions = [], []
        for index in range(count):
            self._number += 1
            quantity = self._random.choice((0, 1, 255, 1 << 62, MAX_QUANTITY))
            outputs = [pays(person("x"), (NAME, quantity))] * 3 if quantity else [pays(person("x"))]
            minted = mints((NAME, 3 * quantity)) if 0 < quantity < MAX_QUANTITY else {}
            transactions.append(tx(f"tx {self._number}", *outputs, mint=minted))
            entries.append((tx_id_of(slot_no, index), 3 * quantity))
        self.blocks.append((slot_no, entries))
        await self.chain.append(slot_no, *transactions)

    async def back(self, count: int) -> None:
        """Roll back `count` blocks."""
        del self.blocks[-count:]
        await self.chain.back_to(self.blocks[-1][0])

    @property
    def entries(self) -> list[tuple[TxId, int]]:
        return [entry for _, entries in self.blocks for entry in entries]


async def is_as_expected(db: asyncpg.Connection, entries: list[tuple[TxId, int]]) -> None:
    """Compare the histories, entry by entry; all their chunks except the last are full."""
    found = await db.fetch("SELECT seq, tx_id FROM address_tx_entry ORDER BY seq")
    assert [tuple(row) for row in found] == [(seq, key) for seq, (key, _) in enumerate(entries)]
    held = [entry for entry in entries if entry[1]]
    found = await db.fetch("SELECT seq, tx_id, quantity::text FROM asset_tx_entry ORDER BY seq")
    assert [tuple(row) for row in found] == [(seq, key, str(quantity)) for seq, (key, quantity) in enumerate(held)]
    for table, column, size, count in (
        ("address_tx", "tx_ids", 8, len(entries)),
        ("asset_tx", "entries", 18, len(held)),
    ):
        lengths = await db.fetch(f"SELECT length({column}) / {size} FROM {table} ORDER BY chunk")  # noqa: S608
        assert [row[0] for row in lengths] == [64] * (count // 64) + [count % 64] * (count % 64 > 0)


# Transactions in each block: some blocks end where a chunk does.
COUNTS = (64, 1, 63, 100, 28, 64)


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_histories_of_many_chunks_survive_rollbacks(db: asyncpg.Connection, depth: int) -> None:
    paid = Paid(db, depth, bulk=False)
    for count in COUNTS:
        await paid.append(count)
    await is_as_expected(db, paid.entries)
    while len(paid.blocks) > depth:
        await paid.back(depth)
        await is_as_expected(db, paid.entries)
    for count in COUNTS:
        await paid.append(count)
    await is_as_expected(db, paid.entries)


async def test_a_change_cuts_entries_off_and_adds_others(db: asyncpg.Connection) -> None:
    """Any number of entries of addresses and of assets, over any number of chunks, in one statement."""
    random, entry = Random(1), 0
    numbers = range(1, 9)
    expected: dict[int, list[int]] = {number: [] for number in numbers}
    for _ in range(150):
        cut, added, used = {}, {}, {}
        for number in random.sample(numbers, random.randint(1, 8)):
            present = expected[number]
            cut[number] = random.choice((0, len(present), random.randint(0, len(present)), len(present) % 64))
            count = random.choice((0, 1, 64 - (len(present) - cut[number]) % 64, random.randint(0, 200)))
            fresh = [entry := entry + 1 for _ in range(count)]
            added[number] = fresh
            expected[number] = present[: len(present) - cut[number]] + fresh
            if bool(present) != bool(expected[number]):
                used[number] = 1 if expected[number] else -1
        counts = HistoryCounts(
            address_txs={AddressNo(number): count for number, count in cut.items()},
            asset_txs={AssetNo(number): count for number, count in cut.items()},
        )
        entries = HistoryEntries(
            address_txs={AddressNo(n): b"".join(one.to_bytes(8) for one in fresh) for n, fresh in added.items()},
            asset_txs={
                AssetNo(n): b"".join(one.to_bytes(8) + bytes(10) for one in fresh) for n, fresh in added.items()
            },
        )
        assert (await stored_histories.change(db, counts, entries)).used == used
        for table, owner_no in (("address_tx", "address_no"), ("asset_tx", "asset_no")):
            found = await db.fetch(f"SELECT {owner_no}, tx_id FROM {table}_entry ORDER BY {owner_no}, seq")  # noqa: S608
            assert [tuple(row) for row in found] == [(number, one) for number in numbers for one in expected[number]]
        chunks = await db.fetch(
            "SELECT address_no, chunk, length(tx_ids) / 8 FROM address_tx ORDER BY address_no, chunk"
        )
        assert [tuple(row) for row in chunks] == [
            (number, place // 64, min(64, len(expected[number]) - place))
            for number in numbers
            for place in range(0, len(expected[number]), 64)
        ]


async def test_the_end_of_bulk_packs_histories_alike(db: asyncpg.Connection) -> None:
    paid = Paid(db, 0, bulk=True)
    for count in COUNTS:
        await paid.append(count)
    await paid.chain.finalize()
    await is_as_expected(db, paid.entries)
    await paid.append(3)
    await is_as_expected(db, paid.entries)


# What makes a history inconsistent, in one of five chunks.
DISORDERED = {
    "a number skipped": "UPDATE address_tx SET chunk = chunk + 1 WHERE chunk = 4",
    "without its beginning": "DELETE FROM address_tx WHERE chunk = 0",
    "without its middle": "DELETE FROM address_tx WHERE chunk = 2",
    "a chunk that is not full": "UPDATE address_tx SET tx_ids = substr(tx_ids, 9) WHERE chunk = 2",
    "two entries swapped": (
        "UPDATE address_tx SET tx_ids = substr(tx_ids, 9, 8) || substr(tx_ids, 1, 8) || substr(tx_ids, 17)"
        " WHERE chunk = 3"
    ),
    "an entry after the next chunk": (
        "UPDATE address_tx SET tx_ids = substr(tx_ids, 1, 504) || int8send(1::bigint << 40) WHERE chunk = 2"
    ),
    "an entry twice": (
        "UPDATE address_tx SET tx_ids = (SELECT substr(tx_ids, 505) FROM address_tx WHERE chunk = 2)"
        " || substr(tx_ids, 9) WHERE chunk = 3"
    ),
    "an entry before the first": "UPDATE address_tx SET tx_ids = int8send(-1) || substr(tx_ids, 9) WHERE chunk = 0",
    "a byte less": "UPDATE address_tx SET tx_ids = substr(tx_ids, 2) WHERE chunk = 4",
    "no owner": "UPDATE address_tx SET address_no = address_no + 1",
}


@pytest.mark.parametrize("rows_at_once", [1, 2, 2_000])
async def test_verify_adds_up_a_history_of_many_chunks(
    db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """Also one with quantities above 64 bits, and with a cursor that ends between its chunks. The address counts once
    for its account.
    """
    monkeypatch.setattr(histories, "_ROWS_AT_ONCE", rows_at_once)
    paid = Paid(db, 1, bulk=False)
    for count in COUNTS:
        await paid.append(count)
    await db.execute("UPDATE address SET stake_no = 5")
    listed = Counter({(1, tx_id): 1 for tx_id, _ in paid.entries})
    assert await added_up(db, "address_tx") == ({"address_tx": listed, "address_count": {(5, 0): 1}}, [])
    listed = Counter({(1, tx_id): quantity for tx_id, quantity in paid.entries})
    assert await added_up(db, "asset_tx") == ({"asset_tx": listed}, [])
    for statement in DISORDERED.values():
        undone = db.transaction()
        await undone.start()
        await db.execute("ALTER TABLE address_tx DROP CONSTRAINT IF EXISTS address_tx_tx_ids_check")
        assert await db.execute(statement) != "UPDATE 0"
        assert (await added_up(db, "address_tx"))[1], statement
        await undone.rollback()


async def added_up(db: asyncpg.Connection, history: str) -> tuple[dict[str, Listed], list[int]]:
    """All entries of a history, whose digests must be those that verify adds up, and the numbers that are wrong."""
    (part,) = await histories.ranges(db, [history])
    everything = dict.fromkeys((history, "address_count"), range(PARTITIONS))
    with TemporaryDirectory() as folder:
        await numbers.write(Moment(db, 0, 0), Path(folder))
        async with db.transaction():
            moment = Moment(db, 0, 0)
            found = await histories.examine(Path(folder), moment, part)
            listed = await histories.listed(Path(folder), everything, moment, part)
    assert found.digests.keys() == listed.keys()
    for table, some in listed.items():
        places = {key: key_of(key[0]) * (1 if table == "address_count" else weight_of(key[1])) % PRIME for key in some}
        total = sum(places[key] * quantity for key, quantity in some.items())
        assert int(found.digests[table].sum()) % PRIME == total % PRIME
    return listed, [*found.unowned, *found.disordered]


async def test_a_rank_is_the_number_of_earlier_transactions(db: asyncpg.Connection) -> None:
    paid = Paid(db, 0, bulk=False)
    for count in COUNTS:
        await paid.append(count)
    keys = [key for key, _ in paid.entries]
    for before in (0, *keys, keys[-1] + 1):
        found = await db.fetchval("SELECT address_tx_rank(address_no, $1) FROM address", before)
        assert found == sum(key < before for key in keys)
    assert await db.fetchval("SELECT address_tx_rank(-1, 5)") == 0


async def test_an_account_counts_each_of_its_addresses_from_the_first_use(db: asyncpg.Connection) -> None:
    """A genesis address always counts from the genesis on; others count while they have a transaction."""
    account = address.stake_of(address.of_node(person("ann", staked=True)))
    assert account is not None

    def staked(name: str) -> str:
        return address.show(b"\x00" + hashlib.blake2b(name.encode(), digest_size=28).digest() + account[1:])

    async def counted() -> int:
        found: int = await db.fetchval("SELECT address_count FROM stake WHERE raw = $1", account)
        return found

    chain, output = Written(db), GenesisOutput(bytes.fromhex(hash_of("genesis")), address.of_node(staked("first")), ADA)
    await beginning.begin(db, PREVIEW, Genesis(outputs=[output]))
    assert await counted() == 1
    await chain.append(10, tx("a", pays(staked("second")), pays(staked("first"))))
    assert await counted() == 2
    await chain.append(20, tx("b", pays(staked("second")), pays(staked("third")), pays(person("bob", staked=True))))
    spends = (("genesis", 0), ("a", 0), ("a", 1))
    await chain.append(30, tx("c", pays(staked("fourth")), pays(staked("fourth")), spends=spends))
    assert await counted() == 4
    await chain.back_to(20)
    assert await counted() == 3
    await chain.back_to(10)
    assert await counted() == 2
    await chain.append(20, tx("d", pays(staked("fourth"))))
    assert await counted() == 3
    expected = await db.fetch("SELECT stake_no, address_count FROM stake ORDER BY 1")
    await db.execute("UPDATE stake SET address_count = 0")
    await balances.count_addresses(db)
    assert await db.fetch("SELECT stake_no, address_count FROM stake ORDER BY 1") == expected
