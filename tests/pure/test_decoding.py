"""Answers of Ogmios to `nextBlock` are decoded completely."""

import msgspec
import pytest

from tests.chain.decoding import check_next_block
from tests.chain.ogmios import VERSIONS, answers, recorded_answers


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_is_decoded(version: tuple[int, int]) -> None:
    told = [answer for answer in answers(version) if answer["method"] == "nextBlock"]
    assert {answer["result"].get("block", {}).get("era") for answer in told} > {"byron", "shelley", "conway", None}
    for answer in told:
        check_next_block(msgspec.json.encode(answer))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_recorded_blocks_is_decoded(version: tuple[int, int]) -> None:
    for answer in recorded_answers(version, most=80):
        check_next_block(msgspec.json.encode(answer))
