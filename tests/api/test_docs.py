"""The pages at / and /docs send nothing to another origin, and docs/http-api.md is true."""

import hashlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import errors
from api.routes import ROUTES
from clients import generate
from tests.api.client import Client

STATIC = Path(__file__).parents[2] / "api" / "static"


@pytest.mark.parametrize("library", ["preact", "htm", "uplot", "pico"])
def test_the_vendored_files_are_the_published_ones(library: str) -> None:
    folder = STATIC / library
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in (line.split() for line in lines)}
    assert listed.keys() == {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    for name, checksum in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name


@pytest.mark.parametrize("path", ["/", "/docs", "/status", "/console"])
async def test_a_page_may_not_contact_another_origin(api: Client, path: str) -> None:
    reply = await api.get(path)
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/html;charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert b"//" not in reply.body.replace(b"<!doctype html>", b"")
    assert b"<script>" not in reply.body
    assert b"style=" not in reply.body


@pytest.mark.parametrize(("page", "names"), [("/", 11), ("/docs", 9), ("/status", 10), ("/console", 10)])
async def test_every_file_of_a_page_is_served(api: Client, page: str, names: int) -> None:
    named = re.findall(r'(?:src|href)="(/[^"]+)"', (await api.get(page)).body.decode())
    assert len(named) == names
    for path in named:
        reply = await api.get(path)
        assert reply.status != 404, path  # an API without a network is not ready, and says so
        if path.startswith("/docs/"):
            assert reply.headers["Content-Type"] in ("text/javascript;charset=utf-8", "text/css;charset=utf-8")
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert len(reply.body) > 10


@pytest.mark.parametrize("folder", ["shared", "reference", "status", "console"])
async def test_every_module_of_ours_is_served_and_checked_for_changes(api: Client, folder: str) -> None:
    for module in (STATIC / folder).glob("*.js"):
        reply = await api.get(f"/docs/{module.name}")
        assert reply.headers["Cache-Control"] == "no-cache"
        assert module.read_bytes() == reply.body
        for imported in re.findall(r'from "\./([^"]+)"', reply.body.decode()):
            assert (await api.get(f"/docs/{imported}")).status == 200, (module.name, imported)


def test_the_guide_lists_the_pages_of_the_console() -> None:
    script = (STATIC / "console" / "console.js").read_text()
    names = {name for _, name in re.findall(r'\["([\w-]*)", "([^"]+)", \w', script)}
    guide = (STATIC.parents[1] / "docs" / "console.md").read_text()
    assert len(names) > 5
    assert names == set(re.findall(r"^\| ([A-Z][\w ]+) \|", guide, flags=re.MULTILINE))


GUIDE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text()


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
