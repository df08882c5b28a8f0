"""Servers that are named, and what is told of one that does not start."""

import os
from pathlib import Path

import pytest

from shared import servers, settings
from shared.servers import embedded


def test_the_last_words_of_a_server_are_its_error(tmp_path: Path) -> None:
    server = embedded.Postgres(tmp_path / "data")
    server.log.parent.mkdir(parents=True, exist_ok=True)
    server.log.write_text("1 LOG:  starting\n2 FATAL:  no memory\n3 LOG:  database system is shut down\n\n")
    assert server.last_error() == "2 FATAL:  no memory"
    server.log.write_text("1 LOG:  starting\n")
    assert server.last_error() == "1 LOG:  starting"


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    server = embedded.Postgres(tmp_path / "data")
    server.log.parent.mkdir()
    server.log.touch()
    os.truncate(server.log, 1 << 40)  # a hole, which takes no space
    with server.log.open("ab") as log:
        log.write(b"\n1 FATAL:  no memory\n")
    assert server.last_error() == "1 FATAL:  no memory"


async def test_named_servers_are_used_and_none_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    environ = {"DATABASE_URL": "postgresql://db/x", "REDIS_URL": "redis://queue", "DATA_DIR": str(folder)}
    async with servers.running(settings.read(environ)) as found:
        assert (found.database_url, found.redis_url) == ("postgresql://db/x", "redis://queue")
        assert found.read_database_urls == ("postgresql://db/x",)
    assert not folder.exists()


async def test_a_folder_that_cannot_be_made_is_refused_in_one_line() -> None:
    with pytest.raises(servers.ServersError, match=r"^DATA_DIR=/proc/ledgerline can't be used: [^\n]*$"):
        async with servers.running(settings.read({"DATA_DIR": "/proc/ledgerline"})):
            pass
