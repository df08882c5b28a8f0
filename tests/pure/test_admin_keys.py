"""Permissions of the administrative routes, and the list of keys on the command line."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from api.admin import admin_keys
from api.commands import keys
from api.keys import tokens
from api.routes import ROUTES
from tests.api.partners import ALL, BOOTSTRAP_KEY, NOWHERE


def test_routes_need_the_documented_permissions() -> None:
    needed = {
        (route.method, route.path.replace("{", ":").replace("}", "")): route.access
        for route in ROUTES
        if route.path.startswith("/v1/admin/")
    }
    assert needed == {
        ("POST", "/v1/admin/users"): "manage_users",
        ("GET", "/v1/admin/users"): "manage_users",
        ("GET", "/v1/admin/users/:id"): "manage_users",
        ("PATCH", "/v1/admin/users/:id"): "manage_users",
        ("DELETE", "/v1/admin/users/:id"): "manage_users",
        ("GET", "/v1/admin/users/by-external-id/:external_id"): "manage_users",
        ("POST", "/v1/admin/users/:id/suspend"): "manage_users",
        ("POST", "/v1/admin/users/:id/reactivate"): "manage_users",
        ("GET", "/v1/admin/users/:id/usage"): "view_usage",
        ("GET", "/v1/admin/users/usage/summary"): "view_usage",
        ("POST", "/v1/admin/credentials"): "manage_credentials",
        ("GET", "/v1/admin/credentials"): "manage_credentials",
        ("GET", "/v1/admin/credentials/:id"): "manage_credentials",
        ("PATCH", "/v1/admin/credentials/:id"): "manage_credentials",
        ("DELETE", "/v1/admin/credentials/:id"): "manage_credentials",
        ("POST", "/v1/admin/credentials/:id/rotate"): "manage_credentials",
        ("GET", "/v1/admin/credentials/:id/limits"): "manage_credentials",
        ("PUT", "/v1/admin/credentials/:id/limits"): "manage_credentials",
        ("GET", "/v1/admin/credentials/:id/restrictions"): "manage_credentials",
        ("PUT", "/v1/admin/credentials/:id/restrictions"): "manage_credentials",
        ("GET", "/v1/admin/credentials/:id/subscriptions"): "manage_credentials",
        ("GET", "/v1/admin/credentials/:id/webhooks"): "manage_credentials",
        ("GET", "/v1/admin/usage"): "view_usage",
        ("GET", "/v1/admin/usage/:id"): "view_usage",
        ("GET", "/v1/admin/usage/:id/breakdown"): "view_usage",
        ("GET", "/v1/admin/users/:id/usage/breakdown"): "view_usage",
        ("GET", "/v1/admin/usage/export"): "view_usage",
        ("GET", "/v1/admin/audit-logs"): "view_audit_logs",
        ("POST", "/v1/admin/admin-keys"): "bootstrap",
        ("GET", "/v1/admin/admin-keys"): "bootstrap",
        ("DELETE", "/v1/admin/admin-keys/:id"): "bootstrap",
    }


def test_a_list_of_keys_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = admin_keys.AdminKeyRecord(
        id=UUID(NOWHERE),
        entity_name="[red]Example\x1b Wallet",
        key_prefix="iiak_admin_abcd",
        permissions=ALL,
        is_bootstrap=False,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        last_used_at=None,
        revoked=False,
        revoked_at=None,
    )
    keys.show([record])
    piped = capsys.readouterr().out.splitlines()
    assert len(piped) == 2 and all(word in piped[1] for word in (NOWHERE, "[red]Example? Wallet", ",".join(ALL)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    keys.show([record])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(NOWHERE)
    assert max(map(len, shown)) <= 80
    assert shown[-1].endswith("created 2026-01-02T00:00:00Z, never used")
    used = msgspec.structs.replace(record, last_used_at=datetime(2026, 1, 3, tzinfo=UTC))
    revoked = msgspec.structs.replace(used, revoked=True, revoked_at=datetime(2026, 1, 4, tzinfo=UTC))
    for changed, state in ((used, "last used 2026-01-03T00:00:00Z"), (revoked, "revoked 2026-01-04T00:00:00Z")):
        keys.show([changed])
        assert capsys.readouterr().out.splitlines()[-1].endswith(f"created 2026-01-02T00:00:00Z, {state}")
    bootstrap = msgspec.structs.replace(record, is_bootstrap=True, key_prefix=tokens.admin_prefix_of(BOOTSTRAP_KEY))
    for key, shown_as in ((BOOTSTRAP_KEY, "bootstrap"), (None, "bootstrap, but BOOTSTRAP_ADMIN_KEY is another key")):
        keys.show([bootstrap], key)
        assert capsys.readouterr().out.splitlines()[2].strip().startswith(shown_as)
