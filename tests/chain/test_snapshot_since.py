"""A snapshot that continues an earlier one has the same rows as a whole one, and shares the files of what stayed."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from indexer.snapshot import manifest, ranges
from indexer.snapshot.manifest import Manifest
from indexer.snapshot.restore import restore
from indexer.snapshot.take import take
from indexer.store import beginning
from shared import copies, database
from shared.copies import CopyRefused
from shared.network import MAINNET, PREVIEW
from tests.chain.written import Written, mints, pays, person, tx

EPOCH = PREVIEW.epoch_slots
COIN = b"Coin".hex()


@pytest.fixture(autouse=True)
def _short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LEAST_ROWS", 0)
    monkeypatch.setattr(ranges, "TRANSACTIONS", 2)
    monkeypatch.setattr(ranges, "ADDRESSES", 4)


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


@pytest.fixture
async def empty(another_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The connection that leads preview in a database where nothing is indexed."""
    connection = await database.connect(another_database_url, PREVIEW)
    assert await database.try_to_lead(connection, PREVIEW)
    yield connection
    await connection.close()


async def rows(db: asyncpg.Connection) -> dict[str, list[str]]:
    """Every row of the chain's tables, numbers and all."""
    names = await db.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'chain_preview'::regnamespace"
    )
    return {
        str(name): [row[0] for row in await db.fetch(f"SELECT t::text FROM {name} t ORDER BY 1")]  # noqa: S608
        for (name,) in names
    }


async def taken(db: asyncpg.Connection, url: str, out: Path, since: Path | None = None) -> Manifest:
    earlier = None if since is None else since / copies.MANIFEST
    return await take(db, url, PREVIEW, out, 2, lambda *_: None, since=earlier)


async def write_epochs(db: asyncpg.Connection, epochs: int) -> Written:
    """Two blocks with three transactions in each epoch."""
    chain = Written(db)
    for epoch_no in range(epochs):
        start = epoch_no * EPOCH
        minted = mints((COIN, 5))
        await chain.append(start + 10, tx(f"a{epoch_no}", pays(person(f"p{epoch_no}"), (COIN, 5)), mint=minted))
        await chain.append(start + 20, tx(f"b{epoch_no}", pays(person("x"))), tx(f"c{epoch_no}", pays(person("y"))))
    return chain


async def test_any_snapshots_of_a_growing_and_forking_chain_restore_to_the_same_index(
    database_url: str, db: asyncpg.Connection, empty: asyncpg.Connection, another_database_url: str, tmp_path: Path
) -> None:
    chance = random.Random(20)
    chain, slots, earlier = Written(db), [5], None
    await chain.append(5, tx("first", pays(person("p0"))))
    reused = 0
    for turn in range(4):
        for step in range(chance.randrange(3, 7)):
            if len(slots) > 2 and chance.random() < 0.25:
                del slots[-chance.randrange(1, min(len(slots) - 1, 6)) :]
                await chain.back_to(slots[-1])
            slot_no = slots[-1] + chance.randrange(1, EPOCH)
            name = f"{turn}.{step}"
            paid = [pays(person(f"p{chance.randrange(30)}"), (COIN, 1)) for _ in range(chance.randrange(1, 4))]
            await chain.append(slot_no, tx(name, *paid, mint=mints((COIN, len(paid)))), tx(f"{name}+"))
            slots.append(slot_no)
        folder = tmp_path / str(turn)
        snapshot = await taken(db, database_url, folder, earlier)
        reused += sum((folder / manifest.PARTS / name).stat().st_nlink > 1 for name in snapshot.files)
        earlier = folder
        if turn % 2:
            await restore(empty, another_database_url, PREVIEW, folder, 2, lambda *_: None)
            assert await rows(empty) == await rows(db)
            await beginning.erase(empty)
    assert reused > 10


async def test_only_ranges_whose_rows_changed_are_written_again(
    database_url: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    chain = await write_epochs(db, 6)
    first = await taken(db, database_url, tmp_path / "first")
    same = await taken(db, database_url, tmp_path / "same", tmp_path / "first")
    assert same.files == first.files
    await chain.back_to(3 * EPOCH + 10)
    await chain.append(3 * EPOCH + 30, tx("other", pays(person("z"))), tx("others", pays(person("z"))))
    await chain.append(4 * EPOCH + 30, tx("on", pays(person("z"))))
    forked = await taken(db, database_url, tmp_path / "forked", tmp_path / "same")
    of_tx = [[part for part in each.files.values() if part.table.name == "tx"] for each in (first, forked)]
    before, after = [{part.range.first: part.sha256 for part in parts if part.range} for parts in of_tx]
    starts = [None, *(epoch_no * EPOCH << 16 for epoch_no in (1, 2, 3))]
    assert [before[start] == after[start] for start in starts] == [True, True, True, False]
    assert len(after) == 5


async def test_a_damaged_or_missing_part_of_the_earlier_snapshot_is_written_anew(
    database_url: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    await write_epochs(db, 3)
    first = await taken(db, database_url, tmp_path / "first")
    parts = [name for name, part in first.files.items() if part.table.name == "tx"]
    (tmp_path / "first" / manifest.PARTS / parts[0]).write_bytes(b"damaged")
    (tmp_path / "first" / manifest.PARTS / parts[1]).unlink()
    second = await taken(db, database_url, tmp_path / "second", tmp_path / "first")
    assert second.files == first.files
    await copies.check(tmp_path / "second" / manifest.PARTS, second.files)


async def test_a_manifest_that_does_not_fit_is_refused_before_anything_is_written(
    database_url: str, db: asyncpg.Connection, tmp_path: Path
) -> None:
    await write_epochs(db, 1)
    first = await taken(db, database_url, tmp_path / "first")
    with pytest.raises(CopyRefused, match=r"manifest.json is for preview, expected mainnet$"):
        await take(
            db, database_url, MAINNET, tmp_path / "no", 2, lambda *_: None, since=tmp_path / "first/manifest.json"
        )
    copies.write(tmp_path / "first", msgspec.structs.replace(first, schema_version=5))
    with pytest.raises(CopyRefused, match=r"manifest.json has schema version 5, expected \d+: take a whole snapshot"):
        await taken(db, database_url, tmp_path / "no", tmp_path / "first")
    assert not (tmp_path / "no").exists()


async def test_a_manifest_that_the_key_did_not_sign_is_refused(
    database_url: str, db: asyncpg.Connection, empty: asyncpg.Connection, another_database_url: str, tmp_path: Path
) -> None:
    await write_epochs(db, 1)
    key, folder = Ed25519PrivateKey.generate(), tmp_path / "signed"
    signed = await take(db, database_url, PREVIEW, folder, 2, lambda *_: None, key=key)

    async def restored(by: Ed25519PrivateKey) -> None:
        await restore(empty, another_database_url, PREVIEW, folder, 2, lambda *_: None, key=by.public_key())

    with pytest.raises(CopyRefused, match=r"manifest.json is not signed by the given key$"):
        await restored(Ed25519PrivateKey.generate())
    for change in ({"tx_count": 1}, {"files": dict(list(signed.files.items())[1:])}, {"signature": "no hex"}):
        copies.write(folder, msgspec.structs.replace(signed, **change))
        with pytest.raises(CopyRefused, match=r"manifest.json is not signed by the given key$"):
            await restored(key)
    copies.write(folder, msgspec.structs.replace(signed, signature=""))
    with pytest.raises(CopyRefused, match=r"manifest.json is not signed$"):
        await restored(key)
    copies.write(folder, signed)
    await restored(key)
    assert await rows(empty) == await rows(db)
