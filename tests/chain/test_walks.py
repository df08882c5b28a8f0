"""Walks over pages while the chain moves: each transaction that is not rolled back occurs once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import pytest

from devnet.generator import Generated, Options
from tests.chain.answers import address_list, walk
from tests.chain.harness import Ledgerline, Node, until
from tests.chain.model_chain import ERAS, Chain, genesis_of

MAX_DEPTH = 4


@contextmanager
def moving(node: Node, chain: Generated, random: Random) -> Iterator[None]:
    """Let the chain grow and fork at its tip during the block. It never shrinks, and only its last blocks change."""
    stop = threading.Event()

    def move() -> None:
        ours = chain
        while not stop.wait(random.uniform(0.01, 0.1)):
            if random.random() < 0.4:
                depth = random.randint(1, MAX_DEPTH)
                fresh = depth + random.randint(0, 2)
                ours = ours.fork(len(ours.blocks) - 1 - depth, random.getrandbits(30), fresh)
                node.do(node.server.switch, ours)
            else:
                node.do(node.server.grow, random.randint(1, 3))

    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield
    finally:
        stop.set()
        mover.join()


@pytest.mark.parametrize("seed", range(2))
def test_a_walk_yields_each_transaction_once_while_the_chain_moves(ledgerline: Ledgerline, seed: int) -> None:
    random = Random(seed)
    chain = Generated(Options(seed=seed, blocks_per_epoch=60, density=6, eras=ERAS), 300)
    with (
        Node(chain) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
        moving(node, chain, random),
    ):
        until("the index is live", lambda: ledgerline.tip("preview") or process.popen.poll() is not None)
        for _ in range(10):
            blocks = node.do(lambda: list(node.server.blocks))
            sure = blocks[-30]
            until("the index has it", partial(ledgerline.is_beyond, "preview", sure.slot))
            model = Chain("preview", genesis_of(chain.genesis)).feed(block.decoded() for block in blocks[:-29]).ledger
            busiest = sorted(model.of_address, key=lambda address: -len(model.of_address[address]))
            address = random.choice(busiest[:5])
            path, most, show = address_list(model, random.choice(("history", "address")))
            limit = random.randint(1, most // 5)

            met = walk(caller, path + address, limit, "asc")
            surely = [row for row in met if row["slot_no"] <= sure.slot]
            assert surely == [show(tx) for tx in model.history(address, "asc")]
            pairs = [(row["tx_hash"], row["block_hash"]) for row in met]
            assert len(pairs) == len(set(pairs)), "met twice"
            assert [row["slot_no"] for row in met] == sorted(row["slot_no"] for row in met)

            met = walk(caller, path + address, limit, "desc", from_slot=sure.slot)
            assert met == [show(tx) for tx in model.history(address, "desc")]
        assert process.popen.poll() is None
