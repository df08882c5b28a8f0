"""Programs that some tests need, and that a clone does not install."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

INSTALL_WITHIN_S = 400  # less than the limit of a whole test

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

NO_AUTHORITIES = {"SSL_CERT_FILE": os.devnull}
"""For the environment of our processes: each would read the machine's list of authorities, a tenth of its start."""


def needs(program: str) -> pytest.MarkDecorator:
    """Skips a test, or all tests of a module, without the program."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=_reason(program))


def found(program: str) -> str:
    """The path of the program. Skips the test without it."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(_reason(program))
    return path


def install(*command: str, folder: Path) -> None:
    """Install packages from an index. Skips the test if that fails, as without a connection."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"needs packages, which {command[0]} has not installed within {INSTALL_WITHIN_S} s")
    if done.returncode != 0:
        pytest.skip(f"needs packages, which {command[0]} does not install here: {done.stderr.strip()[-200:]}")


# An environment that uv has made has no pip.
_PIP_IS_HERE = find_spec("pip") is not None


def new_environment(folder: Path) -> tuple[str, ...]:
    """The command that makes an environment of Python. To install pip in it takes 3 s of a core."""
    return (sys.executable, "-m", "venv", *(("--without-pip",) if _PIP_IS_HERE else ()), str(folder))


def pip_install(python: Path) -> tuple[str, ...]:
    """The command that installs packages in such an environment. Python compiles what a test uses of them."""
    ours = (sys.executable, "-m", "pip", "--python", str(python)) if _PIP_IS_HERE else (str(python), "-m", "pip")
    return (*ours, "install", "--quiet", "--no-compile")


def _reason(program: str) -> str:
    name, package = NAMES[program]
    return f"needs {name} (`apt-get install {package}`)"
