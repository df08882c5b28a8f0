"""The open paths: health, readiness, metrics."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from api.blockfrost.shape import ROOT
from api.operate import metrics
from api.routes import EVERY_ROUTE
from shared import database, leader, network_state, schema, tasks, version
from shared.network import PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.indexers import Indexer, slot_now
from tests.api.partners import Partner
from tests.api.payments import ALICE, pays
from tests.patience import PATIENCE_S
from tests.processes.relay import TcpRelay


async def test_health_says_that_the_process_answers(api: Client) -> None:
    reply = await api.get("/health")
    assert (reply.status, reply.body) == (200, {"success": True, "data": {"status": "alive"}})


async def test_ready_shows_each_network_that_is_indexed(api: Client, chain: Chain, indexer: Indexer) -> None:
    slot_no = slot_now(12)
    await chain.append(slot_no, pays("a", ALICE))
    await indexer.beats("ledger state")
    reply = await api.get("/ready")
    (network,) = reply.body["data"].pop("networks")
    reason = "the background task ledger state of the indexer of preview fails"
    assert (reply.status, reply.body["data"]) == (200, {"status": "degraded", "reasons": [reason]})
    ages = {"tip_age_s": 12, "node_tip_age_s": 5, "node_tip_unmoved_s": 5, "beat_age_s": 0}
    assert all(0 <= network.pop(name) - least < 5 for name, least in ages.items())
    assert network.pop("lag_slots") == network.pop("lag_s") in (6, 7, 8)
    assert network.pop("block_time") == PREVIEW.slot_time(slot_no).isoformat().replace("+00:00", "Z")
    assert network.pop("node_since") and slot_no < network.pop("node_slot_no") <= slot_now()
    assert network == {
        "network": "preview",
        "network_id": 1,
        "retired": False,
        "ready": True,
        "phase": "live",
        "slot_no": slot_no,
        "block_no": 0,
        "epoch_no": slot_no // 86_400,
        "first_block_no": 0,
        "transactions": 0,
        "lag_blocks": 7,
        "network_synchronization": 1.0,
        "sync_progress": 0.0,
        "sync_left_s": None,
        "node": "followed",
        "node_connected": True,
        "node_block_no": 7,
        "indexer_running": True,
        "indexer_version": version.VERSION,
        "failing_tasks": ["ledger state"],
        "refused": None,
        "lock_wait_s": None,
        "rollbacks": 0,
        "last_rollback_at": None,
        "last_rollback_blocks": None,
        "pools_stake_mismatch": None,
        "nodes": [],
        "splits": [],
    }


async def test_an_indexer_that_hangs_or_has_not_beaten_yet_does_not_count_as_running(
    api: Client, chain: Chain, indexer: Indexer
) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    assert await reasons(api) == ["no indexer is running for preview"]
    await indexer.beats()
    assert await reasons(api) == []
    await indexer.writer.execute("UPDATE partner.leader SET beat_at = now() - interval '21 s'")
    assert await reasons(api) == ["no indexer is running for preview"]
    assert b'ledgerline_indexer_running{network="preview"} 0.0\n' in (await api.get("/metrics")).body
    await indexer.writer.execute("UPDATE partner.leader SET beat_at = now(), backend_pid = 0")
    assert await reasons(api) == ["no indexer is running for preview"], "another one's beat"


async def test_each_network_is_ready_independently(api: Client, chain: Chain, indexer: Indexer) -> None:
    async def answer(network: str = "preview") -> tuple[int, str]:
        reply = await api.get(f"/ready/{network}")
        return reply.status, reply.error if reply.status != 200 else ", ".join(reply.body["data"]["reasons"])

    missing = "Not ready: no indexer is running for preprod; nothing is indexed for preprod yet"
    assert (await answer("preprod"), await answer("nowhere")) == ((503, missing), (404, "Not found"))
    await indexer.beats()
    assert await answer() == (503, "Not ready: nothing is indexed for preview yet")
    await chain.append(slot_now(290), pays("a", ALICE))
    assert await answer() == (200, "")
    await indexer.beats(node_connected=False)
    assert await answer() == (200, "the node of preview is not connected")
    await chain.append(slot_now(310), pays("b", ALICE))
    status, error = await answer()
    assert (status, error[:70]) == (503, "Not ready: the node of preview is not connected; the last block of pre")
    await chain.set_phase("bulk")
    await indexer.beats(sync_left_s=4_320.0, node_block_no=10_000)
    left = "0.0% of the blocks, about 1 h 12 min left, then indexes are built"
    assert await answer() == (503, f"Not ready: preview is syncing: {left}")
    ready = await api.get("/ready")
    assert (ready.status, ready.error) == (
        503,
        f"Not ready: no network is available yet; preview is syncing: {left}",
    )
    assert (await answer("preprod"))[0] == 503


async def test_how_far_a_network_may_be_behind_is_a_setting(environment: dict[str, str], chain: Chain) -> None:
    await chain.append(slot_now(290), pays("a", ALICE))
    async with serving(environment | {"READY_LAG_S": "60"}) as api:
        assert (await api.get("/ready/preview")).status == 503
        assert (await api.get("/ready")).status == 200, "its requests are answered, and say as of when"


async def test_a_retired_network_is_left_out(api: Client, chain: Chain, indexer: Indexer) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    await leader.retire(indexer.writer, PREVIEW)
    reply = await api.get("/ready")
    assert (reply.status, reply.body["data"]) == (200, {"status": "ready", "reasons": [], "networks": []})
    shown = (await api.get("/metrics")).body.decode().splitlines()
    # NOTE: an indexer that ran earlier in this process still has its own figures.
    assert not [line for line in shown if 'network="preview"' in line and not line.startswith("ledgerline_indexer_")]
    refused = await api.get("/ready/preview")
    assert (refused.status, refused.error) == (503, "Not ready: preview is retired")
    assert await leader.unretire(indexer.writer, PREVIEW)
    assert await reasons(api) == ["no indexer is running for preview"]


async def test_metrics_show_the_node_the_clock_and_the_rollbacks(api: Client, chain: Chain, indexer: Indexer) -> None:
    slot_no = slot_now(1_000)
    await chain.append(slot_no, pays("a", ALICE))
    await indexer.beats(node_slot_no=slot_no, node_block_no=0, node_unmoved_s=1_000.0)
    for most, blocks in ((1, 1), (1, 1), (5, 4), (network_state.DEEPER, 3_000)):
        await indexer.writer.execute(
            "INSERT INTO rollback_depth AS r VALUES ($1, 1, $2::integer, now(), $2) ON CONFLICT (blocks_at_most)"
            " DO UPDATE SET rollbacks = r.rollbacks + 1, blocks = r.blocks + $2",
            most,
            blocks,
        )
    shown = (await api.get("/metrics")).body.decode()
    figures = dict(line.rsplit(" ", 1) for line in shown.splitlines() if not line.startswith("#"))

    def figure(name: str) -> float:
        return float(figures[f'ledgerline_{name}{{network="preview"}}'])

    assert 1_000 <= figure("chain_tip_age_seconds") < 1_010
    assert 1_000 <= figure("node_tip_unmoved_seconds") < 1_010
    assert (figure("node_connected"), figure("chain_ready"), figure("chain_live")) == (1, 0, 1)
    assert figure("chain_network_synchronization") < 1
    assert figures['ledgerline_node_state{network="preview",state="stalled"}'] == "1.0"
    assert figures['ledgerline_node_state{network="preview",state="lost"}'] == "0.0"
    assert figures['ledgerline_chain_phase{network="preview",phase="live"}'] == "1.0"
    buckets = [figures[f'ledgerline_chain_rollback_blocks_bucket{{le="{le}",network="preview"}}'] for le in BUCKETS]
    assert buckets == ["2.0", "2.0", "3.0", "3.0", "4.0"]
    assert (figure("chain_rollback_blocks_count"), figure("chain_rollback_blocks_sum")) == (4, 3_006)
    info = f'ledgerline_build_info{{schema_version="{schema.VERSION}",version="{version.VERSION}"}}'
    assert figures[info] == "1.0"
    named = {
        line.split()[2].removeprefix("ledgerline_") for line in shown.splitlines() if line.startswith("# TYPE led")
    }
    # Another test may have imported the indexer, whose metrics the guide lists without their prefix.
    shown_names = {
        name.removeprefix("indexer_").removesuffix("_total") for name in named if not name.endswith("_created")
    }
    assert [
        name for name in shown_names if not re.search(rf"`(ledgerline_)?(indexer_)?{name}(_total)?[`{{]", GUIDE)
    ] == []
    await indexer.writer.execute("DELETE FROM partner.leader")
    shown = (await api.get("/metrics")).body.decode()
    assert "ledgerline_node_connected{" not in shown and "ledgerline_chain_lag_slots{" not in shown


GUIDE = (Path(__file__).parents[2] / "docs" / "signals.md").read_text().partition("\n## Metrics\n")[2]
BUCKETS = ("1.0", "2.0", "5.0", "2160.0", "+Inf")


async def test_a_newer_schema_refuses_changes_but_not_reads(
    api: Client, chain: Chain, key: str, partner: Partner, database_url: str
) -> None:
    await chain.append(10, pays("a", ALICE))
    writer = await database.connect(database_url, PREVIEW)
    await writer.execute("UPDATE partner.schema_version SET version = 9999")
    assert "schema version 9999" in (await reasons(api))[0]
    assert (await api.get(f"/v1/tx/history/{ALICE}", key)).status == 200
    assert b'ledgerline_chain_slot{network="preview"} 10.0\n' in (await api.get("/metrics")).body
    reply = await partner.call("POST", "/users", {"name": "Bob"})
    assert (reply.status, reply.error) == (503, "Service is being upgraded")
    assert await writer.fetchval("SELECT count(*) FROM partner.user_account WHERE name = 'Bob'") == 0
    await writer.close()


async def test_ready_is_503_only_if_no_network_is_available(api: Client, chain: Chain) -> None:
    async def refused() -> str:
        reply = await api.get("/ready")
        assert reply.status == 503
        return reply.error

    assert await refused() == "Not ready: no network is available yet"
    await chain.append(slot_now(), pays("a", ALICE))
    assert await reasons(api) == ["no indexer is running for preview"]
    await chain.set_phase("bulk")
    assert await refused() == (
        "Not ready: no network is available yet; no indexer is running for preview; preview is syncing"
    )


async def test_ready_reports_each_reason_of_degradation(
    api: Client, chain: Chain, indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    await indexer.beats()
    assert await reasons(api) == []
    await indexer.beats(node_connected=False)
    await indexer.writer.execute("UPDATE partner.schema_version SET version = 9999")
    await indexer.writer.execute(
        "INSERT INTO chain_preprod.tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (1, 1, $1, 0, 0, 'bulk')",
        bytes(32),
    )
    failure = tasks.TaskFailure("the rest", "OSError: secret", 0.0)
    monkeypatch.setattr(tasks, "failing", lambda: [failure])
    assert await reasons(api) == [
        f"the database has schema version 9999, this program only knows {schema.VERSION}: upgrade the program",
        "the node of preview is not connected",
        "no indexer is running for preprod",
        "preprod is syncing",
        "the background task the rest fails",
    ]


async def reasons(api: Client) -> list[str]:
    """The reasons of /ready, empty if nothing is degraded."""
    reply = await api.get("/ready")
    assert reply.status == 200
    data = reply.body["data"]
    assert data["status"] == ("degraded" if data["reasons"] else "ready")
    found: list[str] = data["reasons"]
    return found


@pytest.mark.usefixtures("no_aggregator")
async def test_open_endpoints_read_the_database_once_for_all_callers(
    environment: dict[str, str], chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone may call them, and they use the connections that authenticate requests."""
    await chain.append(slot_now(), pays("a", ALICE))
    readings = 0
    read = leader.last_heartbeats

    async def counted(db: asyncpg.Connection) -> dict[int, leader.LastHeartbeat]:
        nonlocal readings
        readings += 1
        return await read(db)

    monkeypatch.setattr(leader, "last_heartbeats", counted)
    async with serving(environment, kept_s=60.0) as api:
        paths = ("/ready", "/ready/preview", "/metrics", "/v1/status", f"{ROOT}/health")
        for path, most in zip(paths, (1, 2, 3, 4, 4), strict=True):
            replies = await asyncio.gather(*(api.get(path) for _ in range(20)))
            assert {reply.status for reply in replies} == {200}
            assert readings == most, path


