"""The lists of unspent outputs: after any changes, long lists equal those made from the present outputs."""

from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from indexer.rows.caches import AddressNumbers
from indexer.rows.outputs import UtxoRow
from indexer.store import outputs
from shared import database
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId
from shared.network import PREVIEW
from tests.chain.written import Written, pays, person, tx

LISTS = (
    *("utxo_bucket", "account_utxo_bucket", "credential_utxo_bucket"),
    *("utxo_asset", "account_utxo_asset", "credential_utxo_asset"),
)
OWNERS: list[AddressNumbers] = [
    (AddressNo(1), StakeNo(1), None),
    (AddressNo(2), StakeNo(1), AddressNo(1)),
    (AddressNo(3), None, None),
    (AddressNo(4), StakeNo(2), AddressNo(1)),
]


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def test_an_output_that_an_earlier_commit_spent_is_not_spent_again(db: asyncpg.Connection) -> None:
    chain, spends = Written(db), (("a", 0),)
    await chain.append(10, tx("a", pays(person("ann"))))
    await chain.append(20, tx("b", pays(person("bob")), spends=spends))
    with pytest.raises(AssertionError, match="spent twice"):
        await chain.append(30, tx("c", pays(person("bob")), spends=spends))
    assert await db.fetchval("SELECT slot_no FROM tip") == 20


def some_outputs(random: Random, count: int, *, opening: float) -> list[UtxoRow]:
    """Outputs of a few addresses; the higher `opening`, the more of them begin a bucket."""
    found: dict[tuple[TxId, int], UtxoRow] = {}
    while len(found) < count:
        key, index = TxId(random.getrandbits(48)), random.randrange(3)
        if outputs.opens(key, index) or random.random() * 1024 * opening < 1:
            numbers = random.choice(OWNERS)
            asset_nos = tuple(AssetNo(number) for number in range(1, 4) if random.random() < 0.2)
            found[key, index] = UtxoRow(key, index, random.getrandbits(40), *numbers, asset_nos or None)
    return list(found.values())


def in_their_places(random: Random, gone: list[UtxoRow]) -> list[UtxoRow]:
    """Others in the places of some of these outputs, as in a fork: of the same or another owner, with other amounts."""
    found = []
    for row in gone:
        if random.random() < 0.5:
            address_no, stake_no, credential_no = random.choice((row[3:6], *OWNERS))
            found.append(
                row._replace(
                    lovelace=random.getrandbits(40),
                    address_no=address_no,
                    stake_no=stake_no,
                    credential_no=credential_no,
                )
            )
    return found


async def contents(db: asyncpg.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The tables of long lists, sorted."""
    return {
        name: sorted(tuple(row) for row in await db.fetch(f"SELECT * FROM {name}"))  # noqa: S608
        for name in LISTS
    }


async def made_anew(db: asyncpg.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The same tables, made from the present outputs."""
    transaction = db.transaction()
    await transaction.start()
    await db.execute("TRUNCATE " + ", ".join(LISTS))
    await outputs.fill_lists(db)
    found = await contents(db)
    await transaction.rollback()
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_long_lists_equal_those_made_from_the_present_outputs(db: asyncpg.Connection, seed: int) -> None:
    """They become long, change at any place, become short, and are restored, as in a rollback or a fork."""
    random, present, long = Random(seed), list[UtxoRow](), 0
    for turn in range(30):
        come = some_outputs(random, random.randrange(1, 60), opening=0.3)
        random.shuffle(present)
        share = random.choice((0.1, 0.3, 0.9)) if turn % 4 == 3 else 0.05
        cut = int(len(present) * share)
        gone = present[:cut]
        come += in_their_places(random, gone)
        present = present[cut:] + come
        await outputs.change(db, gone, come)
        expected = await made_anew(db)
        assert await contents(db) == expected
        long += all(expected[table] for table in ("utxo_bucket", "account_utxo_asset", "credential_utxo_asset"))
        if turn % 5 == 4:  # spent, and unspent again
            await outputs.change(db, come, gone)
            await outputs.change(db, gone, come)
            assert await contents(db) == expected
    assert long > 3


async def test_a_bucket_counts_and_sums_its_outputs(db: asyncpg.Connection) -> None:
    rows = some_outputs(Random(1), 400, opening=0.2)
    await outputs.change(db, [], rows)
    for address_no, *_ in OWNERS:
        of_address = [row for row in rows if row.address_no == address_no]
        total = await db.fetchrow(
            "SELECT sum(outputs), sum(lovelace) FROM utxo_bucket WHERE address_no = $1", address_no
        )
        assert tuple(total) == (len(of_address), sum(row.lovelace for row in of_address))
    assert await db.fetchval("SELECT count(*) FROM utxo_asset") == sum(len(row.asset_nos or ()) for row in rows)


async def test_python_and_the_schema_agree_on_what_opens_a_bucket(db: asyncpg.Connection) -> None:
    random = Random(2)
    places = [(random.getrandbits(50) - (1 << 30), random.randrange(1 << 16)) for _ in range(5_000)]
    found = await db.fetch(
        "SELECT opens_outputs(tx_id, output_index) AS opens"
        " FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS place (tx_id, output_index, seq) ORDER BY seq",
        *map(list, zip(*places, strict=True)),
    )
    assert [row["opens"] for row in found] == [outputs.opens(TxId(key), index) for key, index in places]
    assert 0 < sum(row["opens"] for row in found) < 20


async def test_a_rollback_removes_the_spender_of_an_output(db: asyncpg.Connection) -> None:
    """One slot keeps the entries of earlier blocks, another loses all its entries."""
    chain = Written(db)

    async def spenders() -> list[tuple[int, ...]]:
        rows = await db.fetch("SELECT slot_no, output_index, spender_tx_id >> 16 FROM spender_entry ORDER BY 1, 2")
        return [tuple(row) for row in rows]

    await chain.append(10, tx("make", *(pays(person(name)) for name in "abc")))
    await chain.append(20, tx("first", pays(person("d")), spends=(("make", 2),)))
    await chain.append(30, tx("second", pays(person("e")), spends=(("make", 0), ("first", 0), ("make", 1))))
    assert await spenders() == [(10, 0, 30), (10, 1, 30), (10, 2, 20), (20, 0, 30)]
    await chain.back_to(20)
    assert await spenders() == [(10, 2, 20)]
    await chain.back_to(10)
    assert await spenders() == []
