"""Preview's first 45,000 blocks, indexed and queried through the API: every answer is the model's."""

import json
from collections.abc import Callable, Iterator
from itertools import islice, product
from random import Random

import pytest

from devnet.blocks import Recorded, read_genesis
from devnet.networks import PREVIEW
from tests.campaigns.recorded import every_check
from tests.chain.answers import (
    check_asset,
    check_blocks,
    check_epochs,
    check_page,
    check_policy,
    check_pool,
    check_transaction,
    walk,
)
from tests.chain.harness import Caller, Ledgerline, Node, blocks_of, recorded
from tests.chain.model import Ledger
from tests.chain.model_chain import Chain

FILE, GENESIS = "preview-from-genesis.jsonl.xz", "genesis-preview-outputs.json"
KEY_DEPOSIT, POOL_DEPOSIT = 2_000_000, 500_000_000
BUSIEST = 50


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain("preview", json.loads(recorded(GENESIS).read_bytes())).feed(blocks_of(recorded(FILE)))


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with Node(Recorded(recorded(FILE), PREVIEW, read_genesis(recorded(GENESIS)))) as playing:
        yield playing


@pytest.fixture(scope="module")
def served(chain: Chain, node: Node, new_ledgerline: Callable[[], Ledgerline]) -> Iterator[Ledgerline]:
    """The whole file indexed, and the API in front of it."""
    ledgerline = new_ledgerline()
    with ledgerline.indexing("preview", node.url) as indexer, ledgerline.serving("preview"):
        ledgerline.reaches("preview", chain.ledger.tip or {}, indexer)
        yield ledgerline


@pytest.fixture
def caller(served: Ledgerline) -> Caller:
    return served.caller


def busiest(ledger: Ledger) -> list[str]:
    return sorted(ledger.of_address, key=lambda address: -len(ledger.of_address[address]))[:BUSIEST]


def test_the_model_keeps_every_lovelace(chain: Chain) -> None:
    """The basis of the other tests: each transaction balances by the ledger's rule, deposits included."""
    pools: set[str] = set()
    for tx in chain.ledger.transactions.values():
        assert tx.fee is not None
        spent = sum(source.lovelace for _, source in tx.inputs if source is not None) + sum(tx.withdrawals.values())
        paid = sum(output.lovelace for _, output in tx.outputs) + tx.fee
        for certificate in tx.certificates:
            match certificate["type"]:
                case "stakeCredentialRegistration":
                    paid += KEY_DEPOSIT
                case "stakeCredentialDeregistration":
                    spent += KEY_DEPOSIT
                case "stakePoolRegistration" if certificate["stakePool"]["id"] not in pools:
                    paid += POOL_DEPOSIT
                    pools.add(certificate["stakePool"]["id"])
        assert spent == paid, tx.tx_hash
    assert len(chain.ledger.transactions) == 7336


def test_the_model_keeps_every_asset(chain: Chain) -> None:
    by_asset, _ = chain.assets.holdings()
    for asset in chain.assets.minted:
        assert chain.assets.supply(asset) == sum(int(holder["quantity"]) for holder in by_asset.get(asset, []))


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("kind", ["history", "address"])
def test_every_address_list_is_correct(chain: Chain, caller: Caller, kind: str, order: str) -> None:
    limit = 500 if kind == "history" else 100
    for address in chain.ledger.of_address:
        check_page(caller, chain.ledger, kind, address, order=order, limit=limit)


def test_every_address_list_is_correct_with_assets_by_policy(chain: Chain, caller: Caller) -> None:
    for address in chain.ledger.of_address:
        check_page(caller, chain.ledger, "address", address, groupByPolicy="true")


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_busiest_addresses_are_walked_by_cursor(chain: Chain, caller: Caller, order: str) -> None:
    for address in busiest(chain.ledger):
        history = [chain.ledger.entry(tx) for tx in chain.ledger.history(address, order)]
        for limit in (7, 64):
            assert walk(caller, f"/v1/tx/history/{address}", limit, order) == history
        details = [chain.ledger.detail(tx) for tx in chain.ledger.history(address, order)]
        assert walk(caller, f"/v1/tx/address/{address}", 33, order) == details


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_busiest_addresses_are_walked_by_offset(chain: Chain, caller: Caller, order: str) -> None:
    for address in busiest(chain.ledger):
        total = len(chain.ledger.of_address[address])
        for offset in range(0, total + 23, 23):
            check_page(caller, chain.ledger, "history", address, order=order, limit=23, offset=offset)


