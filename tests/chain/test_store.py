"""The cost of a commit, and the points offered to a node."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from indexer.rows import resolver
from indexer.store import backward, beginning, position
from indexer.store.undone import Undone
from shared import database
from shared.ledger import Point, tx_id_of
from shared.network import PREVIEW
from tests.chain.written import Written, pays, person, reward_account, tx

FIRST, SECOND = Point(21_600, bytes(31) + b"\1"), Point(21_700, bytes(31) + b"\2")
BOUNDARY = Point(21_600, bytes(31) + b"\3")


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A live chain of an epoch boundary block, a block in the same slot and one more."""
    connection = await database.connect(database_url, PREVIEW)
    await connection.execute(
        "INSERT INTO epoch_boundary_block VALUES ($1, 8, $2)", BOUNDARY.slot_no, BOUNDARY.block_hash
    )
    for block_no, point in ((9, FIRST), (10, SECOND)):
        await connection.execute(
            "INSERT INTO block VALUES ($1, $2, 0, 1, 1, $3)", point.slot_no, block_no, point.block_hash
        )
    await connection.execute(
        "INSERT INTO tip VALUES (true, $1, 10, $2, 8, 0, 'live')", SECOND.slot_no, SECOND.block_hash
    )
    yield connection
    await connection.close()


async def test_a_node_is_offered_a_block_before_the_boundary_block_of_its_slot(db: asyncpg.Connection) -> None:
    assert await position.points(db) == [SECOND, FIRST, BOUNDARY]


@pytest.mark.parametrize(("bulk", "to_tip", "waits"), [(False, 100, True), (False, 101, False), (True, 101, False)])
async def test_a_commit_waits_for_the_disk_near_the_tip(
    database_url: str, bulk: bool, to_tip: int, waits: bool
) -> None:
    db, statements = await database.connect(database_url, PREVIEW), list[str]()
    db.add_query_logger(lambda statement: statements.append(statement.query))
    await Written(db, bulk=bulk).append(10, to_tip=to_tip)
    await db.close()
    assert any("synchronous_commit = off" in statement for statement in statements) is not waits


async def test_a_rollback_scans_no_history(db: asyncpg.Connection) -> None:
    """Mints whose row order is unrelated to time, as after bulk."""
    await db.execute(
        "INSERT INTO mint SELECT asset, seq, (seq::bigint * 20 << 16) + asset % 50, 1, NULL, false"
        " FROM generate_series(1, 50) AS asset, generate_series(0, 1000) AS seq ORDER BY asset, seq"
    )
    await db.execute("INSERT INTO mint VALUES (0, 0, $1, 1, NULL, false)", tx_id_of(SECOND.slot_no, 0))
    await db.execute("ANALYZE mint")
    # NOTE: autovacuum would summarise new page ranges during the test, and each one counts as a scan.
    await db.execute("SELECT brin_summarize_new_values('mint_tx_id')")
    before = await scans(db)
    await backward.rollback(db, PREVIEW, FIRST)
    assert await db.fetchval("SELECT count(*) FROM mint WHERE asset_no = 0") == 0
    assert await scans(db) == before


@pytest.mark.parametrize(("point", "block_no", "blocks"), [(FIRST, 9, [FIRST]), (BOUNDARY, 8, [])])
async def test_a_rollback_distinguishes_a_boundary_block_from_the_block_in_its_slot(
    db: asyncpg.Connection, point: Point, block_no: int, blocks: list[Point]
) -> None:
    await backward.rollback(db, PREVIEW, point)
    index = await position.read(db)
    assert index is not None
    assert (index.point, index.block_no, index.ebb) == (point, block_no, point == BOUNDARY)
    assert await position.points(db) == [*blocks, BOUNDARY]


async def scans(db: asyncpg.Connection) -> int:
    """The number of sequential scans of mints."""
    await db.execute("SELECT pg_stat_force_next_flush()")
    return int(await db.fetchval("SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'mint'::regclass"))


async def test_an_asset_is_looked_up_without_the_others_of_its_policy(db: asyncpg.Connection) -> None:
    """Also by the generic plan that Postgres keeps for a prepared statement."""
    policies, names = 100, [number.to_bytes(2) for number in range(100)]
    await db.copy_records_to_table(
        "policy",
        columns=("policy_no", "policy_id"),
        records=[(number, number.to_bytes(28)) for number in range(policies)],
    )
    keys = [policy.to_bytes(28) + name for name in names for policy in range(policies)]
    await db.copy_records_to_table(
        "asset",
        columns=("asset_no", "policy_no", "fingerprint", "name"),
        records=[(number, int.from_bytes(key[:28]), number, key[28:]) for number, key in enumerate(keys)],
    )
    await db.execute("SET plan_cache_mode = force_generic_plan")
    assert {row.number for row in await resolver._assets.all(db, keys[::20])} == set(range(0, len(keys), 20))
    await db.execute(f"PREPARE looked_up (bytea[]) AS {resolver._assets.text}")
    wanted = ",".join(rf"'\x{key.hex()}'::bytea" for key in keys[::20])
    (plan,) = await db.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked_up (ARRAY[{wanted}])")
    assert plan["Plan"]["Shared Hit Blocks"] < 20 * len(keys[::20])


