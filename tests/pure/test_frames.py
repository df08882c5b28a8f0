"""Valid JSON from Ogmios that a decoder might reject."""

import json
from typing import Any

import msgspec
import pytest

from indexer.ogmios import frames

PLAIN: dict[str, Any] = {"674": {"cbor": "a0", "json": {"msg": ['a "quoted" [text] with { brackets \\']}}}


def frame(**parts: str) -> bytes:
    """A block whose only transaction has these parts, in raw JSON."""
    tx = {"id": "01" * 32, "spends": "inputs", "inputs": [], "outputs": [], "fee": {"ada": {"lovelace": 7}}}
    members = [*(f'"{name}":{json.dumps(value)}' for name, value in tx.items())]
    members += [f'"{name}":{text}' for name, text in parts.items()]
    block = {"type": "praos", "era": "conway", "id": "02" * 32, "ancestor": "03" * 32, "height": 5, "slot": 6}
    text = json.dumps(block)[:-1] + ',"transactions":[{' + ",".join(members) + "}]}"
    tip = json.dumps({"slot": 6, "id": "02" * 32, "height": 5})
    return f'{{"result":{{"direction":"forward","block":{text},"tip":{tip}}}}}'.encode()


class Header(msgspec.Struct):
    """What the test reads of a block."""

    height: int


def only(raw: bytes) -> frames.Transaction:
    """The transaction of a frame."""
    answer = frames.read(raw)
    assert isinstance(answer, frames.NextBlock) and answer.block is not None
    (tx,) = answer.block.transactions
    return tx


@pytest.mark.parametrize("depth", [100, 500, 3_000, 40_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"list":[', "]}"), ('{"clause":"all","from":[', "]}")])
def test_deep_nesting_does_not_stop_the_decoder(opening: str, closing: str, depth: int) -> None:
    nested = opening * depth + '"[{"' + closing * depth
    labels = f'{{"labels":{{"1":{{"cbor":"81","json":{nested}}},{json.dumps(PLAIN)[1:]}}}'
    raw = frame(metadata=labels, scripts=f'{{"aa":{{"json":{nested},"language":"native"}}}}', cbor='"0102"')
    tx = only(raw)
    assert tx.fee == {"ada": {"lovelace": 7}} and bytes(tx.cbor) == b'"0102"' and tx.metadata is not None
    assert tx.metadata.labels["1"].cbor == "81"
    assert json.loads(bytes(tx.metadata.labels["674"].json)) == PLAIN["674"]["json"]
    assert msgspec.json.decode(frames.raw_block(raw), type=Header).height == 5  # `json` may refuse this depth


def test_invalid_json_is_unreadable_at_any_depth() -> None:
    for broken in (b"[" * 50_000, frame()[:-5], frame(metadata="[" * 5_000)):
        with pytest.raises(frames.Unreadable):
            frames.read(broken)


def test_a_lone_surrogate_below_deep_nesting_is_replaced() -> None:
    nested = "[" * 2_000 + "]" * 2_000
    tx = only(frame(metadata=f'{{"labels":{{"1":{{"json":["\\ud800",{nested}]}}}}}}'))
    assert tx.metadata is not None and json.loads(bytes(tx.metadata.labels["1"].json))[0] == "?"


def test_a_block_with_a_lone_surrogate_can_be_recorded() -> None:
    raw = frames.raw_block(frame(metadata='{"labels":{"1":{"json":"\\ud800"}}}'))
    (tx,) = json.loads(raw.decode())["transactions"]
    assert tx["metadata"]["labels"]["1"]["json"] == "?"
