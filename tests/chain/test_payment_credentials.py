"""The lists of payment credentials, in two parts: any page of them equals that of one sorted list."""

from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from api.blockfrost import owners as shown
from api.chain import owners, utxos
from indexer.rows.caches import AddressNumbers
from indexer.rows.histories import HistoryCounts, HistoryEntries
from indexer.rows.outputs import UtxoRow
from indexer.store import histories, outputs
from shared import address, database
from shared.ledger import AddressNo, TxId
from shared.network import PREVIEW
from tests.chain.written import Written, pays, person, tx

HASH = bytes(range(28))
FIRST: AddressNumbers = (AddressNo(1), None, None)
OTHERS: tuple[AddressNumbers, ...] = ((AddressNo(2), None, AddressNo(1)), (AddressNo(3), None, AddressNo(1)))


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


@pytest.fixture
async def tip(db: asyncpg.Connection) -> None:
    await db.execute(
        "INSERT INTO tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (9, 9, '\\x00', 0, 0, 'live')"
    )
    rows = [(1, None, b"\x60" + HASH), (2, 1, b"\x00" + HASH + HASH), (3, 1, b"\x40" + HASH + b"\x01\x02\x03")]
    await db.executemany("INSERT INTO address (address_no, credential_no, raw) VALUES ($1, $2, $3)", rows)


def some_outputs(random: Random, count: int, whose: tuple[AddressNumbers, ...], *, opening: bool) -> list[UtxoRow]:
    """Outputs of some addresses, of which many begin a bucket, or few enough that the list has none."""
    found: dict[tuple[TxId, int], UtxoRow] = {}
    wanted = 20 if opening else 0
    while len(found) < count:
        key, index = TxId(random.getrandbits(30)), random.randrange(3)
        opens = outputs.opens(key, index)
        if opens and wanted == 0:
            continue
        if opens or len(found) < count - wanted:
            wanted -= opens
            found[key, index] = UtxoRow(key, index, random.getrandbits(40), *random.choice(whose), None)
    return list(found.values())


