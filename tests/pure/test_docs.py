"""The developers' pages name only existing files and words of the code."""

import re
from itertools import chain
from pathlib import Path

import pytest

from tests import programs

ROOT = Path(__file__).parents[2]
PAGES = ("docs/adding-things.md", "docs/how-it-works.md")
SOURCES = ("api", "clients", "devnet", "indexer", "shared", "tests")
FOLDERS = [
    ROOT,
    *(
        path
        for name in ("api", "docs", "indexer", "shared", "tests")
        for path in (ROOT / name).rglob("")
        if path.is_dir()
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(\w[\w./*-]+(?:/|\.(?:py|sql|lua|md|js|toml|yaml|json)))`", (ROOT / page).read_text()))
    assert len(named) > 20
    exact = [each for each in named if "NNNN" not in each]
    missing = [each for each in exact if not any(any(folder.glob(each.rstrip("/"))) for folder in FOLDERS)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_identifier_that_a_page_names_exists(page: str) -> None:
    words = set(re.findall(r"`_?(?:\w+\.)?(\w*[a-z]\w*)`", (ROOT / page).read_text()))
    files = chain.from_iterable((ROOT / folder).rglob("*.*") for folder in SOURCES)
    text = "\n".join(
        path.read_text()
        for path in (ROOT / "schema.sql", *files)
        if path.suffix in (".py", ".sql", ".js", ".lua") and "node_modules" not in path.parts
    )
    known = set(re.findall(r"\w+", text))
    assert len(words) > 20
    assert [each for each in sorted(words) if not known & {each, f"_{each}"}] == []


def test_the_readme_names_every_package_that_adds_tests() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [package for _, package in programs.NAMES.values() if f"`{package}`" not in readme] == []


def test_the_index_of_decisions_has_each_with_what_supersedes_it() -> None:
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        text = path.read_text()
        ((number, title),) = re.findall(r"^# (\d+)\. (.+)$", text, re.MULTILINE)
        head = text.split("\n## ")[0]
        by = [
            link
            for note in re.findall(r"^Partly superseded by .*?(?=\n\n|\Z)", head, re.MULTILINE | re.DOTALL)
            for link in re.findall(r"\[\d+\]\([^)]+\)", note)
        ]
        status = f"in part superseded by {', '.join(by)}" if by else "in force"
        rows.append(f"| {number} | [{title}]({path.name}) | {status} |")
    index = (ROOT / "docs" / "decisions" / "README.md").read_text().splitlines()
    assert len(rows) > 60
    assert [line for line in index if re.match(r"\| \d", line)] == rows
