"""The choice of pg_dump, and its access to the database."""

from pathlib import Path

import pytest

from indexer.snapshot import pg_dump
from shared.copies import CopyRefused


def program(folder: Path, version: str) -> Path:
    """A pg_dump that prints this version."""
    path = folder / f"pg_dump-{version}"
    path.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'\n")
    path.chmod(0o755)
    return path


def test_the_version_closest_to_the_servers_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [program(tmp_path, version) for version in ("15.9", "18.1 (Debian 18.1-1)", "17.2")]
    monkeypatch.setattr(pg_dump, "_installed", lambda: iter(installed))
    assert [pg_dump.find(server) for server in (15, 16, 17, 18)] == [installed[n] for n in (0, 2, 2, 1)]


def test_if_no_version_is_new_enough_one_line_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_dump, "_installed", lambda: iter([program(tmp_path, "15.9")]))
    with pytest.raises(
        CopyRefused,
        match=r"^no pg_dump of PostgreSQL 17 or newer is installed: install the package postgresql-client-17$",
    ):
        pg_dump.find(17)


@pytest.mark.parametrize(
    ("url", "address", "environment"),
    [
        ("postgresql://u:p%40ss@db:5432/l", "postgresql://u@db:5432/l", {"PGPASSWORD": "p@ss"}),
        ("postgresql://db/l?user=u&password=hush", "postgresql://db/l?user=u", {"PGPASSWORD": "hush"}),
        ("postgresql:///l?host=/run/a b", "postgresql:///l?host=%2Frun%2Fa%20b", {}),
        (
            "postgresql://u:p@h1:1,h2:2/l?sslmode=require",
            "postgresql://u@h1:1,h2:2/l?sslmode=require&target_session_attrs=read-write",
            {"PGPASSWORD": "p"},
        ),
        (
            "postgresql://u@h/l?database=d&DateStyle=ISO, DMY",
            "postgresql://u@h/l?dbname=d",
            {"PGOPTIONS": "-c DateStyle=ISO,\\ DMY"},
        ),
    ],
)
def test_the_password_is_not_in_the_address(url: str, address: str, environment: dict[str, str]) -> None:
    assert pg_dump.connection(url) == (address, environment)
