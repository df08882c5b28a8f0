"""Commands report their failures in one line, and stop on a signal."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from devnet.dialect import Dialect
from devnet.generator import Generated, options_of
from shared import database
from shared.network import by_name
from tests.chain.fixtures import execute
from tests.chain.harness import Json, Ledgerline, Node, Process, until
from tests.processes.preview import preview


@pytest.mark.parametrize(
    "command", [["status"], ["resync", "--from-slot", "1"], ["verify"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("wrong", ["_not_there", "?sslmode=bogus"])
def test_an_unusable_database_is_refused_in_one_line(ledgerline: Ledgerline, command: list[str], wrong: str) -> None:
    ledgerline.settings["DATABASE_URL"] += wrong
    told = ledgerline.run("indexer", *command, "--network", "preview")
    assert told.returncode in (1, 2)
    assert len(told.stderr.splitlines()) == 1, told.stderr
    assert told.stderr.startswith("DATABASE_URL is ")


@pytest.mark.parametrize("command", [["migrate"], ["keys", "list"]], ids=lambda words: words[0])
def test_api_commands_refuse_an_unusable_database_in_one_line(ledgerline: Ledgerline, command: list[str]) -> None:
    ledgerline.settings["DATABASE_URL"] += "_not_there"
    told = ledgerline.run("api", *command)
    assert told.returncode == 2
    assert len(told.stderr.splitlines()) == 1, told.stderr
    assert told.stderr.startswith("DATABASE_URL is ")


@pytest.mark.parametrize("command", [["migrate"], ["keys", "list"]], ids=lambda words: words[0])
def test_api_commands_log_json_to_a_file(ledgerline: Ledgerline, command: list[str]) -> None:
    ledgerline.settings["DATABASE_URL"] = "postgresql://127.0.0.1:1/ledgerline"
    process = ledgerline.start("api", *command)
    process.says("waiting", "postgres")
    assert process.stop() == 1
    assert json.loads(process.output().splitlines()[0])["event"] == "waiting"


def test_a_node_of_another_network_is_not_recorded(ledgerline: Ledgerline, tmp_path: Path) -> None:
    out = tmp_path / "blocks.jsonl"
    with Node(preview(30)) as node:
        options = ["--from-slot", "0", "--blocks", "1", "--out", str(out), "--ogmios-url", node.url]
        told = ledgerline.run("indexer", "record", "--network", "preprod", *options)
    assert told.returncode == 1
    assert told.stderr.splitlines()[1].startswith("the node's network began ")
    assert not out.exists()


def test_a_slot_beyond_the_highest_is_refused(ledgerline: Ledgerline) -> None:
    told = ledgerline.run("indexer", "resync", "--network", "preview", "--from-slot", str(1 << 64))
    assert told.returncode == 2
    assert "--from-slot" in told.stderr


def test_a_one_off_command_creates_no_database_unasked(tmp_path: Path) -> None:
    alone = Ledgerline("", "", tmp_path)
    told = alone.run("indexer", "verify", "--network", "preview")
    assert told.returncode == 2
    assert told.stderr == (
        f"DATABASE_URL is unset and there is no embedded database in {tmp_path}/data: "
        "set DATABASE_URL, or create a database here with --embedded\n"
    )
    assert not (tmp_path / "data").exists()
    made = alone.run("api", "keys", "create", "--entity-name", "x", "--embedded")
    assert made.returncode == 0, made.stderr
    assert f"database: the embedded one in {tmp_path}/data/postgres" in made.stderr
    listed = json.loads(alone.run("api", "keys", "list", "--json").stdout)
    assert [each["entity_name"] for each in listed] == ["x"], "no bootstrap key, which has never been used"


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path: Path) -> None:
    # NOTE: too long a path, since permissions don't stop root, as which the tests may run.
    folder = f"{tmp_path}/{'/'.join(['x' * 100] * 50)}"[:4_090].rstrip("/")
    alone = Ledgerline("", "", tmp_path)
    alone.settings["DATA_DIR"] = folder
    told = alone.run("api", "migrate")
    assert (told.returncode, len(told.stderr.splitlines())) == (2, 1), told.stderr
    assert told.stderr.startswith(f"DATA_DIR={folder} can't be used: ")


def test_a_file_that_cannot_be_written_is_named(ledgerline: Ledgerline, tmp_path: Path) -> None:
    out = tmp_path / "nowhere" / "x"
    options = ["--from-slot", "0", "--blocks", "1", "--out", str(out), "--ogmios-url", "ws://127.0.0.1:1"]
    told = ledgerline.run("indexer", "record", "--network", "preview", *options)
    assert told.returncode == 2
    assert told.stderr == f"--out is '{out}', expected a file in a folder that exists and can be written\n"


def test_a_check_tries_each_server_and_shows_no_secret(ledgerline: Ledgerline) -> None:
    ledgerline.settings |= {"BOOTSTRAP_ADMIN_KEY": "iiak_admin_" + "5" * 40}
    with Node(Generated(options_of("preview"), 60), dialect=Dialect(metadata_cbor=False)) as node:
        ledgerline.settings["OGMIOS_URL_PREVIEW"] = node.url
        of_api = ledgerline.run("api", "check")
        ledgerline.settings["OGMIOS_URL_PREPROD"] = "ws://127.0.0.1:1"
        of_indexer = ledgerline.run("indexer", "check")
    assert of_api.returncode == 0, of_api.stdout + of_api.stderr
    assert "all 3 passed" in of_api.stdout
    for fact in ("v6.14.0", "preview, by the time at which it began"):
        assert fact in of_api.stdout.partition("\nogmios of preview\n")[2]
    assert of_indexer.returncode == 1
    assert "2 of 3 failed" in of_indexer.stdout
    of_node = of_indexer.stdout.partition("\nogmios of preview\n")[2].partition("\nogmios of preprod\n")
    for fact in ("v6.14.0", "round trip", "clock", "with its genesis and eras"):
        assert fact in of_node[0]
    assert re.search(r"--include-transaction-cbor +yes", of_node[0])
    assert "--include-metadata-cbor (or --metadata-detailed-schema) is missing" in of_node[0]
    assert "Connect call failed" in of_node[2]
    password = urlsplit(ledgerline.database_url).password
    assert password and password not in of_api.stdout + of_indexer.stdout
    assert "5" * 40 not in of_api.stdout


def test_a_check_names_the_fault_of_a_server(ledgerline: Ledgerline) -> None:
    with Node(preview(30)) as node:
        told = ledgerline.run("indexer", "check", "--network", "preprod", "--ogmios-url", node.url)
        ledgerline.settings |= {"OGMIOS_URL_PREPROD": node.url, "OGMIOS_URL_MAINNET": "ws://127.0.0.1:1"}
        of_api = ledgerline.run("api", "check")
    assert told.returncode == 1
    assert "WrongNetwork: the node's network began" in told.stdout
    assert of_api.returncode == 1
    assert "2 of 4 failed" in of_api.stdout
    assert "its network began 2022-10-25 00:00:00+00:00, preprod began 2022-06-01" in of_api.stdout
    assert "Connect" in of_api.stdout.partition("\nogmios of mainnet\n")[2].partition("\nogmios of")[0]


def test_a_resync_that_removes_much_asks_first(ledgerline: Ledgerline) -> None:
    chain = """
        INSERT INTO chain_preview.block (slot_no, block_no, tx_count, pool_no, size, hash)
        SELECT n, n, 2, 1, 1, sha256(n::text::bytea) FROM generate_series(0, 2171) AS n;
        INSERT INTO chain_preview.tip (slot_no, block_hash, block_no, first_block_no, tx_count, phase)
        SELECT slot_no, hash, block_no, 0, 4344, 'live' FROM chain_preview.block WHERE block_no = 2171
    """
    asyncio.run(execute(ledgerline.database_url, chain))
    resync = ("indexer", "resync", "--network", "preview", "--from-slot")
    told = ledgerline.run(*resync, "10")
    assert told.returncode == 2
    assert told.stderr.endswith("this removes 2,161 blocks with 4,322 transactions of preview: add --yes to confirm\n")
    assert ledgerline.rows("preview", "SELECT FROM tip WHERE block_no = 2171")
    told = ledgerline.run(*resync, "0", "--yes")
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    ("held_s", "refusal"),
    [(0.5, "nothing is indexed for preview"), (4, "an indexer is running for preview: stop it first")],
)
def test_a_resync_waits_a_moment_for_the_lock_of_an_indexer(
    ledgerline: Ledgerline, held_s: float, refusal: str
) -> None:
    """The session of an indexer may briefly outlive its process."""

    async def refused() -> str:
        leader = await database.connect(ledgerline.database_url)
        assert await database.try_to_lead(leader, by_name["preview"])
        await leader.execute("SELECT 1")
        resync = ledgerline.start("indexer", "resync", "--network", "preview", "--from-slot", "0")
        await asyncio.to_thread(until, "it tries", lambda: ledgerline.rows("preview", TRIED_TO_LEAD))
        await asyncio.sleep(held_s)
        leader.terminate()
        assert await asyncio.to_thread(resync.ends) == 1
        return resync.output().splitlines()[-1]

    assert asyncio.run(refused()) == refusal


def test_sigterm_ends_a_resync_that_waits_for_postgres(
    ledgerline: Ledgerline, indexer: Callable[[str], Process], blocks: list[Json]
) -> None:
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        assert process.stop() == 0

    async def stopped_while_waiting() -> int:
        other = await asyncpg.connect(ledgerline.database_url)
        async with other.transaction():
            await other.execute("LOCK TABLE chain_preview.tx")
            resync = ledgerline.start("indexer", "resync", "--network", "preview", "--from-slot", "100")
            await asyncio.to_thread(until, "it waits", lambda: ledgerline.rows("preview", WAITING))
            return await asyncio.to_thread(resync.stop, within_s=5)

    assert asyncio.run(stopped_while_waiting()) == 1
    assert ledgerline.tip_is("preview", blocks[29])


TRIED_TO_LEAD = "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock(%'"
WAITING = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
