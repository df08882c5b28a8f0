"""A pool is correct at every step of its life, also after rollbacks and on other forks."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from devnet.addresses import stake_part
from devnet.generator import Generated, Options
from devnet.parameters import DESIRED_POOLS, MAX_SUPPLY
from devnet.refusal import Refusal
from devnet.server import NodeServer
from devnet.session import Session
from shared.network import PREVIEW
from tests.chain.answers import check_pool
from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Caller, Json, Ledgerline, Node, Rewardless, until
from tests.chain.model_certificates import with_origin
from tests.chain.model_chain import Chain, genesis_of
from tests.chain.planted import verified
from tests.chain.pool_life import EPOCH, life_of
from tests.chain.scripted import ADA, Scripted, delegate, join, leave, resign, stand, vote


class Stage:
    """A node that plays a scripted chain, the service that follows it, and the model fed with the same blocks."""

    def __init__(self, ledgerline: Ledgerline, node: Node, caller: Caller, process: Any) -> None:
        self.ledgerline, self.node, self.caller, self.process = ledgerline, node, caller, process

    def show(self, chain: Scripted) -> None:
        """Give the node this chain, wait for the index, and compare every pool with the model."""
        self.node.do(self.node.server.switch, chain)
        model = Chain("preview", genesis_of(chain.genesis), chain.forks).feed(block.decoded() for block in chain.blocks)
        self.ledgerline.reaches("preview", chain.blocks[-1].decoded(), self.process)
        for pool in model.pools.parameters:
            check_pool(self.caller, model, pool)
        # NOTE: the node has no rewards, so its snapshots must equal ours of outputs.
        assert self.ledgerline.rows("preview", "SELECT * FROM pool_reward") == []

    def says(self, chain: Scripted, expected: dict[str, Any]) -> None:
        told = self.caller.ok(f"/v1/pools/{chain.cast.pools[0].id}")["data"]
        assert {name: told[name] for name in expected} == expected, chain.blocks[-1].slot


@pytest.fixture
def stage(ledgerline: Ledgerline) -> Iterator[Stage]:
    with (
        Node(Scripted()) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
    ):
        yield Stage(ledgerline, node, caller, process)


def test_a_pool_can_register_again_and_be_rolled_back(stage: Stage, new_ledgerline: NewLedgerline) -> None:
    chain = Scripted()
    steps = life_of(chain)
    for write, expected in steps:
        write(chain)
        stage.show(chain)
        stage.says(chain, expected)
    # Back to each of its blocks, latest first, and one block forward on a separate fork.
    for index in range(len(steps) - 2, 0, -1):
        forked = chain.fork(index)
        forked.block(forked.blocks[-1].slot + 1)
        stage.show(forked)
        said = {name: value for name, value in steps[index][1].items() if name != "blocks_epoch"}
        stage.says(forked, said)
    # Through all of it again, from near the beginning, without a pause.
    again = chain.fork(0)
    for write, _ in steps[1:]:
        write(again)
    stage.show(again)
    settled(stage.ledgerline, again.ledger.epoch)
    stage.show(again)
    assert stage.process.stop() == 0
    straight = new_ledgerline()
    with Node(again) as node, straight.indexing("preview", node.url) as process:
        straight.reaches("preview", again.blocks[-1].decoded(), process)
    assert differences(straight.dump("preview"), stage.ledgerline.dump("preview")) == []


def test_an_epoch_begins_in_one_step(stage: Stage) -> None:
    """Repeated requests during an epoch boundary see the state before it or after it."""
    chain = Scripted()
    for write, _ in life_of(chain):
        if chain.blocks and chain.blocks[-1].slot == 6 * EPOCH + 86_390:
            break
        write(chain)
    pool = chain.cast.pools[0]
    chain.block(chain.blocks[-1].slot + 1, by=pool)
    stage.show(chain)
    asker = Caller(stage.caller.connection.port or 0, stage.caller.keys)
    seen: list[tuple[Any, ...]] = []
    listed: list[Json] = []
    fields = ("status", "active_stake", "live_stake", "delegator_count", "blocks_epoch", "blocks_minted")

    def look() -> tuple[Any, ...]:
        data = asker.ok(f"/v1/pools/{pool.id}")["data"]
        return tuple(data[field] for field in fields)

    def listing() -> Json:
        return asker.ok(f"/v1/pools/{pool.id}/delegators/list")

    before, full = look(), listing()
    assert len(full["data"]["delegators"]) == 2
    assert before == ("retiring", str(1_500 * ADA), str(1_500 * ADA), 2, 1, 2)
    chain.block(7 * EPOCH + 3, by=pool)
    stage.node.do(stage.node.server.extend, [chain.blocks[-1]])
    after = ("retired", str(1_500 * ADA), "0", 0, 1, 3)

    def begun() -> bool:
        seen.append(look())
        listed.append(listing())
        return seen[-1] == after

    until("the epoch has begun", begun, every_s=0)
    assert set(seen) <= {before, after}
    empty = listing()
    assert empty["data"]["delegators"] == [] and empty["pagination"]["total"] == 0
    assert all(shown in (full, empty) for shown in listed)


class Founded(Rewardless):
    """A private network, whose genesis has a pool and one delegation to it."""

    def query(self, session: Session, method: str, params: Any) -> Any:
        answer = super().query(session, method, params)
        if method == "queryNetwork/genesisConfiguration" and answer["era"] == "shelley":
            chain = self.chain
            assert isinstance(chain, Scripted)
            pool = chain.registration(chain.cast.pools[0])["stakePool"]
            delegators = {chain.cast.stakers[0].hash: pool["id"]}
            answer["initialStakePools"] = {"stakePools": {pool["id"]: pool}, "delegators": delegators}
        return answer


def test_pools_of_the_genesis_live_from_the_first_epoch_on(ledgerline: Ledgerline) -> None:
    home = Scripted().cast.people[0]
    chain = Scripted(funds={home: 5 * ADA})
    ann, pool = chain.cast.stakers[0], chain.cast.pools[0].id
    assert stake_part(home) == ann
    chain.block(0)
    node = Node(chain)
    node.server = Founded(chain)
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:

        def told() -> tuple[str, str, int]:
            ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
            data = caller.ok(f"/v1/pools/{pool}")["data"]
            return data["active_stake"], data["live_stake"], data["delegator_count"]

        assert told() == (str(5 * ADA), str(5 * ADA), 1)
        delegators = caller.ok(f"/v1/pools/{pool}/delegators/list")["data"]["delegators"]
        assert delegators == [
            {"stake_address": chain.cast.reward_address(ann), "amount": str(5 * ADA), "active_epoch_no": 0}
        ]
        for slot, *certificates in ((10, leave(ann)), (EPOCH,), (2 * EPOCH,)):
            chain.block(slot, *([certificates] if certificates else []))
            node.do(node.server.extend, [chain.blocks[-1]])
            expected = "0" if slot == 2 * EPOCH else str(5 * ADA)
            assert told() == (expected, "0", 0)
        node.do(node.server.fork, 0, [])
        ledgerline.reaches("preview", chain.blocks[0].decoded(), process)
        assert caller.ok(f"/v1/pools/{pool}")["data"]["live_stake"] == str(5 * ADA)
        assert asyncio.run(verified(ledgerline.database_url, PREVIEW)) == {}


def settled(ledgerline: Ledgerline, epoch: int) -> None:
    """Wait until every reward of an epoch is read."""

    def read() -> bool:
        unread = "next_stake_no IS NOT NULL OR EXISTS (SELECT FROM reward_due)"
        found = ledgerline.rows("preview", f"SELECT epoch_no, {unread} AS unread FROM ledger_state")  # noqa: S608
        return bool(found) and found[0]["epoch_no"] == epoch and not found[0]["unread"]

    until("all rewards are read", read)


class Rewarding(Node):
    """A node whose accounts have the rewards that its ledger pays."""

    def __init__(self, chain: Generated) -> None:
        super().__init__(chain)
        self.server = NodeServer(chain)


def test_stakes_equal_the_ledgers_including_rewards(ledgerline: Ledgerline) -> None:
    """Live and active stake of every pool equal the node's, to the lovelace, in every epoch and after forks."""
    chain = Generated(
        Options(seed=24, blocks_per_epoch=12, density=2, eras=(("babbage", 0), ("conway", 3), ("dijkstra", 6))), 30
    )
    first_epoch = chain.ledger.epoch
    compared = rewarded = 0
    with (
        Rewarding(chain) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
    ):
        for step in range(80):
            ledgerline.reaches("preview", node.tip(), process)
            ledger = chain.ledger
            settled(ledgerline, ledger.epoch)
            live, active = ledger.live_stakes(), ledger.active_stakes()
            for pool in ledger.pools:
                told = caller.ok(f"/v1/pools/{pool}")["data"]
                assert int(told["live_stake"]) == live[pool], (pool, ledger.epoch)
                delegators = caller.ok(f"/v1/pools/{pool}/delegators/list", limit=500)["data"]["delegators"]
                assert sum(int(row["amount"]) for row in delegators) == live[pool]
                if ledger.epoch - first_epoch >= 2:  # whose snapshot was taken, and read, while we followed
                    assert int(told["active_stake"]) == active.get(pool, 0), (pool, ledger.epoch)
                    compared += 1
                circulating = MAX_SUPPLY - ledger.reserves
                assert told["saturation"] == pytest.approx(live[pool] * DESIRED_POOLS / circulating)
            rewarded += sum(account.rewards > 0 for account in ledger.accounts.values())
            if step % 10 == 9:
                chain = chain.fork(len(chain.blocks) - 1 - step % 7, step, step % 7 + 1)
                node.do(node.server.switch, chain)
            else:
                node.do(node.server.grow, 1)
        assert compared > 50 and rewarded > 50
        found = ledgerline.rows("preview", "SELECT kind, compared, differing FROM node_comparison")
        assert {row["kind"] for row in found if row["compared"]} >= {"live_stake", "account_pool", "pool_parameters"}
        assert not any(row["differing"] for row in found)
        verified = ledgerline.run("indexer", "verify", "--network", "preview")
        assert verified.returncode == 0, verified.stdout
        assert "compared with the node's ledger" in verified.stdout and "all match" in verified.stdout


