"""A restored snapshot equals its index; damaged and unsuitable snapshots are refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest

from indexer.snapshot import manifest
from indexer.snapshot.manifest import Manifest
from indexer.snapshot.restore import restore
from indexer.snapshot.take import take
from indexer.store import beginning, position
from indexer.verify import record
from indexer.verify import run as verify
from shared import copies, database
from shared.copies import CopyRefused
from shared.network import MAINNET, PREVIEW
from tests.chain.dump import differences, dump
from tests.chain.written import Written, mints, pays, person, tx

COIN = b"Coin".hex()


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The connection that leads preview."""
    connection = await database.connect(database_url, PREVIEW)
    assert await database.try_to_lead(connection, PREVIEW)
    yield connection
    await connection.close()


async def write(chain: Written) -> None:
    """A chain with rows in most tables."""
    await chain.append(
        10, tx("a", *(pays(person(f"p{n}"), (COIN, n + 1)) for n in range(50)), mint=mints((COIN, 1275)))
    )
    await chain.append(20, tx("b", pays(person("rich", staked=True), (COIN, 2**63)), mint=mints((COIN, 2**63))))
    await chain.append(30, tx("c", pays(person("x"), (COIN, 2)), spends=(("a", 1),)))


async def taken(database_url: str, out: Path) -> Manifest:
    """A snapshot of preview."""
    connection = await database.connect(database_url, PREVIEW)
    try:
        return await take(connection, database_url, PREVIEW, out, 2, lambda *_: None)
    finally:
        await connection.close()


async def restored(db: asyncpg.Connection, database_url: str, folder: Path) -> Manifest:
    return await restore(db, database_url, PREVIEW, folder, 2, lambda *_: None)


async def made(db: asyncpg.Connection) -> list[asyncpg.Record]:
    """The indexes and constraints of the chain's tables."""
    found: list[asyncpg.Record] = await db.fetch(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON oid = indrelid"
        " WHERE relnamespace = current_schema()::regnamespace UNION ALL SELECT conname, pg_get_constraintdef(oid)"
        " FROM pg_constraint WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2"
    )
    return found


