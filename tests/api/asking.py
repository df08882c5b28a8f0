"""`python -m tests.api.asking`: request every answer and every error from a running service.

The answers go to `api/reference/examples.json`, from which /openapi.json takes its examples. The service answers from
recorded blocks of preview. Values that differ between runs (ids, keys, times) are replaced, so that the file only
changes with the answers. Keys in it are made up.
"""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import asyncpg
import msgspec
import pycardano

from api import worker
from api.events.follower import Follower
from api.http import bodies, turns
from api.keys.restrictions import SCOPES
from api.reference.openapi import refusals_of
from api.route import JSON
from api.routes import ROUTES
from api.server import body as request_body
from api.server import deadlines
from api.usage import durations
from api.usage.queue import BreakdownSum, UsageBatch, UsageSum
from devnet import faucet, networks, parameters
from devnet.blocks import Genesis, Recorded
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.ledger.reader import GENESIS_ERAS
from shared import address, database, schema, servers, settings, splits
from shared.ledger import parse_pool_id
from shared.network import PREVIEW
from shared.packed import unpack_pool_parameters
from tests.api.client import Client, Reply, serving
from tests.api.indexers import Indexer
from tests.api.locks import until_blocked
from tests.api.partners import ALL, BOOTSTRAP_KEY, NOWHERE
from tests.api.reading_streams import reading
from tests.chain.harness import blocks_of, recorded
from tests.chain.written import Written
from tests.patience import PATIENCE_S
from tests.wallet import ADA, Wallet

Json = dict[str, Any]
FILE = Path(__file__).parents[2] / "api" / "reference" / "examples.json"
RECORD_AGAIN = "run make generated; tests/api/asking.py requests each answer and error"

_LAST_FILE, _LAST_SLOT = "preview-tokens.jsonl.xz", 733_216  # of the blocks that are indexed: a mint with metadata
_NFT = "0fc891fb7368d3b7c7b88815c203fda0d6862b0f1d797222672e91fe.4d79416d617a696e674e4654"
_POLICY = _NFT.partition(".")[0]
_SCRIPT = "054220bb63c7bcc8e7dea321fe90a46b63addef6bde92c64db36b9a2"  # it has decided on a mint
_DATUM = "14845e067bf83c19a97207c8a2057d9499624783f1fce1ef5abf600392240ad0"
_MINUTE = "2026-01-14T10:20:00"
_PERIOD = "start_date=2026-01-14&end_date=2026-01-14"
_MAX_TEXT_LENGTH = 200
_SHOWN_LINES = 2


class Asked(msgspec.Struct, omit_defaults=True):
    """A request and its answer, which is JSON unless `media_type` says otherwise.

    `body` is that of the request; an error names the requested operation.
    """

    request: str
    status: int
    answer: Any
    body: Any = None
    operation: str = ""
    media_type: str | None = None


class Recorder:
    """Sends requests, and keeps the answers: operations by name, errors by code."""

    def __init__(self, api: Client) -> None:
        self.api, self._asked = api, 0
        self.operations: dict[str, Asked] = {}
        self.errors: dict[str, Asked] = {}

    async def ok(self, operation: str, request: str, key: str | None = None, body: Any = None) -> Any:
        """Keep the answer of an operation, which must be a success; returns its data."""
        reply = await self._call(request, key, {} if body is None else {"json": body})
        assert reply.status < 400, (operation, reply.body)
        media_type = reply.headers["Content-Type"].partition(";")[0]
        told, named = _shortened(reply.body), None if media_type == JSON else media_type
        self.operations[operation] = Asked(request, reply.status, told, body, media_type=named)
        return reply.body["data"] if isinstance(reply.body, dict) and "data" in reply.body else reply.body

    async def refused(
        self, code: str, operation: str, request: str, key: str | None = None, body: Any = None, **options: Any
    ) -> None:
        """Keep the error with this code."""
        reply = await self._call(request, key, options if body is None else options | {"json": body})
        assert reply.headers.get("Error-Code") == code, (code, reply.status, reply.body)
        self.errors[code] = Asked(request, reply.status, reply.body, body, operation)

    async def stream(self, operation: str, request: str, key: str) -> None:
        """Keep the beginning of a stream of events."""
        subscription = request.split("/")[3]
        async with reading(self.api.port, subscription, key=key) as opened:
            event = await opened.next()
        written = msgspec.json.encode(event.data).decode()[:_MAX_TEXT_LENGTH]
        lines = f"id: {event.last_id}\nevent: {event.name}\ndata: {written}"
        self.operations[operation] = Asked(request, 200, lines, media_type="text/event-stream")

    async def refused_stream(self, code: str, operation: str, request: str) -> None:
        """Keep the error with this code, which only a request that gets it as an event can trigger."""
        reply = await self._call(request, None, {})
        assert reply.headers.get("Error-Code") == code, (code, reply.status, reply.body)
        (route,) = (route for route in ROUTES if route.operation == operation)
        (refusal,) = (each for each in refusals_of(route) if each.code == code)
        answer = {"success": False, "error": refusal.message}
        self.errors[code] = Asked(request, refusal.status, answer, operation=operation)

    async def data(self, method: str, path: str, key: str, body: Any = None) -> Any:
        """The data of an answer that is not kept."""
        reply = await self.api.call(method, path, key, **({} if body is None else {"json": body}))
        assert reply.status < 400, reply.body
        return reply.body["data"]

    async def _call(self, request: str, key: str | None, options: Mapping[str, Any]) -> Reply:
        method, path = request.split(" ")
        self._asked += 1
        headers = {"X-Request-Id": f"example-{self._asked}", **options.get("headers", {})}
        return await self.api.call(method, path, key, **{**options, "headers": headers})


