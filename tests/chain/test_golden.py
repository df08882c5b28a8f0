"""Ogmios' own golden answers, of 6.14 and 7.0: arbitrary blocks of every era, generated to test its encoders."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexer.ogmios import frames
from tests.chain.harness import SHARED

FILES = sorted((SHARED / "ogmios" / "answers").glob("v*/NextBlockResponse/*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="Ogmios' golden answers are not beside the checkout")


def test_both_versions_and_all_eras_have_golden_blocks() -> None:
    blocks = [json.loads(path.read_bytes())["result"].get("block", {}) for path in FILES]
    eras = {"byron", "shelley", "allegra", "mary", "alonzo", "babbage", "conway"}
    assert {path.parents[1].name for path in FILES} == {"v6.14", "v7.0"}
    assert {block["era"] for block in blocks if block} == eras


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_golden_answer_is_completely_decoded(path: Path) -> None:
    raw = path.read_bytes()
    disagree = list(disagreements(frames.read(raw), json.loads(raw)["result"], "result"))
    assert not disagree


def disagreements(decoded: Any, said: Any, where: str) -> list[str]:
    """The differences of a decoded Struct from its JSON, except for fields that the Struct lacks."""
    if isinstance(decoded, msgspec.Raw):
        return [] if not bytes(decoded) else disagreements(json.loads(bytes(decoded)), said, where)
    parts = _parts(decoded, said)
    if parts is None:
        return [] if decoded == said else [f"{where}: {decoded!r} for {said!r}"]
    return [line for name, ours, theirs in parts for line in disagreements(ours, theirs, f"{where}{name}")]


def _parts(decoded: Any, said: Any) -> list[tuple[str, Any, Any]] | None:
    """The parts of a value by name, decoded and in JSON; None for a value that is compared as a whole."""
    if isinstance(decoded, msgspec.Struct):
        names = zip(decoded.__struct_fields__, decoded.__struct_encode_fields__, strict=True)
        return [(f".{in_json}", getattr(decoded, name), said[in_json]) for name, in_json in names if in_json in said]
    if isinstance(decoded, dict) and isinstance(said, dict) and decoded.keys() == said.keys():
        return [(f".{key}", decoded[key], said[key]) for key in said]
    if isinstance(decoded, list) and isinstance(said, list) and len(decoded) == len(said):
        return [(f"[{place}]", *pair) for place, pair in enumerate(zip(decoded, said, strict=True))]
    return None