async def test_a_rollback_by_the_node_is_noted_for_submitted_transactions_at_no_cost_per_block(
    database_url: str,
) -> None:
    db = await database.connect(database_url, PREVIEW)
    written, statements = Written(db), list[str]()
    kept, removed, other = (tx(name) for name in ("kept", "removed", "never indexed"))
    await written.append(10, kept)
    with db.query_logger(lambda statement: statements.append(statement.query)):
        await written.append(20, removed)
        assert not any("submitted" in statement for statement in statements)
        await backward.rollback(db, PREVIEW, await at(db, 10), by_node=True)
        assert not any("UPDATE partner.submitted_tx" in statement for statement in statements)
    await db.execute(
        """
        WITH partner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('tests', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'tests' FROM partner RETURNING id
        )
        INSERT INTO partner.submitted_tx (network_id, accepted, user_account_id, tx_hash, cbor)
        SELECT network_id, true, id, hash, ''
        FROM account, unnest($1::bytea[]) AS hash, generate_series(1, 2) AS network_id
        """,
        [bytes.fromhex(each["id"]) for each in (kept, removed, other)],
    )
    await written.append(20, removed)

    async def rolled_back() -> list[tuple[int, bytes]]:
        rows = await db.fetch("SELECT network_id, tx_hash FROM partner.submitted_tx WHERE rolled_back_at IS NOT NULL")
        return sorted((each["network_id"], each["tx_hash"].hex()) for each in rows)

    await written.back_to(10)
    assert await rolled_back() == [], "a resync reads the same blocks again"
    await written.append(20, removed)
    await backward.rollback(db, PREVIEW, await at(db, 10), by_node=True)
    assert await rolled_back() == [(PREVIEW.network_id, removed["id"])]
    await db.close()


async def test_a_rollback_of_several_commits_is_counted_once_with_its_whole_depth(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backward, "MAX_UNDONE_BLOCKS", 2)
    db = await database.connect(database_url, PREVIEW)
    written = Written(db)
    for slot_no in range(10, 80, 10):
        await written.append(slot_no)
    commits = list[Undone]()
    await backward.rollback(db, PREVIEW, await at(db, 20), by_node=True, on_undone=commits.append)
    assert len(commits) == 3
    counted = await db.fetch("SELECT blocks_at_most, rollbacks, blocks, last_blocks FROM rollback_depth")
    assert [tuple(row) for row in counted] == [(5, 1, 5, 5)]
    await written.back_to(10)
    assert await db.fetchval("SELECT sum(rollbacks) FROM rollback_depth") == 1, "a resync is not counted"
    await db.close()


async def test_no_count_of_rollbacks_is_ever_lost(database_url: str) -> None:
    db = await database.connect(database_url, PREVIEW)
    written = Written(db)
    for slot_no in range(10, 80, 10):
        await written.append(slot_no)
    await backward.rollback(db, PREVIEW, await at(db, 60), by_node=True)
    await beginning.erase(db)  # as a resync from the origin and the first block do
    counts = "SELECT blocks_at_most, rollbacks, blocks, last_blocks FROM rollback_depth"
    assert [tuple(row) for row in await db.fetch(counts)] == [(1, 1, 1, 1)]
    await db.close()


async def at(db: asyncpg.Connection, slot_no: int) -> Point:
    """The last block at or before a slot."""
    point = await position.last_at_or_before(db, slot_no)
    assert point is not None
    return point


@pytest.mark.parametrize(("withdrawn", "left"), [([0], 9), ([4], 5), ([4, 3], 2), ([9], None), ([11], None)])
async def test_a_withdrawal_leaves_the_rest_of_a_reward(
    database_url: str, withdrawn: list[int], left: int | None
) -> None:
    """Since Dijkstra a transaction may withdraw a part. The reward in the index may be older than the ledger's."""
    db = await database.connect(database_url, PREVIEW)
    chain = Written(db)
    await chain.append(10, tx("paid", pays(person("ann", staked=True))))
    await db.execute("INSERT INTO reward SELECT stake_no, 9 FROM stake")
    taken = [{reward_account("ann"): {"ada": {"lovelace": lovelace}}} for lovelace in withdrawn]
    await chain.append(20, *(tx(f"taken {at}", withdrawals=each) for at, each in enumerate(taken)))
    assert await db.fetchval("SELECT lovelace FROM reward") == left
    assert await db.fetchval("SELECT slot_no FROM reward_due") == 20, "it is read again"
    await db.close()
