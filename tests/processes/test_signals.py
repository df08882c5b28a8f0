"""The signals of each fault: the rows of docs/signals.md.

One indexer, one API and one node, whose blocks have current slots; each test repairs its fault. The last test compares
the alerts that the faults would raise with the column of that page.
"""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from devnet.generator import Generated, Options, options_until_now
from shared.network import PREVIEW
from tests import programs
from tests.chain.fixtures import NewLedgerline, new_ledgerline
from tests.chain.harness import Json, Ledgerline, Node, Process, issue_keys, until
from tests.ports import free_port
from tests.processes import alerts
from tests.processes.preview import preview
from tests.processes.relay import TcpRelay

__all__ = ["new_ledgerline"]

READY_LAG_S = 5
NAMES = ("mainnet", "preview", "preprod")


def on_time() -> Generated:
    """A chain whose next blocks have current slots."""
    chain = Generated(options_until_now(Options(eras=(("conway", 0),), density=1), 6), 6)
    chain.on_time = True
    return chain


def slot_now() -> int:
    return int((datetime.now(UTC) - PREVIEW.start_time).total_seconds())


class Site:
    """The processes of a network, and their answers."""

    def __init__(self, ledgerline: Ledgerline) -> None:
        self.ledgerline = ledgerline
        self.postgres, self.valkey = TcpRelay(), TcpRelay()
        for name, relay in (("DATABASE_URL", self.postgres), ("REDIS_URL", self.valkey)):
            ledgerline.settings[name] = relay.in_front_of(ledgerline.settings[name])
            relay.open()
        ledgerline.settings["READY_LAG_S"] = str(READY_LAG_S)
        self.scrapes: dict[str, tuple[alerts.Scrapes, alerts.Scrapes]] = {}
        self.chain = on_time()
        self.node_port, self.metrics_port, self.api_port = (free_port() for _ in range(3))
        self.node = self.new_node()
        self.indexer = self.new_indexer()
        self.api = ledgerline.start("api", "--port", str(self.api_port))
        self.aggregator = self.new_aggregator()

    def new_node(self) -> Node:
        """A node of the chain on its port; the caller ends it."""
        return Node(self.chain, port=self.node_port)

    def new_indexer(self, metrics_port: int | None = None) -> Process:
        port = str(metrics_port or self.metrics_port)
        url = f"ws://127.0.0.1:{self.node_port}"
        arguments = ("--network", "preview", "--ogmios-url", url, "--metrics-port", port)
        return self.ledgerline.start("indexer", "run", *arguments)

    def new_aggregator(self) -> Process:
        return self.ledgerline.start("api", "worker", "--processes", "1", "--threads", "1")

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Status and body of an answer of the API; 0 without an answer."""
        return ask(self.api_port, path, **headers)

    def ready(self) -> tuple[int, str]:
        """The status of `/ready`, and its reasons or its error."""
        status, body = self.get("/ready")
        return status, "" if not status else body.get("error") or "; ".join(body["data"]["reasons"])

    def degraded(self, reason: str) -> bool:
        """Whether `/ready` is 200 and begins with that reason; on a slow machine the last block may be old as well."""
        status, reasons = self.ready()
        return status == 200 and reasons.startswith(reason)

    def ready_preview(self) -> tuple[int, str]:
        """The same for `/ready/preview`."""
        status, body = self.get("/ready/preview")
        return status, "" if not status else body.get("error") or "; ".join(body["data"]["reasons"])

    def figure(self, name: str, **labels: str) -> float | None:
        """A metric of preview, from the API or, by its name, from the indexer itself; None if left out."""
        of_indexer = name.startswith("indexer_") and name not in ("indexer_running", "indexer_beat_age_seconds")
        return figure(self.metrics_port if of_indexer else self.api_port, name, **labels)

    def number(self, name: str) -> float | None:
        """A metric of the API without labels; None if left out."""
        _, text = self.get("/metrics")
        lines = [line for line in (text or "").splitlines() if line.startswith(f"ledgerline_{name} ")]
        return float(lines[0].rsplit(" ", 1)[1]) if lines else None

    def state(self, network: str = "preview") -> str | None:
        """The word for a network in `/v1/status`, or the error."""
        _, body = self.get("/v1/status")
        if "error" in body:
            return str(body["error"])
        return {each["network"]: each["state"] for each in body["data"]["networks"]}.get(network)

    def shows(self, state: str) -> None:
        """Wait until `/v1/status`, whose answers are up to a second old, shows a state of preview."""
        until(f"/v1/status shows {state}", lambda: self.state() == state)

    def scrape(self) -> alerts.Scrapes:
        """The metrics that Prometheus would get now."""
        ports = {"ledgerline-api": self.api_port, "ledgerline-indexer": self.metrics_port}
        return {job: ask(port, "/metrics")[1] or "" for job, port in ports.items()}

    def keeps(self, fault: str) -> None:
        """Keep the metrics during a fault, whose signals have all appeared, for the test of alerts."""
        self.scrapes[fault] = (self.healthy, self.scrape())

    def status(self) -> tuple[int, Json]:
        """The exit status of `indexer status`, and its output."""
        told = self.ledgerline.run("indexer", "status", "--network", "preview", "--json")
        return told.returncode, json.loads(told.stdout)

    def calls(self, key: str) -> int:
        """The status of a chain request."""
        return self.get(f"/v1/tx/hash/{'0' * 64}", Authorization=f"Bearer {key}")[0]

    def grows_until(self, what: str, holds: Any) -> None:
        """Let the chain grow, as without a fault, until a condition is true."""

        def grown() -> Any:
            self.node.do(self.node.server.grow)
            return holds()

        until(what, grown, every_s=0.3)

    def adds_up(self) -> None:
        """Wait until all usage is in the table."""
        until("usage is added up", lambda: self.number("usage_lag_seconds") == 0)

    def heals(self) -> None:
        self.grows_until(
            "all is well",
            lambda: self.ready() == self.ready_preview() == (200, "") and self.number("usage_lag_seconds") == 0,
        )
        self.healthy = self.scrape()


def faults() -> dict[str, str]:
    """The cell `alerts` of each row in the table of faults: alerts that fire, then after a semicolon those that may."""
    text = (Path(__file__).parents[2] / "docs" / "signals.md").read_text()
    (table,) = re.findall(r"^\| fault \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]
    return {row[0]: row[5] for row in cells}


def ask(port: int, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
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
        site.aggregator.kill()
        site.postgres.end()
        site.valkey.end()


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    running.heals()
    yield running


@pytest.fixture(scope="module")
def key(running: Site) -> str:
    """An API key of preview."""
    (issued,) = asyncio.run(issue_keys(running.ledgerline.database_url, "preview", 1))
    return issued


def test_in_step(site: Site) -> None:
    site.grows_until("it is ready by its metrics", lambda: site.figure("chain_ready") == 1)
    assert site.figure("node_connected") == site.figure("indexer_node_connected") == 1
    assert site.figure("indexer_leading") == site.figure("chain_network_synchronization") == 1
    height = len(site.node.blocks()) - 1
    until("all have the last block", lambda: site.figure("indexer_block") == site.figure("chain_block") == height)
    assert site.figure("indexer_blocks_total") == height + 1
    assert site.figure("indexer_commit_seconds_count")
    assert all((site.figure(f"{of}_tip_age_seconds") or 0) < 60 for of in ("chain", "node", "indexer", "indexer_node"))
    site.shows("in_step")
    site.grows_until("status agrees", lambda: site.status()[0] == 0)


def test_a_killed_node_is_lost(site: Site) -> None:
    site.node.__exit__()
    try:
        until("it shows", lambda: site.degraded("the node of preview is not connected"))
        until("/metrics shows it", lambda: site.figure("node_connected") == site.figure("indexer_node_connected") == 0)
        assert site.figure("node_state", state="lost") == 1
        assert site.figure("chain_lag_blocks") is None, "nobody knows it"
        site.indexer.says("waiting", f"ogmios at 'ws://127.0.0.1:{site.node_port}'")
        old = "Not ready: the node of preview is not connected; the last block of preview is "
        until("preview is behind", lambda: site.ready_preview()[0] == 503 and site.ready_preview()[1].startswith(old))
        assert site.ready()[0] == 200
        assert (site.figure("chain_tip_age_seconds") or 0) > READY_LAG_S
        status, told = site.status()
        assert (status, told["node"]["state"], told["lag"]) == (1, "lost", None)
        site.shows("node_lost")
        site.keeps("node killed")
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
    assert status == 503 and "the node has stalled; the last block of preview is " in error
    site.shows("node_stalled")
    site.keeps("node stalled")
    assert site.status()[0] == 1


def test_a_killed_indexer_is_reported_missing_and_a_standby_reports_itself(site: Site) -> None:
    other = site.new_indexer(free_port())
    port = int(other.popen.args[-1])  # type: ignore[index,arg-type] # a list
    try:
        until("the standby says so", lambda: figure(port, "indexer_leading") == 0)
        assert figure(port, "indexer_node_connected") is None
        other.kill()
        os.kill(site.indexer.popen.pid, signal.SIGKILL)
        until("it shows", lambda: site.degraded("no indexer is running for preview"))
        until("/metrics shows it", lambda: site.figure("indexer_running") == 0)
        assert site.figure("node_connected") is None
        assert site.figure("node_state", state="unknown") == 1
        until("preview is behind", lambda: site.ready_preview()[0] == 503)
        site.shows("down")
        assert site.status()[0] == 1
        site.keeps("indexer killed")
    finally:
        other.kill()
        site.indexer.kill()
        site.indexer = site.new_indexer()


def test_a_network_that_is_deliberately_without_an_indexer_is_retired(site: Site) -> None:
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


def test_a_stopped_postgres_is_named_by_all(site: Site) -> None:
    interruptions = site.figure("indexer_interruptions_total") or 0
    site.postgres.close()
    try:
        away = (503, "Not ready: Database not available")
        until("it shows", lambda: site.ready() == site.ready_preview() == away)
        assert site.state() == "Database not available"
        figures = ("chain_slot", "node_connected", "indexer_running")
        until("metrics leave it out", lambda: {site.figure(name) for name in figures} == {None})
        until("the indexer tries again", lambda: (site.figure("indexer_interruptions_total") or 0) > interruptions)
        site.indexer.says("follow.interrupted")
        site.indexer.says('"waiting"', "postgres")
        site.api.says("ready.without_database")
        site.keeps("Postgres stopped")
        told = site.ledgerline.run("indexer", "status", "--network", "preview")
        assert told.returncode == 1
    finally:
        site.postgres.open()


def test_without_valkey_usage_waits_on_disk(site: Site, key: str) -> None:
    waiting = site.number("usage_waiting_bytes") or 0
    site.valkey.close()
    try:
        until("it shows", lambda: site.degraded("queue not available, rates are limited per process"))
        assert site.ready_preview()[0] == 200
        until("limits are separate", lambda: site.calls(key) == 404 and site.number("rate_limits_shared") == 0)
        until("usage waits", lambda: (site.number("usage_waiting_bytes") or 0) > waiting)
        assert site.number("usage_queued") is None
        until("/v1/status shows it", lambda: site.get("/v1/status")[1]["data"]["usage"]["queued"] is None)
        site.grows_until("the chain is in step without Valkey", lambda: site.state() == "in_step")
        site.api.says("valkey.away")
        site.api.says("ready.without_queue")
        site.keeps("Valkey stopped")
    finally:
        site.valkey.open()
    until("limits are shared again", lambda: site.calls(key) == 404 and site.number("rate_limits_shared") == 1)


def test_without_an_aggregator_usage_waits_in_the_queue(site: Site, key: str) -> None:
    site.aggregator.kill()
    try:
        assert site.calls(key) == 404
        until("it waits", lambda: site.number("usage_queued") and (site.number("usage_lag_seconds") or 0) > 1)
        status, reasons = site.ready()
        assert status == 200 and "usage" not in reasons
        until("/v1/status shows it", lambda: (site.get("/v1/status")[1]["data"]["usage"]["lag_s"] or 0) > 1)
        site.keeps("usage aggregator stopped")
    finally:
        site.aggregator = site.new_aggregator()


def test_a_full_disk_of_the_api_refuses_requests(site: Site, key: str) -> None:
    """Its spools are on a full file system of 1 MiB."""
    folder = site.ledgerline.directory / "small"
    port = free_port()
    with small_file_system(folder):
        data_dir, site.ledgerline.settings["DATA_DIR"] = site.ledgerline.settings["DATA_DIR"], str(folder)
        api = site.ledgerline.start("api", "--port", str(port))
        site.ledgerline.settings["DATA_DIR"] = data_dir
        usual, site.api_port = site.api_port, port
        try:
            until("it answers", lambda: site.calls(key) == 404)
            site.adds_up()
            healthy = site.scrape()
            with (folder / "zeros").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
                while True:
                    file.write(bytes(4_096))
            until("requests are refused", lambda: site.calls(key) == 503, every_s=0)
            refused = (503, "Not ready: usage cannot be recorded")
            assert (site.ready(), site.ready_preview()) == (refused, refused)
            assert site.number("usage_unrecorded_total")
            site.grows_until("the chain is in step nevertheless", lambda: site.state() == "in_step")
            api.says("usage.not_recorded", "o space left")
            site.adds_up()
            site.scrapes["disk of the API full"] = (healthy, site.scrape())
        finally:
            site.api_port = usual
            api.kill()


@contextmanager
def small_file_system(folder: Path) -> Iterator[None]:
    """A file system of 1 MiB. Skips the test without the right to mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "ledgerline-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system, as root has")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_of_postgres_stops_the_chain_but_no_reads(site: Site, key: str) -> None:
    """Every write fails as on a full disk. The last heartbeat is made older only to save 20 s."""
    rows = site.ledgerline.rows
    rows(
        "preview",
        "CREATE FUNCTION partner.full_() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$",
    )
    tables = ("chain_preview.tip", "partner.leader")
    for table in tables:
        rows("preview", f"CREATE TRIGGER full_ BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION partner.full_()")
    try:
        rows("preview", "ALTER TABLE partner.leader DISABLE TRIGGER full_")
        rows("preview", "UPDATE partner.leader SET beat_at = now() - interval '21 s' WHERE network_id = 1")
        rows("preview", "ALTER TABLE partner.leader ENABLE TRIGGER full_")
        site.node.do(site.node.server.grow)
        until("it shows", lambda: site.degraded("no indexer is running for preview"))
        until("/metrics shows it", lambda: site.figure("indexer_running") == 0)
        until("preview is behind", lambda: site.ready_preview()[0] == 503)
        assert site.calls(key) == 404, "reads continue"
        site.indexer.says("follow.interrupted", "DiskFullError")
        site.shows("down")
        assert site.status()[0] == 1
        site.adds_up()
        site.keeps("disk of Postgres full")
    finally:
        for table in tables:
            rows("preview", f"DROP TRIGGER full_ ON {table}")


