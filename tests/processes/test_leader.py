"""A hung leader is replaced, and does no harm when it resumes."""

import json
import os
import signal
from collections.abc import Callable

from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Json, Ledgerline, Node, Process, until
from tests.patience import OwnTime
from tests.processes.preview import preview

HOLDERS = """SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


def test_a_hung_leader_is_replaced_and_becomes_the_standby(
    ledgerline: Ledgerline, new_ledgerline: NewLedgerline, indexer: Callable[[str], Process], blocks: list[Json]
) -> None:
    with Node(preview(30)) as node:
        first = indexer(node.url)
        ledgerline.reaches("preview", blocks[29], first)
        second = indexer(node.url)
        second.says("waiting", "indexer that serves this network")
        led_by = ledgerline.rows("preview", HOLDERS)

        os.kill(first.popen.pid, signal.SIGSTOP)
        took = OwnTime(second.popen.pid)
        node.do(node.server.grow, 5)
        second.says("follow.leader_ended")
        ledgerline.reaches("preview", blocks[34], second)
        assert took.seconds < 30
        assert len(ledgerline.rows("preview", HOLDERS)) == 1 and ledgerline.rows("preview", HOLDERS) != led_by

        lines = len(first.output().splitlines())
        os.kill(first.popen.pid, signal.SIGCONT)
        until("it stands by", lambda: any("waiting" in line for line in first.output().splitlines()[lines:]))
        node.do(node.server.grow, 5)
        ledgerline.reaches("preview", blocks[39], second)

        second.kill()
        node.do(node.server.grow, 5)
        ledgerline.reaches("preview", blocks[44], first)
        assert first.stop() == 0
        straight = new_ledgerline()
        with straight.indexing("preview", node.url) as process:
            straight.reaches("preview", blocks[44], process)
            assert differences(straight.dump("preview"), ledgerline.dump("preview")) == []


def test_the_second_node_of_a_setting_is_watched_and_followed_once_the_first_is_lost(
    ledgerline: Ledgerline, indexer: Callable[[str], Process], blocks: list[Json]
) -> None:
    def nodes() -> list[str]:
        state = json.loads(ledgerline.run("indexer", "status", "--network", "preview", "--json").stdout)
        return [node["state"] for node in state["nodes"]]

    with Node(preview(30)) as second:
        with Node(preview(30)) as first:
            process = indexer(f"{first.url},{second.url}")
            ledgerline.reaches("preview", blocks[29], process)
            until("both are compared", lambda: nodes() == ["followed", "in_step"], every_s=1)
        second.do(second.server.grow, 1)
        ledgerline.reaches("preview", blocks[30], process)
        until("the first is away", lambda: nodes() == ["unreachable", "followed"], every_s=1)
    assert process.stop() == 0
