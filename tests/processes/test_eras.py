"""A node with a different clock stops the indexer; one that can't report its clock is accepted."""

from typing import Any

import msgspec
import pytest

from devnet.blocks import Chain
from devnet.refusal import Refusal
from devnet.session import Session
from tests.chain.harness import Ledgerline, Node, Rewardless
from tests.chain.scripted import Scripted


class Differing(Rewardless):
    """A node that answers some queries differently."""

    def __init__(self, chain: Chain, answers: dict[str, Any]) -> None:
        super().__init__(chain)
        self._answers = answers

    def query(self, session: Session, method: str, params: msgspec.Raw) -> Any:
        if method not in self._answers:
            return super().query(session, method, params)
        answer = self._answers[method]
        if isinstance(answer, Refusal):
            raise answer
        return answer


def differing(**answers: Any) -> Node:
    chain = Scripted()
    chain.block(7)
    node = Node(chain)
    node.server = Differing(chain, {f"query{name.replace('_', '/')}": answer for name, answer in answers.items()})
    return node


def test_other_slots_stop_the_indexer_and_are_named(ledgerline: Ledgerline) -> None:
    era = {
        "start": {"time": {"seconds": 0}, "slot": 0, "epoch": 0},
        "parameters": {"epochLength": 43_200, "slotLength": {"milliseconds": 1_000}, "safeZone": 129_600},
    }
    with differing(LedgerState_eraSummaries=[era]) as node, ledgerline.indexing("preview", node.url) as process:
        assert process.ends() == 1
        assert "from slot 0 an epoch has 43200 slots of 1.0 s, not 86400 of 1 s" in process.output()


def test_another_start_stops_the_indexer_and_is_named(ledgerline: Ledgerline) -> None:
    with (
        differing(Network_startTime="2017-09-23T21:44:51Z") as node,
        ledgerline.indexing("preview", node.url) as process,
    ):
        assert process.ends() == 1
        assert "2017-09-23 21:44:51+00:00, preview began 2022-10-25" in process.output()


@pytest.mark.parametrize("asked", ["Network_startTime", "LedgerState_eraSummaries"])
def test_a_node_that_cannot_report_its_eras_is_followed(ledgerline: Ledgerline, asked: str) -> None:
    refusal = Refusal(-32601, "Unknown method.")
    with differing(**{asked: refusal}) as node, ledgerline.indexing("preview", node.url) as process:
        ledgerline.reaches("preview", node.tip(), process)
        process.says("eras.unknown", "Unknown method.")