class Subjects(msgspec.Struct):
    """The subjects of the chain requests: a pool, the transaction that registered it, an address of that with its
    account and its payment credential, and the last transaction."""

    tx_hash: str
    pool_id: str
    address: str
    stake_address: str
    payment_credential: str
    last_tx_hash: str = ""


async def ask_all(environment: Mapping[str, str]) -> Json:
    """The examples, from an API with these settings and an empty database."""
    url = environment["DATABASE_URL"]
    chain, db = await database.connect(url, PREVIEW), await database.connect(url)
    try:
        with patch("api.usage.queue._LAST_LOOKS_S", 0):  # no aggregator runs
            # The recorded blocks are old, but the network should count as ready.
            ready = {"READY_LAG_S": "999999999"}
            conway = Generated(Options(density=1, eras=(("conway", 0),), faucet=True), 3)
            async with (
                NodeServer(conway) as node,
                serving({**environment, **ready, "OGMIOS_URL_PREVIEW": node.url}) as api,
            ):
                asking = Recorder(api)
                await asking.refused("not_ready", "get_readiness", "GET /ready")
                about = await _index(chain)
                await _ask_about_service(asking, url)
                partner = await _ask_as_operator(asking)
                key = await _ask_as_partner(asking, partner, db)
                parameters_path = "GET /v1/epochs/latest/parameters"
                await asking.refused("parameters_not_known", "get_epoch_parameters", parameters_path, key)
                await asking.refused("genesis_not_known", "get_genesis", "GET /v1/genesis", key)
                await _read_ledger(chain)
                await _publish(chain, about.pool_id)
                await _ask_about_chain(asking, key, about)
                await _ask_for_events(asking, key, url, db, about)
                await _ask_for_bytes(asking, key, environment, about)
                await _ask_in_a_split(asking, key, {**environment, **ready}, about, db)
                await _ask_to_submit(asking, key, node, about, db)
                await _ask_without_right(asking, partner, about)
                await _ask_wrongly(asking, partner, key)
                await _ask_in_trouble(asking, partner, key, about, db)
    finally:
        await chain.close()
        await db.close()
    return _stable(msgspec.to_builtins({"operations": asking.operations, "errors": asking.errors}))


async def _index(chain: asyncpg.Connection) -> Subjects:
    written, about = Written(chain), None
    for name in ("preview-pools.jsonl.xz", _LAST_FILE):
        for block in blocks_of(recorded(name)):
            if block.get("transactions") and block["slot"] <= _LAST_SLOT:
                await written.index(block)
                last_tx_hash = block["transactions"][-1]["id"]
                for tx in block["transactions"]:
                    pools = [each["stakePool"]["id"] for each in tx.get("certificates", ()) if "stakePool" in each]
                    if pools and about is None:
                        payee = tx["outputs"][0]["address"]
                        raw = address.of_node(payee)
                        account, payment = address.stake_of(raw), address.payment_hash_of(raw)
                        assert account and payment, "the outputs of this transaction are delegated"
                        credential = address.show_payment_credential(payment, "addr_vkh1")
                        about = Subjects(tx["id"], pools[0], payee, address.show_stake(account), credential)
    assert about is not None, "the recorded blocks have a pool"
    about.last_tx_hash = last_tx_hash
    return about


async def _ask_for_webhooks(asking: Recorder, key: str, one: str, db: asyncpg.Connection) -> None:
    """Send all requests about the webhook of a subscription."""
    of_it, body = f"{one}/webhook", {"url": "https://example.com/cardano"}
    await asking.refused("webhook_not_found", "get_webhook", f"GET {of_it}", key)
    await asking.ok("set_webhook", f"PUT {of_it}", key, body)
    await db.execute(
        "INSERT INTO partner.webhook_attempt (subscription_no, place, number, tried_at, took_ms, attempt, error)"
        " SELECT subscription_no, 1, 1, '2026-11-01', 15000, 1, 'timeout' FROM partner.webhook"
    )
    await asking.ok("get_webhook", f"GET {of_it}", key)
    await asking.ok("rotate_webhook_secret", f"POST {of_it}/secret", key)
    await asking.ok("replay_webhook", f"POST {of_it}/replay", key, {"after": 0})
    await asking.ok("pause_webhook", f"POST {of_it}/pause", key)
    await asking.ok("resume_webhook", f"POST {of_it}/resume", key)
    await db.execute("UPDATE partner.webhook SET state = 'ended'")
    await asking.refused("webhook_ended", "resume_webhook", f"POST {of_it}/resume", key)
    await asking.ok("delete_webhook", f"DELETE {of_it}", key)


