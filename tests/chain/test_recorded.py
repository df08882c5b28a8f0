"""Real blocks of every era and network, indexed from the beginning of their files; earlier outputs are unknown."""

from itertools import islice
from random import Random

import pytest

from tests.campaigns.recorded import every_check
from tests.chain.answers import check_page, check_transaction, walk
from tests.chain.answers_blockfrost import Facade, check_facade, some
from tests.chain.answers_lists import check_extended, check_labels, check_lists
from tests.chain.answers_owners import check_account, check_address, check_credential, check_output
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Ledgerline, Node
from tests.chain.model_owners import Owners
from tests.chain.recordings import FILES, File

SOME = 3
"""The numbers of objects of each kind that are requested at /v1 and below /blockfrost."""


@pytest.mark.parametrize("file", FILES.values(), ids=FILES.keys())
def test_answers_about_a_recorded_chain_are_correct(ledgerline: Ledgerline, file: File) -> None:
    """Every address and transaction, and some of everything, at /v1 and below /blockfrost.

    Inputs from before the first block have neither address nor value.
    """
    chain = file.model()
    model = chain.ledger
    assert model.tip is not None
    with (
        Node(file.played()) as node,
        ledgerline.indexing(file.network, node.url) as process,
        ledgerline.serving(file.network, ogmios_url=node.url) as caller,
    ):
        ledgerline.reaches(file.network, model.tip, process)
        for number, address in enumerate(islice(model.of_address, 3000)):
            if number % 2:
                check_page(caller, model, "address", address, order="asc", limit=100)
            else:
                check_page(caller, model, "history", address)
        for tx in model.transactions.values():
            check_transaction(caller, model, tx)
        owners = Owners(model)
        for address in islice(model.of_address, 40):
            check_address(caller, owners, address)
        for credential in islice(owners.first_address, 20):
            check_credential(caller, owners, credential)
        for account in islice(owners.addresses, 20):
            check_account(caller, chain, owners, account)
        for reference in islice(owners.made, 0, None, 1 + len(owners.made) // 100):
            check_output(caller, owners, reference)
        busiest = max(model.of_address, key=lambda address: len(model.of_address[address]))
        for order in ("asc", "desc"):
            entries = [model.entry(tx) for tx in model.history(busiest, order)]
            assert walk(caller, f"/v1/tx/history/{busiest}", 3, order) == entries
        random = Random(file.name)
        checks = list(every_check(chain, seed=1))
        for kind in dict.fromkeys(each.kind for each in checks):
            for named in some(random, SOME, [each for each in checks if each.kind == kind]):
                named.check(caller)
        facade = Facade(caller, chain)
        check_facade(facade, random, SOME)
        check_lists(facade, random, SOME)
        for address in some(random, SOME, model.of_address):
            check_extended(facade, address)
        check_labels(caller, model, random, SOME)
        status = ledgerline.run("indexer", "status", "--network", file.network)
        assert status.returncode == 0, status.stdout + status.stderr
        assert ("partial" in status.stdout) == (file.genesis is None)


def test_missing_flags_are_logged_once_with_their_effect(new_ledgerline: NewLedgerline) -> None:
    file = FILES["conway-defaults"]
    ledgerline = new_ledgerline()
    with Node(file.played()) as node, ledgerline.indexing(file.network, node.url) as process:
        ledgerline.reaches(file.network, file.blocks()[-1], process)
        for flag in ("--include-transaction-cbor", "--include-metadata-cbor"):
            assert len([line for line in process.output().splitlines() if flag in line]) == 1, process.output()
