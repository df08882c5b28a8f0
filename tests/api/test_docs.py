"""The pages at / and /docs send nothing to another origin, and find every file that they name."""

import re
from pathlib import Path

import pytest

from tests.api.client import Client

STATIC = Path(__file__).parents[2] / "api" / "static"


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
