"""Ogmios' own golden answers, of 6.14 and 7.0: arbitrary blocks of every era, made to exercise its encoders."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexer import frames
from tests.chain.harness import SHARED

FILES = sorted((SHARED / "ogmios" / "answers").glob("v*/NextBlockResponse/*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="Ogmios' golden answers are not beside the checkout")


def test_both_versions_and_all_eras_have_golden_blocks() -> None:
    blocks = [json.loads(path.read_bytes())["result"].get("block", {}) for path in FILES]
    eras = {"byron", "shelley", "allegra", "mary", "alonzo", "babbage", "conway"}
    assert {path.parents[1].name for path in FILES} == {"v6.14", "v7.0"}
    assert {block["era"] for block in blocks if block} == eras


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_golden_answer_decodes_to_what_it_says(path: Path) -> None:
    raw = path.read_bytes()
    disagree = list(disagreements(frames.read(raw), json.loads(raw)["result"], "result"))
    assert not disagree


def disagreements(decoded: Any, said: Any, where: str) -> list[str]:
    """Where a decoded Struct differs from the JSON that it was read from; what it leaves out does not count."""
    if isinstance(decoded, msgspec.Raw):
        return [] if not bytes(decoded) else disagreements(json.loads(bytes(decoded)), said, where)
    if isinstance(decoded, msgspec.Struct):
        names = zip(decoded.__struct_fields__, decoded.__struct_encode_fields__, strict=True)
        fields = {in_json: getattr(decoded, field) for field, in_json in names}
        return [
            line
            for name, value in fields.items()
            if name in said
            for line in disagreements(value, said[name], f"{where}.{name}")
        ]
    if isinstance(decoded, dict) and isinstance(said, dict) and decoded.keys() == said.keys():
        return [line for key in said for line in disagreements(decoded[key], said[key], f"{where}.{key}")]
    if isinstance(decoded, list) and isinstance(said, list) and len(decoded) == len(said):
        pairs = enumerate(zip(decoded, said, strict=True))
        return [line for i, (ours, theirs) in pairs for line in disagreements(ours, theirs, f"{where}[{i}]")]
    return [] if decoded == said else [f"{where}: {decoded!r} for {said!r}"]
