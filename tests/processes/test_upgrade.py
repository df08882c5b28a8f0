"""A program whose schema has been replaced by a newer one stops writing, and logs that."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from shared import schema
from tests.chain.harness import ROOT, Json, Ledgerline, Node, Process, environment, until
from tests.processes.preview import preview

NEWER = schema.VERSION + 1
# The next version of the program, with an unchanged schema.
NEWER_PROGRAM = f"""
import runpy, sys
from shared import schema
schema.VERSION = {NEWER}
sys.argv = ["api", "migrate"]
runpy.run_module("api", run_name="__main__")
"""
REFUSED = f"the database has schema version {NEWER}, this program only knows {schema.VERSION}: upgrade the program"


def migrate(ledgerline: Ledgerline) -> "subprocess.CompletedProcess[str]":
    """`python -m api migrate` of the next version, to its end."""
    return subprocess.run(
        [sys.executable, "-c", NEWER_PROGRAM],
        cwd=ROOT,
        env=environment(ledgerline.settings),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("fresh", [0, 10], ids=["no block comes", "blocks come"])
def test_an_indexer_and_its_standby_end_without_another_commit(
    ledgerline: Ledgerline, indexer: Callable[[str], Process], blocks: list[Json], fresh: int
) -> None:
    with Node(preview(30)) as node:
        leader = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], leader)
        standby = indexer(node.url)
        standby.says("waiting", "indexer that serves this network")
        told = migrate(ledgerline)
        assert told.returncode == 0, told.stderr
        node.do(node.server.grow, fresh)
        for process in (leader, standby):
            assert process.ends() == 1
            last = process.output().splitlines()[-1]
            assert "follow.refused" in last and REFUSED in last
            assert "Traceback" not in process.output()
        assert ledgerline.tip_is("preview", blocks[29])


@pytest.mark.parametrize("noticed", [False, True], ids=["by its commit", "by its heartbeat"])
def test_a_resync_during_a_migration_changes_nothing(
    ledgerline: Ledgerline, indexer: Callable[[str], Process], blocks: list[Json], *, noticed: bool
) -> None:
    with Node(preview(60)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[59], process)
        assert process.stop() == 0

    async def overtaken() -> Process:
        """It has an open commit when the newer program migrates."""
        other = await asyncpg.connect(ledgerline.database_url)
        async with other.transaction():
            await other.execute("LOCK TABLE chain_preview.tip")
            resync = ledgerline.start("indexer", "resync", "--network", "preview", "--from-slot", "100")
            waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            await asyncio.to_thread(until, "it waits", lambda: ledgerline.rows("preview", waits))
            if noticed:
                newer = f"UPDATE partner.schema_version SET version = {NEWER}"  # noqa: S608 - a number of ours
                await asyncio.to_thread(ledgerline.rows, "preview", newer)
                await asyncio.to_thread(resync.ends)
            else:
                await other.execute("UPDATE partner.schema_version SET version = $1", NEWER)
        await other.close()
        return resync

    resync = asyncio.run(overtaken())
    assert resync.ends() == 1
    assert resync.output().splitlines()[1:] == [REFUSED]
    assert ledgerline.tip_is("preview", blocks[59])


def test_the_aggregator_ends_without_adding_usage(ledgerline: Ledgerline, tmp_path: Path) -> None:
    # NOTE: a file, since a process whose pipe nobody reads stops at its next line once the pipe is full.
    output = tmp_path / "aggregator.log"
    with ledgerline.serving("preview") as caller, output.open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "dramatiq", "api.worker", "--processes", "1", "--threads", "1"],
            cwd=ROOT,
            env=environment(ledgerline.settings),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            counted = "SELECT sum(successful + failed) FROM partner.usage HAVING sum(successful + failed) > 0"
            caller.get("/v1/tx/hash/" + "0" * 64)
            until("a request is counted", lambda: ledgerline.rows("preview", counted))
            assert migrate(ledgerline).returncode == 0
            caller.get("/v1/tx/hash/" + "0" * 64)
            assert worker.wait(30) != 0
            assert REFUSED in output.read_text()
            assert [tuple(row) for row in ledgerline.rows("preview", counted)] == [(1,)]
        finally:
            worker.kill()