async def _ask_for_events(asking: Recorder, key: str, url: str, db: asyncpg.Connection, about: Subjects) -> None:
    """Send all requests about subscriptions."""
    of_all, some = "/v1/subscriptions", {"subjects": [{"kind": "transaction", "address": about.address}]}
    created = f"POST {of_all}"
    await asking.refused("events_not_available", "create_subscription", created, key, some)
    writer = await database.connect(url)
    async with await database.create_pool(url, PREVIEW, max_size=1) as pool:
        follower = Follower(PREVIEW, pool, writer)
        await follower.step()
        made = await asking.ok("create_subscription", created, key, some)
        # As if it had begun before the pool was registered.
        await db.execute("UPDATE partner.subscription SET after_slot_no = 0, at_slot_no = 0")
        for _ in range(30):
            await follower.step()
    await writer.close()
    one = f"{of_all}/{made['id']}"
    await asking.ok("get_subscription", f"GET {one}", key)
    await asking.ok("list_subscriptions", f"GET {of_all}?limit=1", key)
    await asking.ok("begin_subscription", f"POST {one}/begin", key)
    blocks = {"subjects": [{"kind": "block"}]}
    await asking.ok("add_subscription_subjects", f"POST {one}/subjects", key, blocks)
    await asking.ok("list_subscription_subjects", f"GET {one}/subjects?limit=2", key)
    await asking.ok("remove_subscription_subjects", f"POST {one}/subjects/remove", key, blocks)
    await asking.ok("list_events", f"GET {one}/events?after=0&limit=1", key)
    await asking.stream("stream_events", f"GET {one}/events/stream", key)
    await asking.ok("create_ticket", f"POST {one}/tickets", key)
    with_ticket = f"GET {one}/events/stream?ticket=iiak_ticket_x"
    await asking.refused_stream("invalid_ticket", "stream_events", with_ticket)
    await _ask_for_webhooks(asking, key, one, db)
    unknown = f"GET {one}/events?after_block={'0' * 64}"
    await asking.refused("block_not_followed", "list_events", unknown, key)
    await db.execute("UPDATE partner.subscription SET subjects = 100000")
    await asking.refused("too_many_subjects", "add_subscription_subjects", f"POST {one}/subjects", key, blocks)
    await db.execute("DELETE FROM partner.event WHERE number = 1")
    await asking.refused("events_not_kept", "list_events", f"GET {one}/events?after=0", key)
    await db.execute(
        "INSERT INTO partner.subscription (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no)"
        " SELECT credential_id, 1, 0, 'new', 0, 0 FROM partner.subscription, generate_series(1, 99)"
    )
    await asking.refused("too_many_subscriptions", "create_subscription", created, key, some)
    await asking.ok("delete_subscription", f"DELETE {one}", key)
    await asking.refused("subscription_not_found", "get_subscription", f"GET {one}", key)


async def _read_ledger(chain: asyncpg.Connection) -> None:
    """Store what the indexer reads from a node's ledger."""
    epoch_no = PREVIEW.epoch_of(_LAST_SLOT)
    await chain.execute(
        "INSERT INTO ledger_state (slot_no, epoch_no, desired_pools, reserves, treasury) VALUES ($1, $2, 500, $3, $4)",
        PREVIEW.epoch_start(epoch_no) + 20,
        epoch_no,
        14_991_000_000_000_000,
        9_000_000_000_000,
    )
    told = json.dumps(parameters.protocol_parameters("conway", (7, 0)))
    await chain.execute("INSERT INTO epoch_parameters VALUES ($1, $2::text::json, sha256('nonce'))", epoch_no, told)
    for era in GENESIS_ERAS:
        told = json.dumps(parameters.genesis_configuration(era, networks.PREVIEW, Genesis(), (7, 0)))
        await chain.execute("INSERT INTO genesis_configuration VALUES ($1, $2::text::json)", era, told)


async def _publish(chain: asyncpg.Connection, pool_id: str) -> None:
    """Store a document for the pool, as if the aggregator had fetched it."""
    row = await chain.fetchval(
        "SELECT parameters FROM pool_update JOIN pool USING (pool_no) WHERE pool_id = $1 ORDER BY tx_id LIMIT 1",
        parse_pool_id(pool_id),
    )
    registered = unpack_pool_parameters(row)
    assert registered.metadata_url is not None, "the pool has metadata"
    document = {
        "name": "Example Pool",
        "ticker": "EXPL",
        "description": "A pool of the examples",
        "homepage": "https://pool.example",
    }
    await chain.execute(
        "INSERT INTO partner.pool_metadata (network_id, hash, url, source, tried_at, content)"
        " VALUES ($1, $2, $3, $4, '2026-11-01T12:00:00Z', $5)",
        PREVIEW.network_id,
        registered.metadata_hash,
        registered.metadata_url.encode(),
        registered.metadata_url,
        msgspec.json.encode(document),
    )


async def _ask_about_service(asking: Recorder, url: str) -> None:
    writer = await database.connect(url, PREVIEW)
    assert await database.try_to_lead(writer, PREVIEW)
    await Indexer(writer).beats(node_slot_no=_LAST_SLOT)
    for operation, path in (
        ("get_home", "/"),
        ("get_health", "/health"),
        ("get_readiness", "/ready"),
        ("get_network_readiness", "/ready/preview"),
        ("get_status", "/v1/status"),
        ("get_status_page", "/status"),
        ("get_console_page", "/console"),
        ("get_metrics", "/metrics"),
        ("get_openapi_document", "/openapi.json"),
        ("get_docs", "/docs"),
        ("get_docs_file", "/docs/reference.js"),
    ):
        await asking.ok(operation, f"GET {path}")
    await writer.close()
    await asking.refused("not_found", "get_network_readiness", "GET /ready/testnet")


