"""The indexer as a process: waiting, stopping, takeover, status and resync."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from tests.chain.dump import differences
from tests.chain.harness import Json, Ledgerline, Node, Process, until
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.processes.preview import preview
from tests.processes.relay import TcpRelay

Start = Callable[[str], Process]


@pytest.fixture
def relay() -> Iterator[TcpRelay]:
    door = TcpRelay()
    yield door
    door.end()


def values(told: Any) -> Iterator[Any]:
    """Every number and text in a JSON document."""
    if isinstance(told, dict | list):
        for each in told.values() if isinstance(told, dict) else told:
            yield from values(each)
    else:
        yield told


def test_the_indexer_waits_for_an_unreachable_ogmios(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json]
) -> None:
    port = free_port()
    process = indexer(f"ws://127.0.0.1:{port}")
    process.says("waiting", str(port))
    with Node(preview(30), port=port):
        ledgerline.reaches("preview", blocks[29], process)
    assert process.stop() == 0


def test_the_indexer_waits_for_an_unreachable_postgres(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json], relay: TcpRelay
) -> None:
    ledgerline.settings["DATABASE_URL"] = relay.in_front_of(ledgerline.database_url)
    with Node(preview(30)) as node:
        process = indexer(node.url)
        process.says("waiting", "ostgres")
        relay.open()
        ledgerline.reaches("preview", blocks[29], process)
        assert process.stop() == 0


def test_the_indexer_waits_for_a_lost_postgres(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json], relay: TcpRelay
) -> None:
    ledgerline.settings["DATABASE_URL"] = relay.in_front_of(ledgerline.database_url)
    relay.open()
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        relay.close()
        node.do(node.server.grow, 10)
        process.says("waiting", "ostgres")
        relay.open()
        ledgerline.reaches("preview", blocks[39], process)


def test_a_lost_postgres_is_noticed_without_a_new_block(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json]
) -> None:
    others = "SELECT {} FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        lost = ledgerline.rows("preview", others.format("pg_terminate_backend(pid)"))
        assert lost
        process.says("follow.interrupted", "onnection")
        locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
        until("it is the writer again", lambda: ledgerline.rows("preview", locks))
        assert process.stop() == 0


def test_the_indexer_waits_for_a_lost_ogmios(ledgerline: Ledgerline, indexer: Start, blocks: list[Json]) -> None:
    port = free_port()
    with Node(preview(30), port=port):
        process = indexer(f"ws://127.0.0.1:{port}")
        ledgerline.reaches("preview", blocks[29], process)
    process.says("waiting", str(port))
    with Node(preview(40), port=port):
        ledgerline.reaches("preview", blocks[39], process)


def test_sigterm_ends_it_while_it_waits(indexer: Start) -> None:
    port = free_port()
    process = indexer(f"ws://127.0.0.1:{port}")
    process.says("waiting", str(port))
    assert process.stop() == 0


def test_sigterm_ends_it_at_the_tip(ledgerline: Ledgerline, indexer: Start, blocks: list[Json]) -> None:
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        assert process.stop() == 0


def test_sigterm_ends_it_between_blocks_and_the_next_run_continues(ledgerline: Ledgerline, indexer: Start) -> None:
    with Node(preview(6000)) as node:
        process = indexer(node.url)
        until("some blocks are committed", lambda: ledgerline.rows("preview", "SELECT FROM tip"))
        assert process.stop() == 0
        process = indexer(node.url)
        ledgerline.reaches("preview", node.blocks()[-1], process)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_that_reads_ahead_ends_with_it(ledgerline: Ledgerline, indexer: Start, number: int) -> None:
    """Killed alone, or stopped together with all its processes, as by a terminal or a service manager."""
    with Node(preview(45_000)) as node:
        node.server.delay_s = 0.001  # so that bulk is far from its end whenever the test looks
        process = indexer(node.url)
        parent = psutil.Process(process.popen.pid)
        helpers = until("a process reads ahead", lambda: parent.children(recursive=True))
        until("some blocks are committed", lambda: ledgerline.rows("preview", "SELECT FROM block LIMIT 1"))
        assert ledgerline.rows("preview", "SELECT phase FROM tip") == [("bulk",)]
        if number == signal.SIGKILL:
            process.popen.kill()
        else:
            os.killpg(process.popen.pid, number)
        assert process.popen.wait(10) == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        _, left = psutil.wait_procs(helpers, timeout=PATIENCE_S)
        assert not left
        assert "interrupted" not in process.output() and "Traceback" not in process.output()


def test_a_second_run_waits_as_standby_and_takes_over(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json]
) -> None:
    with Node(preview(30)) as node:
        first = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], first)
        second = indexer(node.url)
        second.says("waiting", "indexer that serves this network")
        node.do(node.server.grow, 5)
        ledgerline.reaches("preview", blocks[34], first)
        first.kill()
        node.do(node.server.grow, 5)
        ledgerline.reaches("preview", blocks[39], second)
        assert second.stop() == 0


def test_a_standby_ends_on_sigterm(ledgerline: Ledgerline, indexer: Start, blocks: list[Json]) -> None:
    with Node(preview(30)) as node:
        first = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], first)
        second = indexer(node.url)
        second.says("waiting", "indexer that serves this network")
        assert second.stop() == 0


def test_status_shows_the_tip_of_the_index(ledgerline: Ledgerline, indexer: Start, blocks: list[Json]) -> None:
    with Node(preview(30)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], process)
        told = ledgerline.run("indexer", "status", "--network", "preview", "--json")
        assert told.returncode == 0, told.stdout + told.stderr
        state = json.loads(told.stdout)
        assert {blocks[29]["slot"], blocks[29]["id"]} <= set(values(state))
        for name, table in state["tables"].items():
            (counted,) = ledgerline.rows("preview", f"SELECT count(*) FROM {name}")  # noqa: S608 - a table of ours
            assert (table["rows"], table["exact"]) == (counted[0], True), name
        empty = ledgerline.run("indexer", "status", "--network", "preprod", "--json")
        assert json.loads(empty.stdout).keys() == state.keys()
        for_people = ledgerline.run("indexer", "status", "--network", "preview")
        assert for_people.returncode == 0 and str(blocks[29]["slot"]) in for_people.stdout


def test_status_does_not_wait_for_a_frozen_server(ledgerline: Ledgerline, relay: TcpRelay) -> None:
    frozen = relay.in_front_of(ledgerline.database_url)
    relay.open()
    relay.freeze()  # it accepts connections without answering
    took_s: list[float] = []
    for setting in ("postgresql://127.0.0.1:1/none", frozen):
        ledgerline.settings["DATABASE_URL"] = setting
        began = time.monotonic()
        told = ledgerline.run("indexer", "status", "--network", "preview")
        took_s.append(time.monotonic() - began)
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
        assert told.stderr.startswith("DATABASE_URL is ") and "expected a database that answers" in told.stderr
    relay.thaw()
    assert took_s[1] < 2 * took_s[0] + 6, "a connection may take 10 s otherwise"


def test_status_of_a_network_never_indexed(ledgerline: Ledgerline) -> None:
    told = ledgerline.run("indexer", "status", "--network", "preprod", "--json")
    assert told.returncode == 1, told.stderr
    empty = json.loads(told.stdout)
    assert (empty["state"], empty["tip"], empty["transactions"]) == ("empty", None, 0)


@pytest.mark.parametrize("slot", [400, 399, 0])
def test_resync_rolls_back_and_the_next_run_follows_again(
    ledgerline: Ledgerline, indexer: Start, blocks: list[Json], slot: int
) -> None:
    with Node(preview(60)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[59], process)
        straight = ledgerline.dump("preview")
        assert process.stop() == 0
        told = ledgerline.run("indexer", "resync", "--network", "preview", "--from-slot", str(slot))
        assert told.returncode == 0, told.stderr
        left = [block for block in blocks[:60] if block["slot"] <= slot] if slot else []
        transactions = sum(len(block.get("transactions", ())) for block in blocks[len(left) : 60])
        assert f"removed {60 - len(left)} blocks with {transactions} transactions of preview" in told.stdout
        if slot:
            assert ledgerline.tip("preview") == (left[-1]["slot"], left[-1]["id"])
        else:
            assert ledgerline.tip("preview") in (None, (0, blocks[0]["id"]))
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[59], process)
        assert differences(straight, ledgerline.dump("preview")) == []


@pytest.mark.parametrize("arguments", [["--network", "nowhere"], [], ["--network", "preview", "--from-slot", "-1"]])
def test_a_wrong_command_line_ends_with_one_line(ledgerline: Ledgerline, arguments: list[str]) -> None:
    told = ledgerline.run("indexer", "resync", *arguments)
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
