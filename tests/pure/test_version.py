"""The version is stated in shared/version.py; files that no program of ours reads repeat it."""

import re
import tomllib
from pathlib import Path

from shared.version import VERSION

ROOT = Path(__file__).parents[2]


def test_files_that_repeat_the_version_agree_with_it() -> None:
    assert tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())["project"]["version"] == VERSION
    assert f"${{LEDGERLINE_VERSION:-{VERSION}}}" in (ROOT / "compose.yaml").read_text()
    assert f"\n| {VERSION} | " in (ROOT / "docs" / "upgrades.md").read_text(), "whether it needs a resync"
    newest = re.search(r"^## (?!Unreleased)(\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest is not None and newest[1] == VERSION