def test_pages_from_any_slot(chain: Chain, caller: Caller) -> None:
    """Before the first, at, between and beyond the slots of a history, at random."""
    random = Random(721)
    for address in busiest(chain.ledger):
        slots = [tx.slot for tx in chain.ledger.of_address[address]]
        near = [random.choice(slots) + random.choice((-1, 0, 1)) for _ in range(6)]
        for slot, order in product([0, slots[0] - 1, slots[-1] + 1, 2**40, *near], ("asc", "desc")):
            limit, offset = random.randint(1, 30), random.choice((0, 0, 1, 5, len(slots)))
            query = {"fromSlot": max(0, slot), "order": order, "limit": limit, "offset": offset}
            check_page(caller, chain.ledger, "history", address, **query)


def test_every_transaction_is_correct_by_its_hash(chain: Chain, caller: Caller) -> None:
    for tx in chain.ledger.transactions.values():
        body = check_transaction(caller, chain.ledger, tx)
        assert body["last_updated"] == chain.ledger.last_updated()


def test_every_asset_is_correct(chain: Chain, caller: Caller) -> None:
    by_asset, _ = chain.assets.holdings()
    for asset in chain.assets.minted:
        check_asset(caller, chain, asset, by_asset.get(asset, []))


def test_every_policy_is_correct(chain: Chain, caller: Caller) -> None:
    _, by_policy = chain.assets.holdings()
    for policy in {asset[0] for asset in chain.assets.minted}:
        check_policy(caller, chain, policy, by_policy.get(policy, []))


def test_every_pool_is_correct(chain: Chain, caller: Caller) -> None:
    for pool in chain.pools.parameters:
        check_pool(caller, chain, pool)


def test_blocks_and_every_epoch_are_correct(chain: Chain, caller: Caller) -> None:
    check_blocks(caller, chain, Random(5).sample(range(len(chain.blocks.blocks)), 200))
    check_epochs(caller, chain)


def test_a_sample_of_everything_is_correct(chain: Chain, caller: Caller) -> None:
    """One in 60 comparisons of this chain's campaign: addresses, accounts, outputs, scripts, datums."""
    for each in islice(every_check(chain, seed=1), 0, None, 60):
        each.check(caller)


def test_verify_finds_no_difference(served: Ledgerline) -> None:
    found = served.run("indexer", "verify", "--network", "preview")
    assert found.returncode == 0, found.stdout


def test_pools_are_correct_at_every_epoch_boundary(ledgerline: Ledgerline) -> None:
    """Before and after each boundary of the recorded chain, with the index following its growth."""
    blocks = list(blocks_of(recorded(FILE)))
    model = Chain("preview", json.loads(recorded(GENESIS).read_bytes()))
    epochs = [model.ledger.clock.epoch_of(block["slot"]) for block in blocks]
    stops = [i for i in range(1, len(blocks)) if epochs[i] != epochs[i - 1]]
    growing = Recorded(recorded(FILE), PREVIEW, read_genesis(recorded(GENESIS)), visible=stops[0])
    fed = 0
    with (
        Node(growing) as node,
        ledgerline.indexing("preview", node.url) as indexer,
        ledgerline.serving("preview") as caller,
    ):
        for stop in stops:
            for shown in (stop, stop + 1):
                node.do(node.server.grow, shown - len(node.server.blocks))
                model.feed(blocks[fed:shown])
                fed = shown
                ledgerline.reaches("preview", blocks[shown - 1], indexer)
                for pool in model.pools.parameters:
                    check_pool(caller, model, pool)
                # The node's snapshots, which have no rewards here, would hide errors in ours.
                assert ledgerline.rows("preview", "SELECT * FROM pool_reward") == []


def test_verify_finds_no_difference_from_history_and_node(served: Ledgerline, node: Node) -> None:
    run = served.run("indexer", "verify", "--network", "preview", "--against-node", "--ogmios-url", node.url)
    assert run.returncode == 0, run.stdout + run.stderr