def test_a_node_of_another_network_is_named(site: Site) -> None:
    mistaken = site.ledgerline.start_indexer("preprod", site.node.url)
    try:
        assert mistaken.ends() == 1
        mistaken.says("follow.refused", "the node's network began ")
        reason = "no indexer is running for preprod (the last one stopped because its node is on another network)"
        until("it shows", lambda: reason in site.ready()[1])
        assert "networks retire preprod" in site.ready()[1], "it points to what ends this"
        assert "preprod" in site.ledgerline.run("api", "networks", "list").stdout
        assert site.get("/ready/preprod")[0] == 503
        until("/v1/status shows it", lambda: site.state("preprod") == "down")
        site.keeps("Ogmios on the wrong network")
    finally:
        mistaken.kill()
        site.ledgerline.rows("preview", "DELETE FROM partner.leader WHERE network_id = 2")
        # An answer is up to a second old: the next test must not begin with this fault.
        until("/metrics forgets it", lambda: 'network="preprod"' not in site.get("/metrics")[1])


def test_a_rollback_of_5_blocks_is_counted_by_its_depth(site: Site) -> None:
    counted = site.figure("chain_rollback_blocks_count"), site.figure("indexer_rollback_blocks_sum") or 0
    site.grows_until("there are blocks to lose", lambda: len(site.node.blocks()) > 6)
    until("they are indexed", lambda: site.ledgerline.tip_is("preview", site.node.blocks()[-1]))
    fork = site.node.server.chain
    assert isinstance(fork, Generated)
    forks = (fork.fork(len(fork.blocks) - 6, seed, blocks=6) for seed in count(int(time.time())))
    # Two empty blocks of one slot and pool would be the same block.
    site.chain = next(other for other in forks if other.blocks[-6].id != fork.blocks[-5].id)
    site.node.do(site.node.server.switch, site.chain)
    until("the fork is indexed", lambda: site.ledgerline.tip_is("preview", site.node.blocks()[-1]))
    until("/metrics counts it", lambda: site.figure("chain_rollback_blocks_count") == (counted[0] or 0) + 1)
    assert site.figure("indexer_rollback_blocks_sum") == counted[1] + 5
    assert site.figure("chain_rollback_blocks_bucket", le="2.0") == 0
    assert site.figure("chain_rollback_blocks_bucket", le="5.0") == 1
    site.indexer.says("store.rolled_back")

    def ready() -> tuple[int | None, int]:
        (network,) = site.get("/ready")[1]["data"]["networks"]
        return network["last_rollback_blocks"], network["rollbacks"]

    def shown() -> int | None:
        networks = site.get("/v1/status")[1]["data"]["networks"]
        blocks: dict[str, int | None] = {each["network"]: each["last_rollback_blocks"] for each in networks}
        return blocks["preview"]

    until("/ready shows it", lambda: ready() == (5, 1))
    until("/v1/status shows it", lambda: shown() == 5)
    site.keeps("rollback of 5 blocks")


def test_a_sync_in_progress_reports_its_progress(running: Site, new_ledgerline: NewLedgerline) -> None:
    """A node that reports 6,000 blocks and sends only the first 1,500."""
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
            (shown,) = ask(port, "/v1/status")[1]["data"]["networks"]
            assert (shown["state"], shown["sync_progress"]) == ("syncing", pytest.approx(1 / 6, abs=1e-3))
            syncing = [ask(each, "/metrics")[1] for each in (port, metrics_port)]
            scrapes = dict(zip(("ledgerline-api", "ledgerline-indexer"), syncing, strict=True))
            running.scrapes["sync in progress"] = (scrapes, scrapes)
        finally:
            indexer.kill()
            api.kill()


@programs.needs("promtool")
def test_the_alerts_of_each_fault_are_those_of_the_guide(running: Site, tmp_path: Path) -> None:
    certain = {fault: cell.partition(";")[0] for fault, cell in faults().items() if fault in running.scrapes}
    documented = {fault: {*re.findall(r"\[(\w+)\]\(runbook/", cell)} for fault, cell in certain.items()}
    assert alerts.fired(running.scrapes, tmp_path) == documented