async def _ask_as_operator(asking: Recorder) -> str:
    """Send the requests that need the bootstrap key; returns the key of a new partner."""
    body = {"entity_name": "Example Wallet", "permissions": ALL}
    made = await asking.ok("create_admin_key", "POST /v1/admin/admin-keys", BOOTSTRAP_KEY, body)
    key: str = made["key"]
    await asking.ok("list_admin_keys", "GET /v1/admin/admin-keys?limit=1", BOOTSTRAP_KEY)
    limited = {"entity_name": "Example Auditor", "permissions": ["view_audit_logs"]}
    reply = await asking.api.call("POST", "/v1/admin/admin-keys", BOOTSTRAP_KEY, json=limited)
    auditor = reply.body["data"]
    await asking.refused("permission_denied", "list_users", "GET /v1/admin/users", auditor["key"])
    path = f"/v1/admin/admin-keys/{auditor['admin_key']['id']}"
    await asking.ok("revoke_admin_key", f"DELETE {path}", BOOTSTRAP_KEY)
    await asking.refused("admin_key_not_found", "revoke_admin_key", f"DELETE {path}", BOOTSTRAP_KEY)
    await asking.refused("invalid_admin_key", "list_users", "GET /v1/admin/users", auditor["key"])
    await asking.refused("missing_admin_key", "list_users", "GET /v1/admin/users")
    users = "POST /v1/admin/users"
    await asking.refused("bootstrap_key_refused", "create_user", users, BOOTSTRAP_KEY, {"name": "Example"})
    return key


_CUSTOMER = {
    "name": "Example",
    "external_id": "customer-1",
    "email": "someone@example.com",
    "billing_plan": "standard",
    "metadata": {"tier": "gold"},
}


async def _ask_as_partner(asking: Recorder, partner: str, db: asyncpg.Connection) -> str:
    """Send all requests that a partner may send; returns an API key of preview."""
    users, credentials, usage = "/v1/admin/users", "/v1/admin/credentials", "/v1/admin/usage"
    user = await asking.ok("create_user", f"POST {users}", partner, _CUSTOMER)
    of_user = f"{users}/{user['id']}"
    await asking.refused("external_id_in_use", "create_user", f"POST {users}", partner, _CUSTOMER)
    await asking.ok("list_users", f"GET {users}?limit=1", partner)
    await asking.ok("get_user", f"GET {of_user}", partner)
    await asking.ok("get_user_by_external_id", f"GET {users}/by-external-id/customer-1", partner)
    await asking.ok("suspend_user", f"POST {of_user}/suspend", partner)
    await asking.ok("reactivate_user", f"POST {of_user}/reactivate", partner)
    await asking.ok("update_user", f"PATCH {of_user}", partner, {"billing_plan": "premium"})

    body = {"name": "Backend", "user_account_id": user["id"], "network_id": 1, "description": "Production backend"}
    made = await asking.ok("create_credential", f"POST {credentials}", partner, body)
    of_credential = f"{credentials}/{made['credential']['id']}"
    await asking.ok("list_credentials", f"GET {credentials}?limit=1", partner)
    await asking.ok("get_credential", f"GET {of_credential}", partner)
    await asking.ok("update_credential", f"PATCH {of_credential}", partner, {"name": "Backend, second region"})
    rotated = await asking.ok("rotate_credential", f"POST {of_credential}/rotate", partner, {"overlap_seconds": 86_400})
    latest = await asking.data("POST", f"{of_credential}/rotate", partner, {"overlap_seconds": 0})
    await asking.refused("expired_api_key", "get_own_key", "GET /v1/key", rotated["api_key"])
    limits = {"rate_limit_per_minute": 600, "quota": {"requests": 100_000, "per": "month"}}
    await asking.ok("update_credential_limits", f"PUT {of_credential}/limits", partner, limits)
    await asking.ok("get_credential_limits", f"GET {of_credential}/limits", partner)
    restrictions = {"ip_networks": ["127.0.0.0/8", "203.0.113.0/24"], "scopes": [*SCOPES]}
    await asking.ok("update_credential_restrictions", f"PUT {of_credential}/restrictions", partner, restrictions)
    await asking.ok("get_credential_restrictions", f"GET {of_credential}/restrictions", partner)

    await asking.ok("list_credential_subscriptions", f"GET {of_credential}/subscriptions?limit=1", partner)
    await asking.ok("list_credential_webhooks", f"GET {of_credential}/webhooks?limit=1", partner)

    await _use(db, made["credential"]["id"])
    of_usage = f"{usage}/{made['credential']['id']}"
    await asking.ok("get_user_usage", f"GET {of_user}/usage?{_PERIOD}", partner)
    await asking.ok("list_usage_by_user", f"GET {users}/usage/summary?{_PERIOD}&limit=1", partner)
    await asking.ok("list_usage_by_credential", f"GET {usage}?limit=1", partner)
    await asking.ok("get_credential_usage", f"GET {of_usage}?{_PERIOD}", partner)
    await asking.ok("list_credential_usage_breakdown", f"GET {of_usage}/breakdown?{_PERIOD}", partner)
    await asking.ok("list_user_usage_breakdown", f"GET {of_user}/usage/breakdown?{_PERIOD}", partner)
    await asking.ok("export_usage", f"GET {usage}/export?{_PERIOD}&format=csv", partner)

    await _ask_again(asking, partner, body)
    await asking.ok("list_audit_logs", "GET /v1/admin/audit-logs?limit=2", partner)
    key: str = latest["api_key"]
    await asking.ok("get_own_key", "GET /v1/key", key)
    return key


