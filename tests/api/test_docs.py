"""The page at /docs: vendored as published, and nothing of it leaves its origin."""

import hashlib
import re
from pathlib import Path

from tests.api.client import Client

STATIC = Path(__file__).parents[2] / "api" / "static"


def test_the_vendored_files_are_those_that_were_published() -> None:
    folder = STATIC / "swagger-ui"
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in (line.split() for line in lines)}
    assert listed.keys() == {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    for name, checksum in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name


async def test_the_page_may_not_talk_to_another_origin(api: Client) -> None:
    reply = await api.get("/docs")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/html;charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert b"//" not in reply.body.replace(b"<!doctype html>", b"")
    assert b"<script>" not in reply.body
    assert b"style=" not in reply.body


async def test_everything_that_the_page_names_is_served(api: Client) -> None:
    page = (await api.get("/docs")).body.decode()
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert len(named) == 5
    for path in named:
        reply = await api.get(path)
        assert reply.status == 200, path
        if path.startswith("/docs/"):
            assert reply.headers["Content-Type"] in ("text/javascript;charset=utf-8", "text/css;charset=utf-8")
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert len(reply.body) > 10


async def test_the_page_asks_no_validator(api: Client) -> None:
    assert b"validatorUrl: null" in (await api.get("/docs/docs.js")).body
