"""Answers that Ogmios should never give, in place of a block."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from devnet.blocks import Block
from tests.chain.dump import differences
from tests.chain.harness import Json, Ledgerline, Node, Process, until
from tests.processes.preview import preview

# The index in the file of preview's first block with certificates: one transaction, four outputs.
BUSY = 16


def answer(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "nextBlock", "result": result, "id": None}).encode()


def changed(block: Json, **fields: Any) -> bytes:
    """The next block with other values; a value of ... removes the field."""
    merged = {key: value for key, value in (block | fields).items() if value is not ...}
    tip = {"slot": block["slot"], "id": block["id"], "height": block["height"]}
    return answer({"direction": "forward", "block": merged, "tip": tip})


def with_transaction(block: Json, **fields: Any) -> bytes:
    tx = {key: value for key, value in (block["transactions"][0] | fields).items() if value is not ...}
    return changed(block, transactions=[tx])


def with_output(block: Json, **fields: Any) -> bytes:
    outputs = deepcopy(block["transactions"][0]["outputs"])
    outputs[0] = {key: value for key, value in (outputs[0] | fields).items() if value is not ...}
    return with_transaction(block, outputs=outputs)


def lovelace_of(block: Json) -> int:
    return int(block["transactions"][0]["outputs"][0]["value"]["ada"]["lovelace"])


def ada(lovelace: Any) -> Json:
    return {"ada": {"lovelace": lovelace}}


# Temporary or permanent faults of the node: the indexer may retry or end, but logs its position.
NONSENSE: dict[str, Callable[[Json], bytes]] = {
    "no JSON": lambda _: b'{"jsonrpc":"2.0","method":"nextBl',
    "not UTF-8": lambda _: b'{"jsonrpc":"2.0","method":"nextBlock\xff\xfe"}',
    "nothing": lambda _: b"",
    "a list": lambda _: b"[]",
    "null": lambda _: b"null",
    "no result": lambda _: b'{"jsonrpc":"2.0","method":"nextBlock","id":null}',
    "result null": lambda _: answer(None),
    "an error": lambda _: b'{"jsonrpc":"2.0","method":"nextBlock","error":{"code":-32603,"message":"oh"},"id":null}',
    "an empty error": lambda _: b'{"jsonrpc":"2.0","method":"nextBlock","error":{},"id":null}',
    "unknown direction": lambda _: answer({"direction": "sideways", "tip": "origin"}),
    "no block": lambda _: answer({"direction": "forward", "tip": "origin"}),
    "backward to nowhere": lambda block: answer(
        {"direction": "backward", "point": {"slot": block["slot"] - 1, "id": "00" * 32}, "tip": "origin"}
    ),
    "backward beyond the tip": lambda _: answer(
        {"direction": "backward", "point": {"slot": 10**9, "id": "00" * 32}, "tip": "origin"}
    ),
    "wrong ancestor": lambda block: changed(block, ancestor="00" * 32),
    "no ancestor": lambda block: changed(block, ancestor=...),
    "no id": lambda block: changed(block, id=...),
    "id no hex": lambda block: changed(block, id="zz" * 32),
    "id too short": lambda block: changed(block, id="00" * 31),
    "no slot": lambda block: changed(block, slot=...),
    "slot negative": lambda block: changed(block, slot=-1),
    "slot text": lambda block: changed(block, slot="320"),
    "slot huge": lambda block: changed(block, slot=2**70),
    "slot beyond 48 bits": lambda block: changed(block, slot=2**48),
    "slot of the tip": lambda block: changed(block, slot=0),
    "height skipped": lambda block: changed(block, height=block["height"] + 1),
    "height huge": lambda block: changed(block, height=2**64),
    "transactions no list": lambda block: changed(block, transactions={}),
    "transaction no object": lambda block: changed(block, transactions=[7]),
    "transaction without id": lambda block: with_transaction(block, id=...),
    "transaction without inputs": lambda block: with_transaction(block, inputs=...),
    "transaction id no hex": lambda block: with_transaction(block, id="g" * 64),
    "unknown input": lambda block: with_transaction(block, inputs=[{"transaction": {"id": "11" * 32}, "index": 0}]),
    "input index negative": lambda block: with_transaction(
        block, inputs=[{"transaction": {"id": "11" * 32}, "index": -1}]
    ),
    "unbalanced by one": lambda block: with_output(block, value=ada(lovelace_of(block) + 1)),
    "an asset from nowhere": lambda block: with_output(block, value=ada(lovelace_of(block)) | {"22" * 28: {"abcd": 1}}),
    "lovelace negative": lambda block: with_output(block, value=ada(-1)),
    "lovelace huge": lambda block: with_output(block, value=ada(2**64)),
    "lovelace a fraction": lambda block: with_output(block, value=ada(0.5)),
    "lovelace missing": lambda block: with_output(block, value={}),
    "policy no hex": lambda block: with_output(block, value=ada(lovelace_of(block)) | {"policy": {"ab": 1}}),
    "address no address": lambda block: with_output(block, address="addr_test1"),
    "address missing": lambda block: with_output(block, address=...),
    "certificate without kind": lambda block: with_transaction(block, certificates=[{}]),
    "pool without parameters": lambda block: with_transaction(
        block, certificates=[{"type": "stakePoolRegistration", "stakePool": {}}]
    ),
}


class Scene:
    """A node, and an indexer with its blocks except the last; each test restores this state."""

    def __init__(self, ledgerline: Ledgerline, node: Node, blocks: list[Block]) -> None:
        self.ledgerline, self.node, self.blocks = ledgerline, node, blocks
        self.process = ledgerline.start_indexer("preview", node.url)
        self.reaches(BUSY + 9)
        self.straight = ledgerline.dump("preview")

    def reaches(self, index: int) -> None:
        if has_ended(self.process):
            self.process = self.ledgerline.start_indexer("preview", self.node.url)
        block = self.blocks[index]
        self.ledgerline.reaches("preview", {"slot": block.slot, "id": block.id}, self.process)

    def has(self, index: int) -> bool:
        return self.ledgerline.tip_is("preview", {"id": self.blocks[index].id})

    def extend(self, first: int, last: int) -> None:
        self.node.do(self.node.server.extend, self.blocks[first : last + 1])

    def shorten(self, last: int) -> None:
        self.node.do(self.node.server.fork, last, [])


@pytest.fixture(scope="module")
def scene(new_ledgerline: Callable[[], Ledgerline]) -> Iterator[Scene]:
    chain = preview(BUSY + 10)
    with Node(chain) as node:
        made = Scene(new_ledgerline(), node, list(chain.blocks))
        yield made
        made.process.kill()


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_logged_and_leaves_no_trace(scene: Scene, nonsense: Callable[[Json], bytes]) -> None:
    """The indexer ends or retries, and logs the nearest point. The index is not affected."""
    scene.shorten(BUSY - 2)
    scene.reaches(BUSY - 2)
    said = len(scene.process.output())
    scene.node.do(scene.node.server.inject, nonsense(scene.blocks[BUSY].decoded()))
    # The waiting request gets a new block, the next one the injected answer.
    scene.extend(BUSY - 1, BUSY - 1)
    near = scene.blocks[BUSY - 2 : BUSY + 1]
    until("the point is named", lambda: complaints(scene.process.output()[said:], near))
    assert "Traceback" not in scene.process.output()[said:]
    assert scene.has(BUSY - 2) or scene.has(BUSY - 1)
    scene.extend(BUSY, BUSY + 9)
    until("it tries again or ends", lambda: has_ended(scene.process) or scene.has(BUSY + 9))
    assert scene.process.popen.returncode in (None, 1)
    scene.reaches(BUSY + 9)
    assert differences(scene.straight, scene.ledgerline.dump("preview")) == []


def complaints(output: str, blocks: list[Block]) -> list[str]:
    """Warnings and errors that name the slot or the hash of one of these blocks."""
    names = [name for block in blocks for name in (str(block.slot), block.id)]
    lines = [line for line in output.splitlines() if any(name in line for name in names)]
    return [line for line in lines if not line.startswith("{") or json.loads(line)["level"] not in ("debug", "info")]


def has_ended(process: Process) -> bool:
    return process.popen.poll() is not None
