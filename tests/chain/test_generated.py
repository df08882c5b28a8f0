"""Generated chains: failed scripts, nested transactions, every certificate, quantities beyond 63 bits, all eras.

Recorded blocks have too few of these. The devnet's ledger, the model and the service must agree.
"""

from random import Random

import pytest

from devnet import parameters
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from indexer.ledger.reader import GENESIS_ERAS
from shared.packed import CERTIFICATES
from tests.chain.answers import (
    check_asset,
    check_blocks,
    check_datum,
    check_epochs,
    check_page,
    check_policy,
    check_pool,
    check_script,
    check_stake,
    check_transaction,
    walk,
)
from tests.chain.answers_blockfrost import Facade, check_facade, paths
from tests.chain.answers_lists import check_extended, check_labels, check_lists
from tests.chain.answers_owners import (
    check_account,
    check_account_holders,
    check_address,
    check_credential,
    check_output,
)
from tests.chain.harness import Caller, Ledgerline, Node, until
from tests.chain.model_attachments import Attachments
from tests.chain.model_chain import ERAS, Chain, genesis_of
from tests.chain.model_owners import Owners


@pytest.fixture(scope="module")
def generated() -> Generated:
    return Generated(Options(seed=11, blocks_per_epoch=60, density=4, eras=ERAS), 500)


def model_of(node: Node) -> Chain:
    return Chain("preview", genesis_of(node.server.chain.genesis), node.server.chain.forks).feed(node.blocks())


def test_the_model_and_the_devnet_agree(generated: Generated) -> None:
    chain = Chain("preview", genesis_of(generated.genesis), generated.forks)
    chain.feed(block.decoded() for block in generated.blocks)
    assert {reference: output.lovelace for reference, output in chain.ledger.unspent.items()} == {
        reference: output["value"]["ada"]["lovelace"] for reference, output in generated.ledger.unspent.items()
    }
    supplies = {asset: chain.assets.supply(asset) for asset in chain.assets.minted}
    assert supplies == {asset: supply for asset, supply in generated.ledger.supplies.items() if asset in supplies}
    assert {p for p in chain.pools.parameters if chain.pools.status(p) != "retired"} == set(generated.ledger.pools)
    assert chain.pools.retiring == {
        pool: state.retiring_epoch for pool, state in generated.ledger.pools.items() if state.retiring_epoch is not None
    }
    delegated = {account: pool for account, (pool, _) in chain.pools.delegations.items()}
    assert delegated == {
        generated.cast.reward_address(who): account.pool
        for who, account in generated.ledger.accounts.items()
        if account.pool is not None
    }


@pytest.mark.parametrize("dialect", [Dialect((7, 0)), Dialect((7, 0), metadata_cbor=False, detailed=True)])
def test_every_answer_about_a_generated_chain_is_correct(
    ledgerline: Ledgerline, generated: Generated, dialect: Dialect
) -> None:
    with (
        Node(generated, dialect) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview", ogmios_url=node.url) as caller,
    ):
        model = model_of(node)
        ledgerline.reaches("preview", node.tip(), process)
        for address in model.ledger.of_address:
            check_page(caller, model.ledger, "address", address, limit=100)
            check_page(caller, model.ledger, "history", address, limit=7, order="asc", offset=3)
        for tx in model.ledger.transactions.values():
            check_transaction(caller, model.ledger, tx, dialect.metadata_cbor)
        assert {each["type"] for tx in model.ledger.transactions.values() for each in tx.certificates} == {
            *CERTIFICATES
        }
        busiest = max(model.ledger.of_address, key=lambda address: len(model.ledger.of_address[address]))
        for order in ("asc", "desc"):
            entries = [model.ledger.entry(tx) for tx in model.ledger.history(busiest, order)]
            assert walk(caller, f"/v1/tx/history/{busiest}", 5, order) == entries
        by_asset, by_policy = model.assets.holdings()
        for pool in model.pools.parameters:
            check_pool(caller, model, pool)
        for asset in model.assets.minted:
            check_asset(caller, model, asset, by_asset.get(asset, []))
        for policy in {policy for policy, _ in model.assets.minted}:
            check_policy(caller, model, policy, by_policy.get(policy, []))
        check_blocks(caller, model, range(0, len(model.blocks.blocks), 7))
        check_epochs(caller, model)
        check_stake(caller, model)
        check_attachments(caller, model)
        check_told_by_node(caller, node, dialect)
        until("the node's ledger is read", lambda: caller.ok("/v1/network")["data"]["supply"])
        facade = Facade(caller, model, metadata_cbor=dialect.metadata_cbor)
        check_facade(facade, Random(1), most=4)
        check_lists(facade, Random(1), most=4)
        for address in model.ledger.of_address:
            check_extended(facade, address)
        check_labels(caller, model.ledger, Random(1), 4, dialect.metadata_cbor)
        assert facade.answered == paths()


