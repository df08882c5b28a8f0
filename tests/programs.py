"""Programs that some tests need, and that a clone does not install."""

import shutil

import pytest

NAMES = {
    "chromium": ("Chromium", "chromium"),
    "npm": ("Node.js with npm", "nodejs npm"),
    "promtool": ("promtool of Prometheus", "prometheus"),
    "pgbouncer": ("PgBouncer", "pgbouncer"),
    "redis-server": ("a redis-server with TLS", "redis-server"),
    "docker-compose": ("docker-compose", "docker-compose"),
    "systemd-analyze": ("systemd-analyze", "systemd"),
}
"""By program, its name for people and the package of Debian and Ubuntu."""


def needs(program: str) -> pytest.MarkDecorator:
    """Skips a test, or all tests of a module, without the program."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=_reason(program))


def found(program: str) -> str:
    """The path of the program. Skips the test without it."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(_reason(program))
    return path


def _reason(program: str) -> str:
    name, package = NAMES[program]
    return f"needs {name} (`apt-get install {package}`)"