async def _ask_again(asking: Recorder, partner: str, of_credential: Json) -> None:
    """Send requests with an idempotency key, until the account is deleted."""
    users, credentials, once = "/v1/admin/users", "/v1/admin/credentials", {"Idempotency-Key": "example"}
    trial = {"name": "Trial"}
    user = (await asking.api.call("POST", users, partner, json=trial, headers=once)).body["data"]
    another = trial | {"billing_plan": "trial"}
    await asking.refused("idempotency_key_reused", "create_user", f"POST {users}", partner, another, headers=once)
    wrong = {"Idempotency-Key": "é"}
    await asking.refused("invalid_idempotency_key", "create_user", f"POST {users}", partner, another, headers=wrong)
    body = of_credential | {"user_account_id": user["id"]}
    made = (await asking.api.call("POST", credentials, partner, json=body, headers=once)).body["data"]
    again = f"POST {credentials}"
    await asking.refused("key_not_shown_again", "create_credential", again, partner, body, headers=once)
    await asking.ok("revoke_credential", f"DELETE {credentials}/{made['credential']['id']}", partner)
    await asking.ok("delete_user", f"DELETE {users}/{user['id']}", partner)
    await asking.refused("answer_erased", "create_user", f"POST {users}", partner, trial, headers=once)


async def _use(db: asyncpg.Connection, credential_id: str) -> None:
    """Add usage of one day, as the aggregator does."""
    at = datetime.fromisoformat(_MINUTE).replace(tzinfo=UTC)
    minute = int(at.timestamp()) // 60
    used = UsageSum(credential_id, minute, 40, 2, 84_000, int(at.timestamp() * 1e6))
    parts = [
        BreakdownSum(credential_id, minute // 60, "GET /v1/tx/hash/{hash}", status // 100, count, count * 2_000, took)
        for status, count in ((200, 40), (404, 2))
        for took in [durations.packed({durations.bucket_of(2_000): count})]
    ]
    assert await worker.add_batch(db, UsageBatch("examples", 0, 38, [used], parts))


async def _ask_about_chain(asking: Recorder, key: str, about: Subjects) -> None:
    for operation, path in _questions(about):
        await asking.ok(operation, f"GET {path}", key)
    for kind, wanted in (
        ("addresses", about.address),
        ("accounts", about.stake_address),
        ("transactions", about.tx_hash),
        ("assets", _NFT),
        ("utxos", f"{about.tx_hash}#0"),
    ):
        await asking.ok(f"get_{kind}", f"POST /v1/bulk/{kind}", key, {"ids": [wanted]})
    wrong = {"ids": [about.tx_hash]}
    await asking.refused("invalid_output_reference", "get_utxos", "POST /v1/bulk/utxos", key, wrong)
    with patch.object(bodies, "MAX_BYTES", 1_000):
        both = {"ids": [about.tx_hash, "00" * 32]}
        await asking.refused("answer_too_large", "get_transactions", "POST /v1/bulk/transactions", key, both)
    for code, operation, path in _refused_questions(about):
        await asking.refused(code, operation, f"GET {path}", key)
    await asking.refused("missing_api_key", "get_transaction", f"GET /v1/tx/hash/{about.tx_hash}")
    unknown = "iiak_" + "0123456789abcdef" * 3
    await asking.refused("invalid_api_key", "get_transaction", f"GET /v1/tx/hash/{about.tx_hash}", unknown)
    await asking.refused("method_not_allowed", "", "PUT /v1/key", key)


def _questions(about: Subjects) -> Iterable[tuple[str, str]]:
    """Operations and paths that are answered: each chain route with a GET, about the same subjects, but those that are
    read from a node.
    """
    values = {
        **msgspec.structs.asdict(about),
        "hash": about.tx_hash,
        "poolId": about.pool_id,
        "index": "0",
        "label": "721",
        "scriptHash": _POLICY,
        "policyId": _POLICY,
        "datumHash": _DATUM,
        "asset": _NFT,
        "block": "latest",
        "epoch": "latest",
    }
    for route in ROUTES:
        of_node = any(refusal().code == "no_node" for refusal in route.errors)
        if route.method == "GET" and route.scope not in ("", "submit", "events") and not of_node:
            is_list = any(field.name == "limit" for field in route.fields)
            path = route.path.format_map(values)
            yield route.operation, f"{path}?{_QUERIES.get(route.operation, 'limit=2')}" if is_list else path


# The newest transactions of the address have long answers.
_QUERIES = dict.fromkeys(
    (
        "list_transactions",
        "list_transaction_history",
        "list_account_transactions",
        "list_account_transaction_history",
        "list_payment_credential_transactions",
        "list_payment_credential_transaction_history",
    ),
    "limit=1&order=asc",
)


def _refused_questions(about: Subjects) -> Iterable[tuple[str, str, str]]:
    """Operations and paths that are refused, each after its error code."""
    nobody = "0" * 64
    return (
        ("invalid_parameter", "list_transaction_history", f"/v1/tx/history/{about.address}?limit=0"),
        ("invalid_address", "list_transaction_history", "/v1/tx/history/nobody"),
        ("foreign_address", "list_transaction_history", f"/v1/tx/history/{_OF_MAINNET}"),
        ("invalid_stake_address", "get_account", f"/v1/accounts/{about.address[:40]}"),
        ("invalid_payment_credential", "get_payment_credential", f"/v1/payment-credentials/{about.address}"),
        ("output_not_found", "get_utxo", f"/v1/utxos/{nobody}/0"),
        ("invalid_transaction_hash", "get_transaction", "/v1/tx/hash/b6bb5d"),
        ("transaction_not_found", "get_transaction", f"/v1/tx/hash/{nobody}"),
        ("invalid_script_hash", "get_script", f"/v1/scripts/{nobody}"),
        ("script_not_found", "get_script", f"/v1/scripts/{nobody[:56]}"),
        ("invalid_datum_hash", "get_datum", "/v1/datums/d8799f"),
        ("datum_not_found", "get_datum", f"/v1/datums/{nobody}"),
        ("invalid_asset", "get_asset", f"/v1/assets/{_POLICY}"),
        ("invalid_fingerprint", "get_asset", f"/v1/assets/{_MISTYPED}"),
        ("asset_not_found", "get_asset", f"/v1/assets/{_POLICY}.ff"),
        ("invalid_policy_id", "list_policy_assets", f"/v1/assets/policy/{_MISTYPED}"),
        ("invalid_pool_id", "get_pool", "/v1/pools/pool1"),
        ("pool_not_found", "get_pool", f"/v1/pools/{nobody[:56]}"),
        ("block_not_found", "get_block", f"/v1/blocks/{nobody}"),
        ("epoch_not_found", "get_epoch", "/v1/epochs/1000"),
    )


async def _ask_for_bytes(asking: Recorder, key: str, environment: Mapping[str, str], about: Subjects) -> None:
    """Send the questions that a node answers, to an API whose node has the indexed blocks."""
    first_api = asking.api
    async with (
        NodeServer(Recorded(recorded(_LAST_FILE), networks.PREVIEW)) as node,
        serving({**environment, "OGMIOS_URL_PREVIEW": node.url}) as asking.api,
    ):
        path = f"/v1/tx/hash/{about.last_tx_hash}/cbor"
        frames = node.frames
        node.frames = [_without_cbor(frame) for frame in frames]
        await asking.refused("cbor_not_sent", "get_transaction_cbor", f"GET {path}", key)
        node.frames = frames
        await asking.ok("get_transaction_cbor", f"GET {path}", key)
        listed = "GET /v1/blocks/latest/transactions/cbor?limit=1"
        await asking.ok("list_block_transaction_cbor", listed, key)
        await asking.ok("list_script_redeemers", f"GET /v1/scripts/{_SCRIPT}/redeemers", key)
    asking.api = first_api


async def _ask_in_a_split(
    asking: Recorder, key: str, environment: Mapping[str, str], about: Subjects, db: asyncpg.Connection
) -> None:
    """Send a question while the chain is split, to an API that then refuses it."""
    ours, theirs = (splits.ChainBlock(20 * number, number, f"{number:064x}") for number in (20, 30))
    await splits.note(db, PREVIEW, 2, None, ours, theirs)
    first_api = asking.api
    async with serving({**environment, "ON_SPLIT": "refuse"}) as asking.api:
        async with asyncio.timeout(PATIENCE_S):
            while (await asking.api.get(f"/v1/tx/hash/{about.tx_hash}", key)).status != 503:
                await asyncio.sleep(0.05)
        await asking.refused("chain_split", "get_transaction", f"GET /v1/tx/hash/{about.tx_hash}", key)
    asking.api = first_api
    await splits.end_all(db, PREVIEW)


def _without_cbor(frame: bytes) -> bytes:
    """A block as Ogmios sends it without `--include-transaction-cbor`."""
    block = json.loads(frame)
    for tx in block["transactions"]:
        del tx["cbor"]
    return json.dumps(block).encode()


async def _ask_to_submit(asking: Recorder, key: str, node: NodeServer, about: Subjects, db: asyncpg.Connection) -> None:
    """Evaluate and submit transactions of the faucet, valid and invalid ones."""
    wallet, held = Wallet.of_faucet(), faucet.OUTPUT_LOVELACE
    assert isinstance(node.chain, Generated)
    source = next(iter(node.chain.ledger.wallets[str(wallet.address)]))
    submit = "POST /v1/tx/submit"
    to_mainnet = pycardano.Address(wallet.address.payment_part, network=pycardano.Network.MAINNET)
    unsigned, payment = (wallet.payment(source, held, 5 * ADA) for _ in range(2))
    unsigned.transaction_witness_set = pycardano.TransactionWitnessSet()
    nothing = wallet.payment(("ab" * 32, 0), held, ADA)

    def pays(lovelace: int, **changes: Any) -> Any:
        return wallet.body(source, [pycardano.TransactionOutput(wallet.address, lovelace)], **changes)

    for code, tx in (
        ("invalid_transaction", "84a0a0f5f6"),
        ("foreign_transaction", wallet.payment(source, held, ADA, to_mainnet)),
        ("transaction_not_signed", unsigned),
        ("transaction_expired", wallet.payment(source, held, ADA, ttl=_LAST_SLOT)),
        ("signatures_refused", wallet.signed(pays(held), key=Wallet.numbered(2).key)),
        ("inputs_not_unspent", nothing),
        ("outside_validity_interval", wallet.payment(source, held, ADA, validity_start=10**9)),
        ("fee_too_small", wallet.signed(pays(held - 9, fee=9))),
        ("value_not_conserved", wallet.signed(pays(held))),
        ("transaction_refused", wallet.signed(pays(9))),
    ):
        body = {"cbor": tx if isinstance(tx, str) else tx.to_cbor_hex()}
        await asking.refused(code, "submit_transaction", submit, key, body)
    large, raw = payment.to_cbor() + bytes(16_384), {"Content-Type": "application/cbor"}
    await asking.refused("transaction_too_large", "submit_transaction", submit, key, data=large, headers=raw)
    evaluate = "POST /v1/tx/evaluate"
    await asking.refused("evaluation_failed", "evaluate_transaction", evaluate, key, {"cbor": nothing.to_cbor_hex()})
    good = {"cbor": payment.to_cbor_hex()}
    await asking.ok("evaluate_transaction", evaluate, key, good)
    sent = await asking.ok("submit_transaction", submit, key, good)
    follow = f"GET /v1/tx/submitted/{sent['tx_hash']}"
    again = f"POST /v1/tx/submitted/{sent['tx_hash']}/resubmit"
    await asking.ok("resubmit_transaction", again, key)
    # The node's chain is not the indexed one, so replace the submitted transaction with one that is in a block.
    await db.execute("UPDATE partner.submitted_tx SET tx_hash = $1", bytes.fromhex(about.tx_hash))
    await asking.refused("transaction_not_submitted", "get_submitted_transaction", follow, key)
    await asking.ok("get_submitted_transaction", f"GET /v1/tx/submitted/{about.tx_hash}", key)
    again = f"POST /v1/tx/submitted/{about.tx_hash}/resubmit"
    await asking.refused("transaction_in_block", "resubmit_transaction", again, key)
    node.delay_s = 1.0
    with patch("api.sources.nodes.ANSWER_WITHIN_S", 0.1):
        await asking.refused("node_not_available", "evaluate_transaction", evaluate, key, good)
    node.delay_s = 0.0


_OF_MAINNET = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8"  # of CIP-19
_MISTYPED = "asset1rjklcrnsdzqp65wjgrg55sy9723kw09mlgvlc4"


async def _ask_without_right(asking: Recorder, partner: str, about: Subjects) -> None:
    """Send requests with keys that are restricted, used up, or of a missing account or network."""
    user = await asking.data("POST", "/v1/admin/users", partner, {"name": "Restricted"})
    path = f"/v1/tx/hash/{about.tx_hash}"

    async def issued(kind: str = "", change: Json | None = None, network_id: int = 1) -> str:
        body = {"name": "Restricted", "user_account_id": user["id"], "network_id": network_id}
        made = await asking.data("POST", "/v1/admin/credentials", partner, body)
        if kind:
            await asking.data("PUT", f"/v1/admin/credentials/{made['credential']['id']}/{kind}", partner, change)
        key: str = made["api_key"]
        return key

    for code, key in (
        ("scope_not_covered", await issued("restrictions", {"scopes": ["pools"]})),
        ("ip_address_not_allowed", await issued("restrictions", {"ip_networks": ["203.0.113.0/24"]})),
        ("network_not_available", await issued(network_id=2)),
    ):
        await asking.refused(code, "get_transaction", f"GET {path}", key)
    elsewhere = await issued("restrictions", {"scopes": ["submit"]}, network_id=2)
    await asking.refused("no_node", "submit_transaction", "POST /v1/tx/submit", elsewhere, {"cbor": "84a0a0f5f6"})
    for code, limits in (
        ("rate_limit_exceeded", {"rate_limit_per_minute": 1}),
        ("quota_exceeded", {"quota": {"requests": 1, "per": "month"}}),
    ):
        key = await issued("limits", limits)
        await asking.data("GET", path, key)
        await asking.refused(code, "get_transaction", f"GET {path}", key)
    key = await issued()
    await asking.data("POST", f"/v1/admin/users/{user['id']}/suspend", partner)
    await asking.refused("account_not_active", "get_transaction", f"GET {path}", key)


async def _ask_wrongly(asking: Recorder, partner: str, key: str) -> None:
    users, credentials = "/v1/admin/users", "/v1/admin/credentials"
    for code, operation, request, body in (
        ("missing_parameter", "create_user", f"POST {users}", {}),
        ("user_account_not_found", "get_user", f"GET {users}/{NOWHERE}", None),
        ("credential_not_found", "get_credential", f"GET {credentials}/{NOWHERE}", None),
        ("nothing_to_update", "update_credential", f"PATCH {credentials}/{NOWHERE}", {}),
        ("expiry_not_in_future", "update_credential_limits", f"PUT {credentials}/{NOWHERE}/limits", _PAST),
        ("dates_reversed", "list_usage_by_user", f"GET {users}/usage/summary?{_REVERSED}", None),
    ):
        await asking.refused(code, operation, request, partner, body)
    create = "create_user", f"POST {users}", partner
    await asking.refused("invalid_json_body", *create, data=b"[]")
    await asking.refused("body_too_large", *create, data=b" " * (request_body.MAX_BODY_BYTES + 1))
    await asking.refused("malformed_request", *create, data=b"{}", headers={"Content-Encoding": "br"})
    await asking.refused("expectation_failed", *create, data=b"{}", headers={"Expect": "an answer"})
    never = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    with patch.object(request_body, "_SEND_WITHIN_S", 0.1):
        await asking.refused("request_timeout", *create, data=stalled())
    with patch.object(os, "pwrite", side_effect=OSError("the disk is full")):
        await asking.refused("usage_not_recorded", "get_own_key", "GET /v1/key", key)


_PAST = {"expires_at": "2020-01-01"}
_REVERSED = "start_date=2026-01-15&end_date=2026-01-14"


async def _ask_in_trouble(asking: Recorder, partner: str, key: str, about: Subjects, db: asyncpg.Connection) -> None:
    """Send requests while the database is damaged, locked, of another version or failing. Leaves it damaged."""
    users = "GET /v1/admin/users"
    async with db.transaction():
        await db.execute("LOCK TABLE partner.user_account")
        with patch.object(deadlines, "MAX_REQUEST_S", 0.5):
            await asking.refused("too_slow", "list_users", users, partner)
    async with db.transaction():
        await db.execute("LOCK TABLE partner.user_account")
        waiting = [asyncio.create_task(asking.api.get("/v1/admin/users", partner)) for _ in range(4)]
        await until_blocked(db, len(waiting))
        with patch.object(turns, "WAIT_S", 0.5):
            await asking.refused("too_many_concurrent_requests", "list_users", users, partner)
    await asyncio.gather(*waiting)
    await db.execute("UPDATE chain_preview.tx SET outputs = '\\x00'")
    anew = {"Cache-Control": "no-cache"}  # the answer from before the damage is kept
    await asking.refused("internal_error", "get_transaction", f"GET /v1/tx/hash/{about.tx_hash}", key, headers=anew)
    await db.execute("UPDATE partner.schema_version SET version = version + 1")
    await asking.refused("upgrade_in_progress", "create_user", "POST /v1/admin/users", partner, {"name": "Example"})
    await db.execute("UPDATE partner.schema_version SET version = version - 1")
    await db.execute(
        """
        CREATE FUNCTION partner.fails() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the disk is full' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER fails BEFORE INSERT ON partner.user_account EXECUTE FUNCTION partner.fails()
        """
    )
    await asking.refused("database_not_available", "create_user", "POST /v1/admin/users", partner, {"name": "Example"})


# Stable and short -----------------------------------------------------------------------------------------------------

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECRET, _MADE_UP_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+"), f"whsec_{'QUFB' * 10}QUE="
_KEY = re.compile(r"iiak_(admin_)?([0-9a-f]+)")
_TICKET = re.compile(r"iiak_ticket_[A-Za-z0-9_-]{92}")
_MADE_UP = {"": "0123456789abcdef" * 3, "admin_": "0123456789" * 4}
_TIME = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
_NOW = "2026-01-15T09:30:00Z"
_MAX_RUN_S = 3_600
_CHANGING: Json = {
    "last_used_at": _NOW,
    "resets_at": "2026-02-01T00:00:00Z",
    "network_synchronization": 1.0,
    "beat_age_s": 0.1,
    "lag_s": 0,
    "oldest_snapshot_s": 0,
    "tip_age_s": 12,
    "node_tip_age_s": 12,
    "version": "1.0.0",
    "schema_version": 11,
    "indexer_version": "1.0.0",
}
_MAX_NUMBERS = 5  # in a list that is not shortened


def _shortened(body: Any) -> Any:
    """The answer, shortened: the first lines of a page or another text, the beginning of the OpenAPI document, a part
    of a long list of numbers.
    """
    if isinstance(body, bytes):
        return "\n".join(line[:_MAX_TEXT_LENGTH] for line in body.decode().splitlines()[:_SHOWN_LINES])
    if "openapi" in body:
        return {"openapi": body["openapi"], "info": {name: body["info"][name] for name in ("title", "summary")}}
    return _without_long_lists(body)


def _without_long_lists(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_long_lists(each) for name, each in part.items()}
    if isinstance(part, list):
        shown = part[:_MAX_NUMBERS] if all(isinstance(each, int) for each in part) else part
        return [_without_long_lists(each) for each in shown]
    return part


def _stable(told: Json) -> Json:
    """The same answer in every run: ids are numbered, keys made up, times of the run fixed."""
    ids: dict[str, str] = {}

    def text(value: str) -> str:
        value = _UUID.sub(lambda found: ids.setdefault(found[0], f"00000000-0000-4000-8000-{len(ids) + 1:012}"), value)
        value = _SECRET.sub(f"whsec_{'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}", _KEY.sub(_made_up_key, value))
        value = _TICKET.sub(f"iiak_ticket_{'0' * 92}", value)
        return _TIME.sub(lambda found: _NOW if _is_of_the_run(found[0]) else found[0], value)

    def stable(part: Any, name: str = "") -> Any:
        if name in _CHANGING:
            return _CHANGING[name]
        if isinstance(part, dict):
            return {text(key): stable(each, key) for key, each in part.items()}
        if isinstance(part, list):
            return [stable(each) for each in part]
        return text(part) if isinstance(part, str) else part

    made: Json = stable(told)
    return made


def _made_up_key(found: re.Match[str]) -> str:
    """A key or prefix of the same length."""
    kind, digits = found[1] or "", found[2]
    return f"iiak_{kind}{_MADE_UP[kind][: len(digits)]}"


def _is_of_the_run(time: str) -> bool:
    return (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds() < _MAX_RUN_S


async def _record() -> None:
    with tempfile.TemporaryDirectory(prefix="ledgerline-examples-") as folder:
        Path(folder).chmod(0o755)  # the account that runs the servers for root must reach them
        environment = {"DATA_DIR": folder, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY, "ACCESS_LOG": "off"}
        async with servers.running(settings.read(environment)) as running:
            db = await asyncpg.connect(running.database_url)
            await schema.migrate(db)
            await db.close()
            named = {"DATABASE_URL": running.database_url, "REDIS_URL": running.redis_url}
            told = await ask_all(environment | named)
    FILE.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    asyncio.run(_record())
