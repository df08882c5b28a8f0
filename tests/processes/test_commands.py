"""Commands that can't do what they are asked to say so in one line, and end when they are told to."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from tests.chain.harness import Json, Ledgerline, Node, Process, until
from tests.processes.preview import preview


@pytest.mark.parametrize(
    "command", [["status"], ["resync", "--from-slot", "1"], ["verify"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("wrong", ["_not_there", "?sslmode=bogus"])
def test_an_unusable_database_is_told_in_one_line(ledgerline: Ledgerline, command: list[str], wrong: str) -> None:
    ledgerline.settings["DATABASE_URL"] += wrong
    told = ledgerline.run("indexer", *command, "--network", "preview")
    assert told.returncode in (1, 2)
    assert len(told.stderr.splitlines()) == 1, told.stderr
    assert told.stderr.startswith("DATABASE_URL is ")


@pytest.mark.parametrize("command", [["migrate"], ["keys", "list"]], ids=lambda words: words[0])
def test_so_it_is_by_the_api_commands(ledgerline: Ledgerline, command: list[str]) -> None:
    ledgerline.settings["DATABASE_URL"] += "_not_there"
    told = ledgerline.run("api", *command)
    assert told.returncode == 2
    assert len(told.stderr.splitlines()) == 1, told.stderr
    assert told.stderr.startswith("DATABASE_URL is ")


def test_a_node_of_another_network_is_not_recorded(ledgerline: Ledgerline, tmp_path: Path) -> None:
    out = tmp_path / "blocks.jsonl"
    with Node(preview(30)) as node:
        options = ["--from-slot", "0", "--blocks", "1", "--out", str(out), "--ogmios-url", node.url]
        told = ledgerline.run("indexer", "record", "--network", "preprod", *options)
    assert told.returncode == 1
    assert told.stderr.startswith("the node's network began ")
    assert not out.exists()


def test_a_slot_beyond_all_slots_is_refused(ledgerline: Ledgerline) -> None:
    told = ledgerline.run("indexer", "resync", "--network", "preview", "--from-slot", str(1 << 64))
    assert told.returncode == 2
    assert "--from-slot" in told.stderr


def test_sigterm_ends_a_resync_that_waits_for_postgres(
    ledgerline: Ledgerline, indexer: Callable[[str], Process], blocks: list[Json]
) -> None:
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        assert process.stop() == 0

    async def stopped_while_waiting() -> tuple[int, float]:
        other = await asyncpg.connect(ledgerline.database_url)
        async with other.transaction():
            await other.execute("LOCK TABLE chain_preview.tx")
            resync = ledgerline.start("indexer", "resync", "--network", "preview", "--from-slot", "100")
            await asyncio.to_thread(until, "it waits", lambda: ledgerline.rows("preview", WAITING))
            began = time.monotonic()
            status = await asyncio.to_thread(resync.stop)
            return status, time.monotonic() - began

    status, took_s = asyncio.run(stopped_while_waiting())
    assert status == 1 and took_s < 5
    assert ledgerline.tip_is("preview", blocks[29])


WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
