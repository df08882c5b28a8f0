"""`/v1/status` shows the figures that an operator needs first, at a bounded cost."""

import json

import asyncpg

from shared import schema, version
from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.indexers import Indexer, slot_now
from tests.api.payments import ALICE, pays
from tests.patience import PATIENCE_S


async def test_an_empty_service_has_no_networks(api: Client) -> None:
    reply = await api.get("/v1/status")
    assert reply.status == 200
    found = reply.body["data"]
    assert found.pop("at").endswith("Z")
    assert found["usage"].pop("oldest_snapshot_s") < PATIENCE_S  # another session may be reading
    assert found == {
        "version": version.VERSION,
        "schema_version": schema.VERSION,
        "networks": [],
        "usage": {"queued": 0, "waiting_bytes": 0, "lag_s": 0.0},
    }


async def test_a_network_shows_its_last_hour_and_its_last_verification(
    api: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection
) -> None:
    for age_s in (3_700, 3_500, 95, 90, 5):
        await chain.append(slot_now(age_s), pays(str(age_s), ALICE))
    await indexer.beats()
    await db.execute(
        "INSERT INTO partner.verification VALUES"
        " (1, now() - interval '2 h', now() - interval '1 h', 10, 1, 500, '{holder,policy_holder}')"
    )
    (network,) = (await api.get("/v1/status")).body["data"]["networks"]
    assert (network["network"], network["state"], network["block_no"]) == ("preview", "in_step", 4)
    blocks = network["last_hour"]["blocks"]
    assert (len(blocks), sum(blocks), blocks[59]) == (60, 4, 1)
    assert sum(blocks[:3]) == 1 and sum(blocks[57:59]) == 2
    verified = network["last_verify"]
    assert verified.pop("began_at") < verified.pop("ended_at")
    assert verified == {"slot_no": 10, "block_no": 1, "node_blocks": 500, "differing": ["holder", "policy_holder"]}


async def test_differences_from_the_nodes_ledger_are_named_in_status_and_counted_in_metrics(
    api: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection
) -> None:
    await chain.append(slot_now(5), pays("a", ALICE))
    await indexer.beats()
    named = [{"name": "stake_test1…", "ours": "pool1…", "node": "none"}]
    await db.execute(
        "INSERT INTO chain_preview.node_comparison VALUES"
        " ('account_pool', 5, 7, 100, 2, $1::text::json), ('pot', 5, 7, 2, 0, '[]')",
        json.dumps(named),
    )
    (network,) = (await api.get("/v1/status")).body["data"]["networks"]
    assert network["last_comparison"] == [
        {"kind": "account_pool", "epoch_no": 7, "compared": 100, "differing": 2, "differences": named},
        {"kind": "pot", "epoch_no": 7, "compared": 2, "differing": 0, "differences": []},
    ]
    shown = (await api.get("/metrics")).body.decode()
    assert 'ledgerline_ledger_compared{kind="account_pool",network="preview"} 100.0' in shown
    assert 'ledgerline_ledger_differences{kind="account_pool",network="preview"} 2.0' in shown


async def test_a_network_without_blocks_shows_no_figures(api: Client, indexer: Indexer, db: asyncpg.Connection) -> None:
    await indexer.beats()
    await db.execute("INSERT INTO partner.verification VALUES (1, now(), now(), 10, 1, NULL, '{}')")
    (network,) = (await api.get("/v1/status")).body["data"]["networks"]
    assert (network["state"], network["last_hour"], network["last_verify"]) == ("empty", None, None)
    assert network["last_comparison"] == []