class Reticent(NodeServer):
    """A node that pays rewards, and reports them unless it is `silent`."""

    silent = False

    def query(self, session: Session, method: str, params: Any) -> Any:
        if self.silent and method == "queryLedgerState/rewardAccountSummaries":
            raise Refusal(-32603, "Not now.")
        return super().query(session, method, params)


def test_a_withdrawal_counts_once_even_before_the_node_reports_it(ledgerline: Ledgerline) -> None:
    chain = Scripted()
    ann, pool = chain.cast.stakers[0], chain.cast.pools[0]
    home = next(address for address in chain.cast.people if stake_part(address) == ann)
    chain.block(0, [chain.registration(pool)], [join(ann), delegate(ann, pool)])
    chain.pay(10, home, 1_000 * ADA)
    for epoch in (1, 2, 3):
        chain.block(epoch * EPOCH, by=pool)
    rewards = chain.ledger.accounts[ann].rewards
    assert rewards > 0
    node = Node(chain)
    server = node.server = Reticent(chain)
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:

        def live_stake() -> int:
            ledgerline.reaches("preview", node.tip(), process)
            return int(caller.ok(f"/v1/pools/{pool.id}")["data"]["live_stake"])

        ledgerline.reaches("preview", node.tip(), process)
        settled(ledgerline, 3)
        assert live_stake() == 1_000 * ADA + rewards
        server.silent = True
        chain.withdraw(3 * EPOCH + 10, ann)
        node.do(server.extend, [chain.blocks[-1]])
        assert live_stake() == 1_000 * ADA
        node.do(server.switch, chain.fork(len(chain.blocks) - 2))
        ledgerline.reaches("preview", node.tip(), process)
        server.silent = False
        settled(ledgerline, 3)
        assert live_stake() == 1_000 * ADA + rewards


