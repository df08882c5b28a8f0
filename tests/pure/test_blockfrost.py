"""The façade's page and its refusals agree with its routes."""

import re
from pathlib import Path

from api.blockfrost import shape
from api.blockfrost.not_answered import POSTED, REASONS
from api.blockfrost.routes import FACADE
from api.blockfrost.shape import ROOT
from api.reference.openapi import refusals_of
from tests.blockfrost_schemas import DOCUMENT, plain

PAGE = (Path(__file__).parents[2] / "docs" / "blockfrost.md").read_text()


def test_the_page_lists_exactly_the_answered_and_the_refused_paths() -> None:
    """docs/blockfrost.md names parameters as Blockfrost's document does, and says `{number}` for `latest`, too."""
    listed = re.findall(r"^\| (GET|POST) \| `([^`]+)` \| (.+) \|$", PAGE, flags=re.MULTILINE)
    assert {path for _, path, _ in listed} <= DOCUMENT["paths"].keys()
    refused = [("POST" if path in POSTED else "GET", path, reason) for path, reason in REASONS.items()]
    assert [each for each in listed if each[1] in REASONS] == refused
    answered = [
        (route.method, plain(route.path.removeprefix(ROOT)), route.scope or "none")
        for route in FACADE
        if route.handler.__module__ != "api.blockfrost.not_answered"
    ]
    assert [(method, plain(path), scope) for method, path, scope in listed if path not in REASONS] == answered


def test_every_not_found_refusal_has_blockfrosts_message() -> None:
    for route in FACADE:
        for refusal in refusals_of(route):
            if refusal.code.endswith("_not_found"):
                status, body = shape.failure(refusal)
                assert status == 404 and b"The requested component has not been found." in body, refusal.code
