"""Real blocks of other eras and networks: indexed from where their files begin, what lies before them unknown."""

import json
from dataclasses import dataclass
from itertools import islice

import pytest

from devnet.blocks import Genesis, Recorded, read_genesis
from devnet.networks import BY_NAME
from tests.chain.answers import check_page, walk
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Json, Ledgerline, Node, blocks_of, recorded
from tests.chain.model_chain import Chain


@dataclass(frozen=True)
class File:
    """A recorded file, and what to begin with where it begins at the origin."""

    name: str
    network: str
    genesis: str | None = None

    def blocks(self) -> list[Json]:
        return list(blocks_of(recorded(self.name)))

    def model(self) -> Chain:
        outputs = json.loads(recorded(self.genesis).read_bytes()) if self.genesis else ()
        return Chain(self.network, outputs).feed(self.blocks())

    def played(self) -> Recorded:
        genesis = read_genesis(recorded(self.genesis)) if self.genesis else Genesis()
        return Recorded(recorded(self.name), BY_NAME[self.network], genesis)


FILES = {
    "byron": File("mainnet-byron-from-genesis.jsonl.xz", "mainnet", "genesis-mainnet-vouchers.json"),
    "allegra": File("mainnet-allegra.jsonl.xz", "mainnet"),
    "babbage": File("preprod-babbage.jsonl.xz", "preprod"),
    "conway": File("mainnet-conway.jsonl.xz", "mainnet"),
    "conway-defaults": File("mainnet-conway-defaults.jsonl.xz", "mainnet"),
}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES.keys())
def test_a_recorded_chain_answers(ledgerline: Ledgerline, file: File) -> None:
    """Every address, transaction and page; inputs from before the first block have neither address nor value."""
    model = file.model().ledger
    assert model.tip is not None
    with (
        Node(file.played()) as node,
        ledgerline.indexing(file.network, node.url) as process,
        ledgerline.serving(file.network) as caller,
    ):
        ledgerline.reaches(file.network, model.tip, process, within_s=90)
        for address in islice(model.of_address, 3000):
            check_page(caller, model, "address", address, order="asc", limit=100)
            check_page(caller, model, "history", address)
        for tx_hash, tx in model.transactions.items():
            assert caller.ok(f"/v1/tx/hash/{tx_hash}")["data"].items() >= model.detail(tx).items()
        busiest = max(model.of_address, key=lambda address: len(model.of_address[address]))
        for order in ("asc", "desc"):
            entries = [model.entry(tx) for tx in model.history(busiest, order)]
            assert walk(caller, f"/v1/tx/history/{busiest}", 3, order) == entries
        status = ledgerline.run("indexer", "status", "--network", file.network)
        assert status.returncode == 0, status.stderr
        assert ("partial" in status.stdout) == (file.genesis is None)


def test_missing_flags_are_told_once_with_what_they_cost(new_ledgerline: NewLedgerline) -> None:
    file = FILES["conway-defaults"]
    ledgerline = new_ledgerline()
    with Node(file.played()) as node, ledgerline.indexing(file.network, node.url) as process:
        ledgerline.reaches(file.network, file.blocks()[-1], process)
        for flag in ("--include-transaction-cbor", "--include-metadata-cbor"):
            assert len([line for line in process.output().splitlines() if flag in line]) == 1, process.output()