def test_a_vote_is_delegated_until_either_side_ends_it(stage: Stage) -> None:
    chain = Scripted()
    ann = chain.cast.stakers[0]
    account = chain.cast.reward_address(ann)
    one, other = ({"type": "registered", "from": "script", "id": digit * 56} for digit in "12")
    abstain = {"type": "abstain"}

    def show(chain: Scripted, expected: Json | None) -> None:
        stage.node.do(stage.node.server.switch, chain)
        stage.ledgerline.reaches("preview", chain.blocks[-1].decoded(), stage.process)
        assert stage.caller.ok(f"/v1/accounts/{account}")["data"]["delegate_representative"] == expected

    steps: list[tuple[list[Json], Json | None]] = [
        ([join(ann), stand(one), stand(other)], None),
        ([vote(ann, one)], with_origin(one)),
        ([vote(ann, abstain)], abstain),
        ([vote(ann, other), resign(one)], with_origin(other)),
        ([resign(other)], None),
        ([stand(other), vote(ann, other), stand(one), vote(ann, one), resign(other)], with_origin(one)),
        ([leave(ann), join(ann)], None),
        ([stand(other), vote(ann, other)], with_origin(other)),
    ]
    for slot, (certificates, expected) in enumerate(steps):
        chain.block(10 * (slot + 1), certificates)
        show(chain, expected)
    for index in range(len(steps) - 2, -1, -1):
        forked = chain.fork(index)
        forked.block(forked.blocks[-1].slot + 1)
        show(forked, steps[index][1])
