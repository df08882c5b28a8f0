"""The signals of each fault that is cheap to cause: the rows of docs/signals.md.

One indexer, one API and one node, whose blocks have current slots; each test repairs its fault.
"""

import asyncio
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from devnet.generator import Generated, Options, options_until_now
from shared.network import PREVIEW
from tests.chain.fixtures import NewLedgerline, new_ledgerline
from tests.chain.harness import Json, Ledgerline, Node, Process, free_port, issue_keys, until
from tests.processes.preview import preview

__all__ = ["new_ledgerline"]

READY_LAG_S = 5
NAMES = ("mainnet", "preview", "preprod")


def on_time() -> Generated:
    """A chain whose next blocks have the slots of the moments at which they are made."""
    chain = Generated(options_until_now(Options(eras=(("conway", 0),), density=1), 6), 6)
    chain.on_time = True
    return chain


def slot_now() -> int:
    return int((datetime.now(UTC) - PREVIEW.start_time).total_seconds())


class Site:
    """The processes of a network, and their answers."""

    def __init__(self, ledgerline: Ledgerline) -> None:
        self.ledgerline = ledgerline
        ledgerline.settings["READY_LAG_S"] = str(READY_LAG_S)
        self.chain = on_time()
        self.node_port, self.metrics_port, self.api_port = (free_port() for _ in range(3))
        self.node = self.new_node()
        self.indexer = self.new_indexer()
        self.api = ledgerline.start("api", "--port", str(self.api_port))

    def new_node(self) -> Node:
        """A node of the chain on its port; the caller ends it."""
        return Node(self.chain, port=self.node_port)

    def new_indexer(self, metrics_port: int | None = None) -> Process:
        port = str(metrics_port or self.metrics_port)
        url = f"ws://127.0.0.1:{self.node_port}"
        arguments = ("--network", "preview", "--ogmios-url", url, "--metrics-port", port)
        return self.ledgerline.start("indexer", "run", *arguments)

    def get(self, path: str) -> tuple[int, Any]:
        """Status and body of an answer of the API; 0 if there is none."""
        return ask(self.api_port, path)

    def ready(self) -> tuple[int, str]:
        """The status of `/ready`, and its reasons or its error."""
        status, body = self.get("/ready")
        return status, "" if not status else body.get("error") or "; ".join(body["data"]["reasons"])

    def degraded(self, reason: str) -> bool:
        """Whether `/ready` is 200 and begins with that reason; on a slow machine the last block may be old as well."""
        status, reasons = self.ready()
        return status == 200 and reasons.startswith(reason)

    def ready_preview(self) -> tuple[int, str]:
        """The same of `/ready/preview`."""
        status, body = self.get("/ready/preview")
        return status, "" if not status else body.get("error") or "; ".join(body["data"]["reasons"])

    def figure(self, name: str, **labels: str) -> float | None:
        """A metric of preview, from the API or, if its name says so, from the indexer itself; None if left out."""
        of_indexer = name.startswith("indexer_") and name not in ("indexer_running", "indexer_beat_age_seconds")
        return figure(self.metrics_port if of_indexer else self.api_port, name, **labels)

    def status(self) -> tuple[int, Json]:
        """The exit status of `indexer status`, and its output."""
        told = self.ledgerline.run("indexer", "status", "--network", "preview", "--json")
        return told.returncode, json.loads(told.stdout)

    def grows_until(self, what: str, holds: Any) -> None:
        """Let the chain grow, as it does while nothing is wrong, until something is true."""

        def grown() -> Any:
            self.node.do(self.node.server.grow)
            return holds()

        until(what, grown, within_s=90, every_s=0.3)

    def heals(self) -> None:
        self.grows_until("all is well", lambda: self.ready() == (200, "") and self.ready_preview() == (200, ""))


