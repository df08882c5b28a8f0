"""The guides say what the program does."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import errors
from api.routes import ROUTES
from clients import generate

CHECKOUT = Path(__file__).parents[2]
GUIDE = (CHECKOUT / "docs/http-api.md").read_text()


def test_the_page_shows_the_example() -> None:
    example = (CHECKOUT / "clients/python/examples/pay_with_pycardano.py").read_text()
    page = (CHECKOUT / "docs/pay-with-pycardano.md").read_text()
    program = example[example.index("import os") :]
    assert f"<<'END'\n{program}END\n" in page


def test_the_guide_lists_the_pages_of_the_console() -> None:
    script = (CHECKOUT / "api/static/console/console.js").read_text()
    names = {name for _, name in re.findall(r'\["([\w-]*)", "([^"]+)", \w', script)}
    guide = (CHECKOUT / "docs/console.md").read_text()
    assert len(names) > 5
    assert names == set(re.findall(r"^\| ([A-Z][\w ]+) \|", guide, flags=re.MULTILINE))


def test_the_list_of_endpoints_has_exactly_the_routes_and_their_keys() -> None:
    keys = {"open": "none", "bootstrap": "bootstrap", "api key": "API key"}
    rows = generate.ENDPOINTS.read_text()
    listed = re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \| (.+) \| \w.+ \|$", rows, flags=re.MULTILINE)
    expected = []
    for route in ROUTES:
        key = keys.get(route.access, f"admin, `{route.access}`")
        expected.append((route.method, route.path, f"{key}, `{route.scope}`" if route.scope else key))
    assert sorted(listed) == sorted(expected)


def test_the_guide_names_the_scope_of_every_path() -> None:
    section = GUIDE.split("### Scopes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, flags=re.MULTILINE)
    listed = [(scope, prefix) for scope, prefixes in rows for prefix in re.findall("`([^`]+)`", prefixes)]
    used = set()
    for route in ROUTES:
        named = {pair for pair in listed if f"{route.path}/".startswith(f"{pair[1]}/")}
        assert {scope for scope, _ in named} == ({route.scope} if route.scope else set()), route.path
        used |= named
    assert used == set(listed)


def refusals() -> Iterator[errors.Refusal]:
    """Every refusal of errors.py, with the name of each of its parts in angle brackets."""
    for _, make in inspect.getmembers(errors, inspect.isfunction):
        parts = [f"<{part}>" for part in inspect.signature(make).parameters]
        if make.__module__ == errors.__name__ and parts != ["<message>"]:
            yield make(*parts)


@pytest.mark.parametrize("refusal", list(refusals()), ids=lambda refusal: refusal.message)
def test_the_guide_lists_every_refusal(refusal: errors.Refusal) -> None:
    assert re.search(rf"^\| {refusal.status} \| .*`{re.escape(refusal.message)}`.* \|$", GUIDE, flags=re.MULTILINE)
