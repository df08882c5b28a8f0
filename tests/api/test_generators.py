"""Third-party generators of clients accept all of /openapi.json, without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from api.reference.openapi import document
from api.routes import ROUTES
from tests import programs
from tests.patience import PATIENCE_S

OPERATIONS = {route.operation for route in ROUTES}
RECEIVED = {"receive_event"}  # of the section `webhooks`: a client has its types, and nothing to call


@pytest.fixture
def openapi_json(tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(msgspec.json.encode(document(ROUTES, {})))
    return path


def output_of(*command: str, folder: Path) -> str:
    """The output of a generator."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_openapi_python_client_generates_every_operation(openapi_json: Path, tmp_path: Path) -> None:
    # NOTE: in a separate environment, because it requires an older typer than ours.
    scripts = tmp_path / "venv" / "bin"
    programs.install(*programs.new_environment(tmp_path / "venv"), folder=tmp_path)
    programs.install(*programs.pip_install(scripts / "python"), "openapi-python-client==0.29.1", folder=tmp_path)
    shown = output_of(
        str(scripts / "openapi-python-client"),
        "generate",
        "--path",
        str(openapi_json),
        "--meta",
        "none",
        "--output-path",
        "client",
        "--fail-on-warning",
        folder=tmp_path,
    )
    assert "warning" not in shown.lower(), shown
    modules = {path.stem for path in (tmp_path / "client" / "api").glob("*/*.py")} - {"__init__"}
    assert modules == OPERATIONS


@programs.needs("npm")
def test_generators_for_typescript_generate_every_operation(openapi_json: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "generated", "private": true, "type": "module"}')
    packages = ("openapi-typescript@7.13.0", "@hey-api/openapi-ts@0.99.0", "typescript@5.9.3")
    programs.install("npm", "install", "--silent", "--no-audit", "--no-fund", *packages, folder=tmp_path)
    scripts = tmp_path / "node_modules" / ".bin"

    shown = output_of(str(scripts / "openapi-typescript"), str(openapi_json), "-o", "types.ts", folder=tmp_path)
    assert "warn" not in shown.lower(), shown
    types = (tmp_path / "types.ts").read_text()
    assert set(re.findall(r"^    (\w+): \{$", types.partition("export interface operations")[2], re.MULTILINE)) == (
        OPERATIONS | RECEIVED
    )

    shown = output_of(str(scripts / "openapi-ts"), "-i", str(openapi_json), "-o", "sdk", folder=tmp_path)
    assert "warn" not in shown.lower(), shown
    functions = set(re.findall(r"^export const (\w+) =", (tmp_path / "sdk" / "sdk.gen.ts").read_text(), re.MULTILINE))
    assert functions == {_camel_case(operation) for operation in OPERATIONS}
    output_of(str(scripts / "tsc"), "--noEmit", "--strict", "--skipLibCheck", "types.ts", folder=tmp_path)


def _camel_case(words: str) -> str:
    first, *others = words.split("_")
    return first + "".join(word.capitalize() for word in others)