@pytest.mark.parametrize("first, others", [(3000, 2000), (3000, 5), (5, 3000), (1500, 1200), (1500, 0), (0, 2500)])
@pytest.mark.usefixtures("tip")
async def test_any_page_of_the_outputs_equals_that_of_one_list(db: asyncpg.Connection, first: int, others: int) -> None:
    random = Random(first)
    rows = some_outputs(random, first, (FIRST,), opening=first > 2000)
    rows += some_outputs(random, others, OTHERS, opening=others > 1900)
    await outputs.change(db, [], rows)
    long = await db.fetchval("SELECT count(*) FROM utxo_bucket WHERE address_no = 1")
    assert bool(long) == (first > 2000)
    assert bool(await db.fetchval("SELECT count(*) FROM credential_utxo_bucket")) == (others > 1900)
    places = sorted({(row.tx_id, row.output_index) for row in rows})
    lovelace = sum(row.lovelace for row in rows)
    summary, _ = await owners.summary(db, "credential", HASH, PREVIEW)
    assert (summary.utxo_count, summary.lovelace) == (len(rows), lovelace)
    for order, listed in (("asc", places), ("desc", places[::-1])):
        query = utxos.unspent_pages["credential", order]
        depths = [0, 999, 1000, 1001, len(rows) - 1, len(rows), len(rows) + 5, *random.sample(range(len(rows)), 60)]
        for offset in depths:
            found = await query.all(db, HASH, 5, offset, None, None)
            page = [(row.tx_id, row.output_index) for row in found if row.tx_id is not None]
            assert page == listed[offset : offset + 6], (order, offset)
        place = owners.Place(*listed[len(listed) // 2])
        found = await query.all(db, HASH, 5, 7, *owners.start_after(place, order))
        beyond = len(listed) // 2 + 1 + 7
        assert [(row.tx_id, row.output_index) for row in found] == listed[beyond : beyond + 6], order


@pytest.mark.parametrize("owner, raw", [("credential", HASH), ("address", b"\x60" + HASH)])
@pytest.mark.usefixtures("tip")
async def test_a_page_of_outputs_without_assets_says_that_others_were_not_searched(
    db: asyncpg.Connection, owner: owners.OwnerKind, raw: bytes
) -> None:
    """The first 9,998 outputs hold an asset, the five after them hold none."""
    await db.execute(
        "INSERT INTO utxo (tx_id, lovelace, address_no, output_index, asset_nos)"
        " SELECT n, 1, 1, 0, CASE WHEN n < 9999 THEN '{7}'::integer[] END FROM generate_series(1, 10003) AS n"
    )

    async def page(order: str, limit: int, offset: int = 0) -> tuple[list[int], bool]:
        rows = await shown.plain_pages[owner, order].all(db, raw, limit, offset)
        return [row.tx_id for row in rows if row.tx_id is not None], rows[0].cut

    assert await page("asc", 2) == ([9999, 10000], False)
    assert await page("asc", 3) == ([9999, 10000], True)
    assert await page("asc", 1, offset=2) == ([], True)
    assert await page("desc", 5) == ([10003, 10002, 10001, 10000, 9999], False)
    assert await page("desc", 6) == ([10003, 10002, 10001, 10000, 9999], True)
    await db.execute("DELETE FROM utxo WHERE tx_id > 10000")
    assert await page("asc", 3) == ([9999, 10000], False)


@pytest.mark.parametrize("first, others", [(300, 200), (1, 500), (500, 1), (64, 64), (200, 0), (0, 130)])
@pytest.mark.usefixtures("tip")
async def test_any_part_of_the_history_equals_that_of_one_list(db: asyncpg.Connection, first: int, others: int) -> None:
    random = Random(others)
    tx_ids = random.sample(range(1, 1 << 30), first + others)
    of_first, of_others = sorted(tx_ids[:first]), sorted(tx_ids[first:])

    def packed(some: list[int]) -> dict[AddressNo, bytes]:
        return {AddressNo(1): b"".join(each.to_bytes(8) for each in some)} if some else {}

    entries = HistoryEntries(address_txs=packed(of_first), credential_txs=packed(of_others))
    await histories.change(db, HistoryCounts(), entries)
    every = sorted(tx_ids)
    for _ in range(60):
        low = random.randrange(len(every))
        high = low + random.randrange(-1, 90)
        rows = await db.fetch("SELECT seq, tx_id FROM credential_tx_range(1, $1, $2)", low, high)
        expected = list(enumerate(every))[low : high + 1]
        assert [tuple(row) for row in rows] == expected, (low, high)
        before = random.choice(every) + random.randrange(-1, 2)
        rank = await db.fetchval("SELECT credential_tx_rank(1, $1)", before)
        assert rank == sum(each < before for each in every)


async def test_a_rollback_of_the_second_address_leaves_the_first(db: asyncpg.Connection) -> None:
    """And one of both leaves neither: the next to use the credential is then its first."""

    async def first_of(name: str) -> list[str]:
        digest = address.payment_hash_of(address.of_node(person(name)))
        rows = await db.fetch("SELECT raw FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL", digest)
        return [address.show(row["raw"]) for row in rows]

    chain = Written(db)
    plain, staked = person("ann"), person("ann", staked=True)
    await chain.append(10, tx("other", pays(person("bob"))))
    await chain.append(20, tx("a", pays(plain)))
    await chain.append(30, tx("b", pays(staked)), tx("c", pays(plain), pays(staked), spends=(("a", 0),)))
    assert await first_of("ann") == [plain]
    assert await db.fetchval("SELECT length(tx_ids) FROM credential_tx") == 8  # b; c is in that of the first address
    await chain.back_to(20)
    assert await first_of("ann") == [plain]
    assert await db.fetchval("SELECT count(*) FROM credential_tx") == 0
    await chain.back_to(10)
    assert await first_of("ann") == []
    await chain.append(25, tx("b", pays(staked)), tx("a", pays(plain)))
    assert await first_of("ann") == [staked]
    assert await db.fetchval("SELECT count(*) FROM utxo WHERE credential_no IS NOT NULL") == 1
