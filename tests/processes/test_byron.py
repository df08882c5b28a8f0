"""Chains that begin in Byron: a node that is still in Byron, and epoch boundary blocks."""

import json

import pytest

from devnet.generator import Generated, options_of
from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Ledgerline, Node, until


def preprod(blocks: int) -> Generated:
    """The first blocks of a chain with few blocks per epoch and some Byron epochs."""
    return Generated(options_of("preprod", seed=5, density=3, blocks_per_epoch=10), blocks)


def test_the_indexer_waits_for_a_node_in_byron(ledgerline: Ledgerline, new_ledgerline: NewLedgerline) -> None:
    with Node(preprod(5)) as node:
        node.server.syncing = True
        assert node.server.blocks[-1].era == "byron"
        with ledgerline.indexing("preprod", node.url) as process:
            process.says("waiting", "genesis configurations", "2002")
            node.do(node.server.grow, 3)
            asked = node.server.requests["queryNetwork/genesisConfiguration"]
            until("it asks again", lambda: node.server.requests["queryNetwork/genesisConfiguration"] > asked + 2)
            assert ledgerline.rows("preprod", "SELECT FROM tip") == []
            while node.server.blocks[-1].era == "byron":
                node.do(node.server.grow, 1)
            ledgerline.reaches("preprod", node.tip(), process)
            process.says("reached", "genesis configurations")
            node.do(node.server.grow, 20)
            ledgerline.reaches("preprod", node.tip(), process)
        counted = "SELECT count(*) FROM genesis_output"
        genesis = node.server.chain.genesis
        outputs = len(genesis.byron_funds) + len(genesis.byron_vouchers) + len(genesis.shelley_funds)
        assert [tuple(row) for row in ledgerline.rows("preprod", counted)] == [(outputs,)]
        node.server.syncing = False
        straight = new_ledgerline()
        with straight.indexing("preprod", node.url) as process:
            straight.reaches("preprod", node.tip(), process)
        assert differences(straight.dump("preprod"), ledgerline.dump("preprod")) == []


@pytest.mark.parametrize("restarted", [False, True])
def test_only_one_block_may_share_the_slot_of_a_boundary_block(ledgerline: Ledgerline, *, restarted: bool) -> None:
    chain = preprod(60)
    boundary = next(place for place, block in enumerate(chain.blocks) if place and "slot" not in block.content)
    first = chain.blocks[boundary + 1]
    assert first.slot == chain.blocks[boundary].slot
    with Node(preprod(boundary + 1)) as node:
        process = ledgerline.start_indexer("preprod", node.url)
        try:
            ledgerline.reaches("preprod", node.tip(), process)
            if restarted:
                assert process.stop() == 0
                process = ledgerline.start_indexer("preprod", node.url)
            node.do(node.server.grow, 1)
            ledgerline.reaches("preprod", node.tip(), process)
            if restarted:
                assert process.stop() == 0
                process = ledgerline.start_indexer("preprod", node.url)
                process.says("follow.intersected")
            second = first.decoded() | {"id": "ab" * 32, "ancestor": first.id, "height": first.height + 1}
            tip = {"slot": first.slot, "id": second["id"], "height": second["height"]}
            result = {"direction": "forward", "block": second, "tip": tip}
            told = {"jsonrpc": "2.0", "method": "nextBlock", "result": result, "id": None}

            def show_second() -> None:
                node.server.drop_connections()
                node.server.inject(json.dumps(told).encode())

            node.do(show_second)
            assert process.ends() == 1
            assert "the node sent block" in process.output() and "unique" not in process.output().lower()
        finally:
            process.kill()
        assert ledgerline.tip_is("preprod", node.tip())
