"""A restored backup of partner data equals what was there; damaged and unsuitable ones are refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from api.commands import backup
from api.commands.backup import Backup
from shared import copies, database, leader
from shared.copies import CopyRefused
from shared.network import PREPROD
from tests.api.conftest import Use
from tests.api.partners import Partner, an_account, everything

NOT_BACKED_UP = {"schema_version", "leader", "verification"}


@pytest.fixture
async def empty(another_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A database without partner data, and without other connections."""
    connection = await database.connect(another_database_url)
    yield connection
    await connection.close()


async def backed_up(db: asyncpg.Connection) -> dict[str, list[str]]:
    return {name: rows for name, rows in (await everything(db)).items() if name not in NOT_BACKED_UP}


@pytest.fixture
async def made(partner: Partner, db: asyncpg.Connection, use: Use, tmp_path: Path) -> tuple[Path, Backup]:
    """A backup with rows of most tables, made beside a running API."""
    _, credential_id = await an_account(partner, db)
    await use({"id": str(credential_id)}, "2026-03-01T10:00", successful=3, took_ms=5)
    await db.execute("INSERT INTO partner.endpoint (name) VALUES ('/a\tb\\n'), ('/ü')")
    await leader.retire(db, PREPROD)
    folder = tmp_path / "backup"
    return folder, await backup.take(db, folder)


async def test_a_restored_backup_equals_what_was_there(
    made: tuple[Path, Backup], db: asyncpg.Connection, empty: asyncpg.Connection
) -> None:
    folder, taken = made
    there = await backed_up(db)
    assert sum(map(bool, there.values())) > 12, "most tables have rows"
    assert taken.rows == sum(map(len, there.values()))
    assert await backup.restore(empty, folder, replace=False) == taken
    assert await backed_up(empty) == there
    added = "INSERT INTO partner.endpoint (name) VALUES ('new') RETURNING endpoint_no"
    assert await empty.fetchval(added) == await db.fetchval(added)
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir() if path.suffix == ".gz"} == {0}


async def test_partner_data_is_replaced_only_on_request_and_only_if_nobody_else_is_connected(
    made: tuple[Path, Backup], db: asyncpg.Connection, empty: asyncpg.Connection
) -> None:
    folder, _ = made
    with pytest.raises(CopyRefused, match=r"^stop the processes that use the database first: ledgerline "):
        await backup.restore(db, folder, replace=True)
    await empty.execute(
        "INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('later', '', '{}')"
    )
    before = await everything(empty)
    with pytest.raises(CopyRefused, match=r"^the database has partner data already: add --replace to lose them$"):
        await backup.restore(empty, folder, replace=False)
    assert await everything(empty) == before
    await backup.restore(empty, folder, replace=True)
    assert await backed_up(empty) == await backed_up(db)


async def test_a_changed_byte_in_any_file_is_found_before_anything_is_written(
    made: tuple[Path, Backup], empty: asyncpg.Connection
) -> None:
    folder, taken = made
    before = await everything(empty)
    paths = sorted(folder.iterdir())
    assert len(paths) == len(taken.files) + 1
    for path in paths:
        content = path.read_bytes()
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(CopyRefused, match=f"^{path} is damaged: "):
            await backup.restore(empty, folder, replace=False)
        path.write_bytes(content)
    paths[0].rename(folder / "x")
    with pytest.raises(CopyRefused, match=f"^{folder / 'x'} is not in the manifest$"):
        await backup.restore(empty, folder, replace=False)
    assert await everything(empty) == before


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"schema_version": 5}, "^the backup has schema version 5, expected "),
        ({"format": 2}, "has format 2, this program reads format 1$"),
        ({"files": {}}, "^the backup does not have the tables of schema version "),
    ],
)
async def test_a_backup_that_does_not_fit_is_refused(
    db: asyncpg.Connection, tmp_path: Path, change: dict[str, Any], refusal: str
) -> None:
    taken = await backup.take(db, tmp_path / "backup")
    copies.write(tmp_path / "backup", msgspec.structs.replace(taken, **change))
    with pytest.raises(CopyRefused, match=refusal):
        await backup.restore(db, tmp_path / "backup", replace=False)


async def test_no_backup_is_made_of_another_schema_or_into_a_folder_with_files(
    db: asyncpg.Connection, tmp_path: Path
) -> None:
    await db.execute("UPDATE partner.schema_version SET version = 8")
    with pytest.raises(CopyRefused, match=r"^the database has schema version 8, this program backs up "):
        await backup.take(db, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    (tmp_path / "file").touch()
    with pytest.raises(CopyRefused, match=f"^{tmp_path} is not empty$"):
        await backup.take(db, tmp_path)
