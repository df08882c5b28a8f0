"""Answers about vouchers (AVVM) equal the model's around the first block of Allegra, and after forks there."""

import asyncio
from itertools import groupby

from devnet import networks
from devnet.generator import Generated, options_of
from shared.network import PREPROD
from tests.chain.answers_owners import check_address, check_output
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Caller, Node
from tests.chain.model import is_byron, is_redeem_address
from tests.chain.model_chain import Chain, genesis_of
from tests.chain.model_owners import Owners
from tests.chain.planted import verified


def check(caller: Caller, node: Node) -> dict[str, int]:
    """Check every Byron address and output. Returns the lovelace at addresses of vouchers, by the model."""
    chain = node.server.chain
    model = Chain("preprod", genesis_of(chain.genesis, networks.PREPROD)).feed(node.blocks())
    owners = Owners(model.ledger)
    for address in filter(is_byron, {output.address for output in owners.made.values()}):
        check_address(caller, owners, address)
    for reference, output in owners.made.items():
        if is_byron(output.address):
            check_output(caller, owners, reference)
    assert isinstance(chain, Generated)
    told = chain.ledger.unspent
    assert model.ledger.unspent.keys() == told.keys()
    vouchers = {output["address"] for output in told.values() if is_voucher(output["address"])}
    return {address: owners.summary(address)["lovelace"] for address in vouchers}


def is_voucher(address: str) -> bool:
    return is_byron(address) and is_redeem_address(address)


def test_answers_about_vouchers_are_correct_on_both_sides_of_allegra(new_ledgerline: NewLedgerline) -> None:
    ledgerline = new_ledgerline()
    whole = Generated(options_of("preprod", seed=3, blocks_per_epoch=8, density=3), 80)
    first = {era: next(blocks) for era, blocks in groupby(whole.blocks, lambda block: block.era)}
    place = whole.blocks.index(first["allegra"])
    chain = whole.fork(place - 1, seed=1)
    with (
        Node(chain) as node,
        ledgerline.indexing("preprod", node.url) as process,
        ledgerline.serving("preprod") as caller,
    ):
        ledgerline.reaches("preprod", node.tip(), process)
        before = check(caller, node)
        assert len(before) == 2
        node.do(node.server.grow, 5)
        ledgerline.reaches("preprod", node.tip(), process)
        assert check(caller, node) == {}
        for back, blocks in ((7, 1), (3, 8), (10, 12)):
            chain = chain.fork(len(chain.blocks) - 1 - back, seed=back, blocks=blocks)
            node.do(node.server.switch, chain)
            ledgerline.reaches("preprod", node.tip(), process)
            assert check(caller, node) == (before if chain.blocks[-1].era == "shelley" else {})
        assert process.stop() == 0
    assert asyncio.run(verified(ledgerline.database_url, PREPROD)) == {}
