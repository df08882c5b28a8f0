"""`python -m clients.generate`: write the parts of the clients that follow from the table of routes."""

import subprocess
import sys
from pathlib import Path

from api.reference.openapi import document
from api.routes import ROUTES
from clients import generate_python, generate_typescript

CHECKOUT = Path(__file__).parents[1]
PYTHON = CHECKOUT / "clients" / "python" / "ledgerline_client"
TYPESCRIPT = CHECKOUT / "clients" / "typescript" / "src"


def files() -> dict[Path, str]:
    """The text of each generated file."""
    described = document(ROUTES, {})
    sending = (PYTHON / "async_http.py").read_text()
    python = {
        PYTHON / name: _formatted(text, PYTHON / name)
        for name, text in generate_python.files(described, sending).items()
    }
    return python | {TYPESCRIPT / name: text for name, text in generate_typescript.files(described).items()}


def _formatted(text: str, path: Path) -> str:
    """Python as the project writes it, without unused imports."""
    for command in (["check", "--fix-only", "--unsafe-fixes", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