def check_attachments(caller: Caller, model: Chain) -> None:
    """Every script and datum."""
    attachments = Attachments(model.ledger)
    for digest in attachments.scripts:
        check_script(caller, attachments, digest)
    for digest in attachments.datums:
        check_datum(caller, attachments, digest)


def check_told_by_node(caller: Caller, node: Node, dialect: Dialect) -> None:
    """Protocol parameters and genesis equal the node's, once they are read."""
    path = "/v1/epochs/latest/parameters"
    until("the parameters are read", lambda: caller.get(path)[0] == 200)
    era = node.server.blocks[-1].era
    major = node.server.ledger_after(len(node.server.blocks) - 1).major
    assert caller.ok(path)["data"]["ogmios"] == parameters.protocol_parameters(era, (7, 0), major)
    told = caller.ok("/v1/genesis")["data"]
    for name in GENESIS_ERAS:
        chain = node.server.chain
        whole = parameters.genesis_configuration(name, chain.network, chain.genesis, dialect.version)
        assert whole is not None
        assert told[name] == {k: v for k, v in whole.items() if k not in ("initialFunds", "initialVouchers")}


def check_owners(caller: Caller, model: Chain) -> None:
    """Every address, account and output, and the holders by account."""
    owners = Owners(model.ledger)
    credentials = owners.first_address
    for owner in owners.outputs | owners.transactions:
        if owner in credentials:
            check_credential(caller, owners, owner)
        elif not owner.startswith("stake"):
            check_address(caller, owners, owner)
    assert len({*credentials.values()}) < len({each for each in owners.outputs if each.startswith("addr")})
    for account in owners.addresses.keys() | model.pools.delegated.keys():
        check_account(caller, model, owners, account)
    for reference in owners.made:
        check_output(caller, owners, reference)
    check_account_holders(caller, model, owners)


def test_answers_about_owners_are_correct_after_forks(ledgerline: Ledgerline) -> None:
    """Forward, rolled back and on another fork: each address, account and output equals the model's."""
    # The model has no rewards: in this chain, no account with instantaneous ones delegates when a snapshot is taken.
    chain = Generated(Options(seed=5, blocks_per_epoch=20, density=4, eras=ERAS), 80)
    with (
        Node(chain) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview", ogmios_url=node.url) as caller,
    ):
        for depth in (25, 40):
            ledgerline.reaches("preview", node.tip(), process)
            chain = chain.fork(len(chain.blocks) - 1 - depth, depth, depth // 2)
            node.do(node.server.switch, chain)
            ledgerline.reaches("preview", node.tip(), process)
            check_owners(caller, model_of(node))
            facade = Facade(caller, model_of(node))
            facade.check_block(len(facade.chain.blocks.blocks) - 1)
            facade.check_epoch(max(facade.chain.blocks.of_epoch))
            check_lists(facade, Random(depth), most=2)
            check_labels(caller, facade.ledger, Random(depth), most=2)


@pytest.mark.parametrize("seed", range(2))
def test_answers_about_pools_are_correct_at_every_step_of_their_lives(ledgerline: Ledgerline, seed: int) -> None:
    """Registration, changes, retirement, re-registration, delegations: forward, rolled back, and on another fork."""
    random = Random(seed)
    chain = Generated(Options(seed=seed, blocks_per_epoch=12, density=5, plain=0.1, eras=ERAS), 40)
    statuses = set()
    with (
        Node(chain) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
    ):
        for _ in range(35):
            model = model_of(node)
            ledgerline.reaches("preview", node.tip(), process)
            facade = Facade(caller, model)
            facade.check_ends()
            for pool in model.pools.parameters:
                check_pool(caller, model, pool)
                facade.check_updates(pool)
                facade.check_blocks_of(pool)
                statuses.add(model.pools.status(pool))
            check_blocks(caller, model, [])
            check_epochs(caller, model)
            check_stake(caller, model)
            # The node's snapshots, which have no rewards here, would hide errors in ours.
            assert ledgerline.rows("preview", "SELECT * FROM pool_reward") == []
            if random.random() < 0.25:
                depth = random.randint(1, 30)
                chain = chain.fork(len(chain.blocks) - 1 - depth, random.getrandbits(30), depth // 2)
                node.do(node.server.switch, chain)
            else:
                node.do(node.server.grow, random.randint(1, 12))
    assert statuses == {"active", "retiring", "retired"}