async def test_a_snapshot_beside_a_writer_is_consistent(
    database_url: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    chain = Written(db)
    await write(chain)
    written, enough = 0, asyncio.Event()

    async def write_on() -> None:
        nonlocal written
        while not enough.is_set():
            await chain.append(100 + written, tx(f"on{written}", pays(person(f"on{written}"), (COIN, 1))))
            written += 1

    writing = asyncio.create_task(write_on())
    try:
        while written < 3:
            await asyncio.sleep(0.01)
        snapshot = await taken(database_url, tmp_path / "snapshot")
    finally:
        enough.set()
        await writing
    assert 100 <= snapshot.tip.slot_no < 99 + written, "blocks were written meanwhile"
    await chain.back_to(snapshot.tip.slot_no)
    before, made_before = await dump(db, PREVIEW.schema), await made(db)
    await beginning.erase(db)
    await record.keep(db, PREVIEW, record.Verification(snapshot.made_at, 10, 1, None, []))
    assert await restored(db, database_url, tmp_path / "snapshot") == snapshot
    assert await record.due_in_s(db, PREVIEW, 1e9) == 0, "the record of another index is gone"
    assert differences(before, await dump(db, PREVIEW.schema)) == []
    assert await made(db) == made_before
    other = await database.connect(database_url, PREVIEW)
    verified, differing = await verify.verify(other, database_url, PREVIEW, lambda *_: None, processes=1)
    assert (verified.slot_no, differing) == (snapshot.tip.slot_no, [])
    await other.close()
    await chain.append(1_000_000, tx("next", pays(person("x")), spends=(("c", 0),)))


@pytest.fixture
async def snapshot(database_url: str, db: asyncpg.Connection, tmp_path: Path) -> Path:
    """The folder of a snapshot; the network is empty again."""
    await write(Written(db))
    await taken(database_url, tmp_path / "snapshot")
    await beginning.erase(db)
    return tmp_path / "snapshot"


async def test_one_changed_byte_in_any_file_is_refused_by_the_files_name(
    database_url: str, db: asyncpg.Connection, snapshot: Path
) -> None:
    files = [snapshot / copies.MANIFEST, *(snapshot / manifest.PARTS).iterdir()]
    assert len(files) > 30
    for path in files:
        content = path.read_bytes()
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(CopyRefused, match=f"^{path} is damaged: "):
            await restored(db, database_url, snapshot)
        path.write_bytes(content)
    assert await db.fetchval("SELECT count(*) FROM tx") == 0
    await restored(db, database_url, snapshot)
    assert await db.fetchval("SELECT count(*) FROM tx") == 3


async def test_missing_longer_and_foreign_files_are_refused(
    database_url: str, db: asyncpg.Connection, snapshot: Path
) -> None:
    part = next((snapshot / manifest.PARTS).glob("tx-*"))
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(CopyRefused, match=f"^{part} is missing$"):
        await restored(db, database_url, snapshot)
    part.write_bytes(content + b"\0")
    with pytest.raises(CopyRefused, match=f"^{part} is damaged: it has {len(content) + 1} bytes"):
        await restored(db, database_url, snapshot)
    part.write_bytes(content)
    (part.parent / "other").touch()
    with pytest.raises(CopyRefused, match=f"^{part.parent / 'other'} is not in the manifest$"):
        await restored(db, database_url, snapshot)
    (snapshot / copies.MANIFEST).unlink()
    with pytest.raises(CopyRefused, match=r"manifest.json is missing: .* holds no complete snapshot$"):
        await restored(db, database_url, snapshot)


async def test_a_snapshot_that_does_not_fit_is_refused(
    database_url: str, db: asyncpg.Connection, snapshot: Path
) -> None:
    with pytest.raises(CopyRefused, match=r"^the snapshot is for preview, expected mainnet$"):
        await restore(db, database_url, MAINNET, snapshot, 2, lambda *_: None)
    fitting = manifest.read(snapshot / copies.MANIFEST)
    for change, refusal in (
        ({"schema_version": 5}, "^the snapshot has schema version 5, expected "),
        ({"format": 1}, "manifest.json has format 1, this program reads format 2$"),
        ({"files": {}}, "^the snapshot does not have the tables of schema version "),
    ):
        copies.write(snapshot, msgspec.structs.replace(fitting, **change))
        with pytest.raises(CopyRefused, match=refusal):
            await restored(db, database_url, snapshot)
    copies.write(snapshot, fitting)
    await Written(db).append(10, tx("other", pays(person("x"))))
    with pytest.raises(CopyRefused, match=r"^preview is not empty: `resync --from-slot 0` empties it$"):
        await restored(db, database_url, snapshot)


async def test_an_interrupted_restore_leaves_nothing_indexed_and_can_be_repeated(
    database_url: str, db: asyncpg.Connection, snapshot: Path
) -> None:
    filled = 0

    def break_off(step: str, *_: int) -> None:
        nonlocal filled
        filled += step != "checksums"
        if filled > 10:
            raise ConnectionError("broken off")

    before = await made(db)
    with pytest.raises(ConnectionError):
        await restore(db, database_url, PREVIEW, snapshot, 2, break_off)
    assert await position.read(db) is None
    assert await made(db) == before, "no index is missing"
    await restored(db, database_url, snapshot)
    assert await db.fetchval("SELECT count(*) FROM address_tx_entry") == 53


async def test_a_restore_that_has_lost_the_lead_goes_no_further(
    database_url: str, db: asyncpg.Connection, snapshot: Path
) -> None:
    other = await database.connect(database_url, PREVIEW)
    with pytest.raises(CopyRefused, match=r"^another process has taken the lead of preview"):
        await restored(other, database_url, snapshot)
    await other.close()
    assert await db.fetchval("SELECT count(*) FROM tx") == 0


async def test_an_index_that_is_not_live_and_a_folder_with_contents_are_refused(
    database_url: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    with pytest.raises(CopyRefused, match=r"^nothing is indexed for preview$"):
        await taken(database_url, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    await Written(db, bulk=True).append(10, tx("a", pays(person("x"))))
    with pytest.raises(CopyRefused, match=r"^preview is in bulk: "):
        await taken(database_url, tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(CopyRefused, match=f"^{tmp_path} is not empty$"):
        await taken(database_url, tmp_path)
    assert (tmp_path / "file").exists()
    with pytest.raises(CopyRefused, match=r"file can't be used: File exists$"):
        await taken(database_url, tmp_path / "file")