def ask(port: int, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()
    except OSError:
        return 0, None
    finally:
        connection.close()


def figure(port: int, name: str, **labels: str) -> float | None:
    """A metric of preview as one process serves it."""
    status, text = ask(port, "/metrics")
    wanted = {**labels, "network": "preview"}
    shown = ",".join(f'{label}="{wanted[label]}"' for label in sorted(wanted))
    lines = [
        line for line in (text if status else "").splitlines() if line.startswith(f"ledgerline_{name}{{{shown}}} ")
    ]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else None


@pytest.fixture(scope="module")
def running(new_ledgerline: NewLedgerline) -> Iterator[Site]:
    site = Site(new_ledgerline())
    site.node.__enter__()
    try:
        yield site
    finally:
        site.node.__exit__()
        site.indexer.kill()
        site.api.kill()


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    running.heals()
    yield running


def test_in_step(site: Site) -> None:
    site.grows_until("it is ready by its metrics", lambda: site.figure("chain_ready") == 1)
    assert site.figure("node_connected") == site.figure("indexer_node_connected") == 1
    assert site.figure("indexer_leading") == site.figure("chain_network_synchronization") == 1
    height = len(site.node.blocks()) - 1
    until("all have the last block", lambda: site.figure("indexer_block") == site.figure("chain_block") == height)
    assert site.figure("indexer_blocks_total") == height + 1
    assert site.figure("indexer_commit_seconds_count")
    assert all((site.figure(f"{of}_tip_age_seconds") or 0) < 60 for of in ("chain", "node", "indexer", "indexer_node"))
    site.grows_until("status agrees", lambda: site.status()[0] == 0)


def test_a_killed_node_is_lost(site: Site) -> None:
    site.node.__exit__()
    try:
        until("it shows", lambda: site.degraded("the node of preview is not connected"))
        assert (site.figure("node_connected"), site.figure("indexer_node_connected")) == (0, 0)
        assert site.figure("node_state", state="lost") == 1
        assert site.figure("chain_lag_blocks") is None, "nobody knows it"
        site.indexer.says("waiting", f"ogmios at 'ws://127.0.0.1:{site.node_port}'")
        old = "Not ready: the node of preview is not connected; the last block of preview is "
        until("preview is behind", lambda: site.ready_preview()[0] == 503 and site.ready_preview()[1].startswith(old))
        assert site.ready()[0] == 200
        assert (site.figure("chain_tip_age_seconds") or 0) > READY_LAG_S
        status, told = site.status()
        assert (status, told["node"]["state"], told["lag"]) == (1, "lost", None)
    finally:
        site.node = site.new_node()
        site.node.__enter__()


def test_a_stalled_chain_is_not_a_lost_node(site: Site) -> None:
    until("it shows", lambda: site.figure("node_state", state="stalled") == 1)
    assert (site.figure("node_connected"), site.figure("chain_lag_blocks")) == (1, 0)
    assert (site.figure("node_tip_unmoved_seconds") or 0) >= READY_LAG_S
    status, reasons = site.ready()
    assert status == 200 and "the node of preview is connected, but its tip has not moved for " in reasons
    status, error = site.ready_preview()
    assert status == 503 and "the chain stalls; the last block of preview is " in error
    assert site.status()[0] == 1


def test_a_killed_indexer_is_missing_and_a_standby_says_that_it_is_one(site: Site) -> None:
    other = site.new_indexer(free_port())
    port = int(other.popen.args[-1])  # type: ignore[index,arg-type] # a list
    try:
        until("the standby says so", lambda: figure(port, "indexer_leading") == 0)
        assert figure(port, "indexer_node_connected") is None
        other.kill()
        os.kill(site.indexer.popen.pid, signal.SIGKILL)
        until("it shows", lambda: site.degraded("no indexer is running for preview"))
        assert (site.figure("indexer_running"), site.figure("node_connected")) == (0, None)
        assert site.figure("node_state", state="unknown") == 1
        until("preview is behind", lambda: site.ready_preview()[0] == 503)
        assert site.status()[0] == 1
    finally:
        other.kill()
        site.indexer.kill()
        site.indexer = site.new_indexer()


def test_a_network_without_an_indexer_on_purpose_is_retired(site: Site) -> None:
    refused = site.ledgerline.run("api", "networks", "retire", "preview")
    assert (refused.returncode, refused.stderr.splitlines()[-1:]) == (
        2,
        ["an indexer is running for preview: stop it first"],
    )
    assert site.ledgerline.run("api", "networks", "retire", "nowhere").returncode == 2
    assert site.indexer.stop() == 0
    try:
        told = site.ledgerline.run("api", "networks", "retire", "preview")
        assert told.returncode == 0, told.stderr
        assert site.ready() == (200, "") and site.figure("chain_slot") is None
        assert site.ready_preview() == (503, "Not ready: preview is retired")
        assert "retired" in site.ledgerline.run("api", "networks", "list").stdout
    finally:
        site.indexer = site.new_indexer()
    site.indexer.says("follow.unretired")
    until("it is back", lambda: site.figure("indexer_running") == 1)


def test_without_a_worker_usage_waits_in_the_queue(site: Site) -> None:
    def usage(name: str) -> float:
        _, text = ask(site.api_port, "/metrics")
        (line,) = (line for line in text.splitlines() if line.startswith(f"ledgerline_usage_{name} "))
        return float(line.rsplit(" ", 1)[1])

    before = usage("queued")
    (key,) = asyncio.run(issue_keys(site.ledgerline.database_url, "preview", 1))
    assert ask(site.api_port, f"/v1/tx/hash/{'0' * 64}", Authorization=f"Bearer {key}")[0] == 404
    until("it is queued", lambda: usage("queued") > before and usage("lag_seconds") > 1)
    status, reasons = site.ready()
    assert status == 200 and "usage" not in reasons


def test_a_node_of_another_network_is_named(site: Site) -> None:
    mistaken = site.ledgerline.start_indexer("preprod", site.node.url)
    try:
        assert mistaken.ends(60) == 1
        mistaken.says("follow.refused", "the node's network began ")
        reason = "no indexer is running for preprod, it has stopped: its node is of another network"
        until("it shows", lambda: reason in site.ready()[1])
        assert site.get("/ready/preprod")[0] == 503
    finally:
        mistaken.kill()
        site.ledgerline.rows("preview", "DELETE FROM partner.leader WHERE network_id = 2")


def test_a_rollback_of_5_blocks_is_counted_by_its_depth(site: Site) -> None:
    counted = site.figure("chain_rollback_blocks_count"), site.figure("indexer_rollback_blocks_sum") or 0
    site.grows_until("there are blocks to lose", lambda: len(site.node.blocks()) > 6)
    until("they are indexed", lambda: site.ledgerline.tip_is("preview", site.node.blocks()[-1]))
    fork = site.node.server.chain
    assert isinstance(fork, Generated)
    site.chain = fork.fork(len(fork.blocks) - 6, seed=int(time.time()), blocks=6)
    site.node.do(site.node.server.switch, site.chain)
    until("the fork is indexed", lambda: site.ledgerline.tip_is("preview", site.node.blocks()[-1]))
    assert site.figure("chain_rollback_blocks_count") == (counted[0] or 0) + 1
    assert site.figure("indexer_rollback_blocks_sum") == counted[1] + 5
    assert site.figure("chain_rollback_blocks_bucket", le="2.0") == 0
    assert site.figure("chain_rollback_blocks_bucket", le="5.0") == 1
    site.indexer.says("store.rolled_back")
    _, body = site.get("/ready")
    (network,) = body["data"]["networks"]
    assert network["last_rollback_blocks"] == 5 and network["rollbacks"] == 1


def test_a_sync_in_progress_says_how_far_it_is(new_ledgerline: NewLedgerline) -> None:
    """A node that says that it has 6,000 blocks, of which it sends the first 1,500."""
    ledgerline, port, metrics_port = new_ledgerline(), free_port(), free_port()
    with Node(preview(1_500)) as node:
        node.server.tip_json = b'{"slot":%d,"id":"%b","height":6000}' % (slot_now(), b"0" * 64)
        url = ("--network", "preview", "--ogmios-url", node.url, "--metrics-port", str(metrics_port))
        indexer, api = ledgerline.start("indexer", "run", *url), ledgerline.start("api", "--port", str(port))
        try:
            until("a batch is staged", lambda: figure(metrics_port, "indexer_phase", phase="bulk") == 1)
            until("it shows", lambda: "% of the blocks, about " in str(ask(port, "/ready")[1]))
            for path in ("/ready", "/ready/preview"):
                status, body = ask(port, path)
                assert status == 503 and "preview is syncing: 16.7% of the blocks, about " in body["error"]
            assert (figure(port, "chain_live"), figure(port, "chain_phase", phase="bulk")) == (0, 1)
            assert figure(port, "chain_sync_progress") == pytest.approx(1 / 6, abs=1e-3)
            assert figure(port, "chain_sync_seconds_left") and figure(metrics_port, "indexer_sync_seconds_left")
            indexer.says("follow.progress", "blocks_per_s", "left")
            told = ledgerline.run("indexer", "status", "--network", "preview")
            assert told.returncode == 2 and "preview is syncing" in told.stdout
        finally:
            indexer.kill()
            api.kill()
