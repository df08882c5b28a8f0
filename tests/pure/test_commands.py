"""Command lines."""

import subprocess
import sys

import pytest

from shared import schema
from shared.version import VERSION
from tests.chain.harness import ROOT
from tests.patience import PATIENCE_S


def test_the_guide_has_every_command() -> None:
    guide = (ROOT / "docs" / "operations.md").read_text()
    for program in ("api", "indexer"):
        listing = (
            f"import typer.main as main; from {program}.__main__ import commands;"
            "top = main.get_command(commands).commands;"
            "print(*(f'{name} {each}'.strip() for name, group in top.items()"
            " for each in getattr(group, 'commands', None) or ['']), sep='\\n')"
        )
        listed = subprocess.run(
            [sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        commands = listed.stdout.splitlines()
        assert len(commands) > 4
        assert [each for each in commands if f"`python -m {program} {each}" not in guide] == []


def test_every_command_line_shows_its_version() -> None:
    for program in ("api", "indexer"):
        command = [sys.executable, "-m", program, "--version"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (told.returncode, told.stdout) == (0, f"ledgerline {VERSION}, schema version {schema.VERSION}\n")


_EVERY_COMMAND = """
import contextlib, io, sys, typer.main
from PROGRAM.__main__ import commands
from shared import command

def paths(of):
    for name, each in getattr(of, "commands", {}).items():
        yield from ([name, *under] for under in [[], *paths(each)])

for path in paths(typer.main.get_command(commands)):
    for wrong in ("--nonsense", "--from-slot=x", "--network=x"):
        sys.argv = ["PROGRAM", *path, wrong]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                command.run(commands)
            except SystemExit as ended:
                print(ended.code, said.getvalue().count("\\n"), *path, wrong, said.getvalue().strip())
"""


@pytest.mark.parametrize("program", ["api", "indexer"])
def test_a_wrong_argument_is_refused_in_one_line(program: str) -> None:
    command = [sys.executable, "-c", _EVERY_COMMAND.replace("PROGRAM", program)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    lines = told.stdout.splitlines()
    assert len(lines) > 20, told
    assert [line for line in lines if not line.startswith("2 1 ")] == []
    if program == "indexer":
        assert "2 1 resync --network=x --network is 'x', expected one of mainnet, preview, preprod" in lines