@pytest.mark.usefixtures("no_aggregator")
async def test_ready_without_database_or_queue(environment: dict[str, str], chain: Chain) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    postgres, valkey = TcpRelay(), TcpRelay()
    environment["DATABASE_URL"] = postgres.in_front_of(environment["DATABASE_URL"])
    environment["REDIS_URL"] = valkey.in_front_of(environment["REDIS_URL"])
    postgres.open()
    valkey.open()
    async with serving(environment) as client:
        valkey.close()
        assert "queue not available, rates are limited per process" in await reasons(client)
        postgres.close()
        reply = await client.get("/ready")
        assert reply.status == 503
        assert "Database not available" in reply.error
        for path in ("/health", "/metrics", "/docs", "/openapi.json"):
            assert (await client.get(path)).status == 200
        postgres.open()
        valkey.open()
        async with asyncio.timeout(PATIENCE_S):
            while (await client.get("/ready")).status != 200 or len(await reasons(client)) > 1:
                await asyncio.sleep(0.05)
        assert await reasons(client) == ["no indexer is running for preview"]
    postgres.end()
    valkey.end()


async def test_metrics_count_requests_by_route_and_status(api: Client, chain: Chain, key: str) -> None:
    def count(text: bytes, status: int) -> float:
        labels = f'method="GET",route="/v1/tx/history/{{address}}",status="{status}"'
        name = f"ledgerline_requests_total{{{labels}}} "
        lines = [line for line in text.decode().splitlines() if line.startswith(name)]
        return float(lines[0].removeprefix(name)) if lines else 0.0

    await chain.append(10, pays("a", ALICE))
    before = (await api.get("/metrics")).body
    for query in ("", "?limit=1", "?limit=0"):
        await api.get(f"/v1/tx/history/{ALICE}{query}", key)
    reply = await api.get("/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    assert count(reply.body, 200) - count(before, 200) == 2
    assert count(reply.body, 400) - count(before, 400) == 1
    assert b'ledgerline_chain_slot{network="preview"} 10.0\n' in reply.body
    assert b'ledgerline_indexer_running{network="preview"} 0.0\n' in reply.body
    for private in (ALICE, key, key[:13]):
        assert private.encode() not in reply.body


async def test_counters_that_alerts_and_dashboards_name_begin_at_0(api: Client) -> None:
    """A counter that appears with its first event has no increase that Prometheus could see."""
    deploy = Path(__file__).parents[2] / "deploy"
    files = (deploy / "prometheus" / "alerts.yml", *(deploy / "grafana" / "dashboards").glob("*.json"))
    named = {name for file in files for name in re.findall(r"ledgerline_[a-z_]+_total", file.read_text())}
    shown = (await api.get("/metrics")).body.decode()
    of_api = {name for name in named if not name.startswith("ledgerline_indexer_")}
    assert len(of_api) > 5
    assert [name for name in of_api if not re.search(rf"^{name}[ {{]", shown, flags=re.MULTILINE)] == []
    for route in EVERY_ROUTE:
        for status in (route.status, 500, 503):
            labels = f'method="{route.method}",route="{route.path}",status="{status}"'
            assert f"ledgerline_requests_total{{{labels}}} " in shown
    assert 'ledgerline_task_failures_total{task="deadlines"} ' in shown
    assert 'ledgerline_callers_refused_total{key="admin",reason="permission"} ' in shown


async def test_metrics_omit_the_figures_of_a_frozen_database(
    environment: dict[str, str], chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scrape that hangs would look as if the API were down."""
    await chain.append(slot_now(), pays("a", ALICE))
    monkeypatch.setattr(metrics, "_MEASURED_WITHIN_S", 0.5)
    postgres = TcpRelay()
    environment["DATABASE_URL"] = postgres.in_front_of(environment["DATABASE_URL"])
    postgres.open()
    async with serving(environment) as client:
        assert b"ledgerline_chain_slot{" in (await client.get("/metrics")).body
        postgres.freeze()
        async with asyncio.timeout(PATIENCE_S):
            shown = (await client.get("/metrics")).body
        assert b"ledgerline_chain_slot{" not in shown
        assert b"ledgerline_requests_total{" in shown
        postgres.thaw()
    postgres.end()
