"""Partners under test: one-line calls with an admin key."""

from typing import Any
from uuid import UUID

import asyncpg

from tests.api.client import Client, Reply

BOOTSTRAP_KEY = "iiak_admin_" + "0123456789" * 4
ALL = ["manage_users", "manage_credentials", "view_usage", "view_audit_logs"]
NOWHERE = "00000000-0000-4000-8000-000000000000"
"""An id that does not exist."""

BODIES: dict[str, dict[str, Any]] = {
    "/v1/admin/users": {"name": "intruder"},
    "/v1/admin/users/{id}": {"name": "intruder", "email": None, "metadata": None},
    "/v1/admin/credentials": {"name": "intruder", "user_account_id": NOWHERE, "network_id": 1},
    "/v1/admin/credentials/{id}": {"name": "intruder", "description": None},
    "/v1/admin/credentials/{id}/rotate": {"overlap_seconds": 0},
    "/v1/admin/credentials/{id}/limits": {"rate_limit_per_minute": 1, "quota": {"requests": 1, "per": "day"}},
    "/v1/admin/credentials/{id}/restrictions": {"ip_networks": ["192.0.2.0/24"]},
}
"""A valid body for each admin route that takes one."""

# Chain requests are cheapest without an index: 503 `Network not available`, which counts like any answer.
CHAIN_PATH = "/v1/tx/hash/" + "0" * 64
NOTHING_INDEXED = 503


class Partner:
    """The owner of an admin key."""

    def __init__(self, api: Client, admin_key: str, record: dict[str, Any] | None = None) -> None:
        self.api, self.admin_key, self.record = api, admin_key, record or {}

    async def get(self, path: str) -> Reply:
        """GET below /v1/admin."""
        return await self.call("GET", path)

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        """Any method below /v1/admin; a body is sent as JSON."""
        options |= {} if body is None else {"json": body}
        return await self.api.call(method, f"/v1/admin{path}", self.admin_key, **options)

    async def data(self, method: str, path: str, body: Any = None) -> Any:
        """The data of an answer, which must be a success."""
        reply = await self.call(method, path, body)
        assert reply.status in {200, 201}, reply.body
        assert reply.body["success"] is True
        return reply.body["data"]

    async def user(self, **fields: Any) -> dict[str, Any]:
        """A new user account."""
        made: dict[str, Any] = await self.data("POST", "/users", {"name": "a customer"} | fields)
        return made

    async def issued(self, user: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], str]:
        """A new credential of an account, and its key."""
        body = {"name": "a key", "user_account_id": user["id"], "network_id": 1} | fields
        made = await self.data("POST", "/credentials", body)
        return made["credential"], made["api_key"]

    async def actions(self, query: str = "limit=100") -> list[str]:
        """The actions in the audit log, newest first."""
        return [entry["action"] for entry in await self.data("GET", f"/audit-logs?{query}")]


async def partner_of(api: Client, entity_name: str, permissions: list[str] | None = None) -> Partner:
    """A new partner, created with the bootstrap key."""
    made = await Partner(api, BOOTSTRAP_KEY).data(
        "POST", "/admin-keys", {"entity_name": entity_name, "permissions": permissions or ALL}
    )
    return Partner(api, made["key"], made["admin_key"])


async def an_account(partner: Partner, db: asyncpg.Connection) -> list[UUID]:
    """The ids of an account with rows in every table, and of its credential."""
    user = (
        await partner.call("POST", "/users", {"name": "x"}, headers={"Idempotency-Key": "a key of 16 or more"})
    ).body
    user_id = user["data"]["id"]
    credential, _ = await partner.issued({"id": user_id})
    await partner.data("POST", f"/credentials/{credential['id']}/rotate", {"overlap_seconds": 600})
    await db.execute(
        """
        INSERT INTO partner.submitted_tx (network_id, accepted, user_account_id, tx_hash, cbor)
        VALUES (1, true, $1, '', '')
        """,
        UUID(user_id),
    )
    await db.execute(
        """
        INSERT INTO partner.idempotency_key (key_hash, body_hash, target_id, answer, invalidated)
        VALUES ('', '', $1, '', '{}')
        """,
        UUID(credential["id"]),
    )
    return [UUID(user_id), UUID(credential["id"])]


def counts(usage: dict[str, Any]) -> tuple[int, int, int]:
    """Total, successful and failed requests."""
    return usage["total_requests"], usage["successful_requests"], usage["failed_requests"]


async def everything(db: asyncpg.Connection) -> dict[str, list[str]]:
    """Every row of every table of partners."""
    tables = await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'partner'")
    return {
        name: [row[0] for row in await db.fetch(f"SELECT each::text FROM partner.{name} AS each ORDER BY 1")]  # noqa: S608
        for (name,) in tables
    }


async def changeable(db: asyncpg.Connection) -> Any:
    """The same as `everything`, without the times of use of admin keys."""
    tables = await everything(db)
    del tables["admin_key"]
    return tables, await kept(db)


async def kept(db: asyncpg.Connection) -> list[Any]:
    """Everything that partners own."""
    tables = ("admin_key", "user_account", "credential")
    columns = "id, created_at, revoked_at", "id, name, status, updated_at", "id, name, revoked_at, metadata::text"
    return [
        await db.fetch(f"SELECT {names} FROM partner.{table} ORDER BY id")  # noqa: S608
        for table, names in zip(tables, columns, strict=True)
    ]
