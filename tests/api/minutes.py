"""Shared by the tests of limits: a key with a limit, and a shorter minute."""

from uuid import uuid4

import pytest

from api.keys.limits import local, scripts, state
from api.keys.limits.verdicts import GoodKey, RunningQuota


def good_key(limit: int = 10_000, quota: RunningQuota | None = None) -> GoodKey:
    """A key as Postgres returns it."""
    return GoodKey(uuid4(), 1, limit, None, quota)


def shorten_minute(monkeypatch: pytest.MonkeyPatch, window_s: float) -> None:
    """Shorten the minute, both in Valkey and in the processes."""
    for name in ("TAKE", "BEAT"):
        text = getattr(scripts, name).text.decode()
        assert "60000000" in text, name
        monkeypatch.setattr(scripts, name, scripts.Script(text.replace("60000000", str(int(window_s * 1e6)))))
    for module in (local, state):
        monkeypatch.setattr(module, "MINUTE_S", window_s)
