"""`python -m clients.generate`: write what follows from the table of routes: the clients and the list of endpoints."""

import subprocess
import sys
from pathlib import Path

from api.reference.openapi import Json, document
from api.route import Route
from api.routes import ROUTES
from clients import generate_python, generate_typescript

CHECKOUT = Path(__file__).parents[1]
PYTHON = CHECKOUT / "clients" / "python" / "ledgerline_client"
TYPESCRIPT = CHECKOUT / "clients" / "typescript" / "src"
ENDPOINTS = CHECKOUT / "docs" / "endpoints.md"


def files() -> dict[Path, str]:
    """The text of each generated file."""
    described = document(ROUTES, {})
    sending = (PYTHON / "async_http.py").read_text()
    python = {
        PYTHON / name: _formatted(text, PYTHON / name)
        for name, text in generate_python.files(described, sending).items()
    }
    typescript = {TYPESCRIPT / name: text for name, text in generate_typescript.files(described).items()}
    return {**python, **typescript, ENDPOINTS: _endpoints(described)}


def _endpoints(described: Json) -> str:
    """The page for partners that lists every endpoint, with the key that it takes."""
    rows = []
    for route in ROUTES:
        summary = described["paths"][route.path][route.method.lower()]["summary"]
        rows.append(f"| {route.method} | `{route.path}` | {_key_of(route)} | {summary} |\n")
    return f"{_ENDPOINTS_HEAD}{''.join(rows)}"


_ENDPOINTS_HEAD = """\
<!-- Written by `python -m clients.generate` from api/routes.py. -->

# Endpoints

[The HTTP API](http-api.md) explains keys, [scopes](http-api.md#scopes) and answers. `/docs` of a running service shows
every parameter and field.

| | path | key | |
|---|---|---|---|
"""


def _key_of(route: Route) -> str:
    """The key that a route takes, with the scope or the permission that it must have."""
    if route.access == "api key":
        return f"API key, `{route.scope}`" if route.scope else "API key"
    return {"open": "none", "bootstrap": "bootstrap"}.get(route.access, f"admin, `{route.access}`")


def _formatted(text: str, path: Path) -> str:
    """Python as the project writes it, without unused imports."""
    for command in (["check", "--fix-only", "--unsafe-fixes", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
