"""Rewards in live and active stake, as in the node's ledger, on chains that grow while rewards are read."""

import json
import time
from typing import Any

import pytest

from devnet.blocks import Chain
from devnet.generator import Generated, Options
from devnet.ledger import Ledger
from devnet.parameters import MAX_SUPPLY, PROPOSAL_DEPOSIT
from devnet.refusal import Refusal
from devnet.server import NodeServer
from devnet.session import Session
from tests.chain.harness import Caller, Json, Ledgerline, Node, Process, asks_for_snapshot, until
from tests.chain.scripted import ADA, Scripted, delegate, home_of, join, leave, retire

EPOCH = 86_400
CONWAY = (("babbage", 0), ("conway", 2))


class Telling(NodeServer):
    """A node that pays rewards and reports them, but not its snapshots if it `withholds` them.

    It has no ledger state while it is `silent` or before the slot `oldest`, and none after it has told the pots of the
    slot `once`.
    """

    withholds = False
    silent = False
    oldest = 0
    once = -1

    def query(self, session: Session, method: str, params: Any) -> Any:
        if self.withholds and asks_for_snapshot(method, params):
            raise Refusal(-32602, "Not in this version.")
        if method == "acquireLedgerState":
            slot = json.loads(bytes(params))["point"]["slot"]
            if self.silent or slot < self.oldest:
                raise Refusal(2000, "Failed to acquire requested point.", "Point too old.")
        if method == "queryLedgerState/treasuryAndReserves" and session.acquired is not None:
            self.silent = session.acquired["slot"] == self.once
        return super().query(session, method, params)


class TellingNode(Node):
    """A node whose server reports rewards, and withholds some on request."""

    server: Telling

    def __init__(self, chain: Chain, *, withholds: bool = False) -> None:
        super().__init__(chain, kind=Telling)
        self.server.withholds = withholds


def events(process: Process, name: str) -> list[Json]:
    """The log's events of a name."""
    lines = [json.loads(line) for line in process.output().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def complete(ledgerline: Ledgerline, epoch_no: int) -> None:
    """Wait until all rewards of an epoch are read."""
    unread = "next_stake_no IS NOT NULL OR EXISTS (SELECT FROM reward_due)"
    statement = f"SELECT 1 FROM ledger_state WHERE complete_epoch_no = {epoch_no} AND NOT ({unread})"  # noqa: S608
    until(f"all rewards of epoch {epoch_no} are read", lambda: ledgerline.rows("preview", statement))


def all_compared(ledgerline: Ledgerline, epoch_no: int) -> None:
    """Wait until an epoch's comparison with the node is made."""
    statement = f"SELECT 1 FROM node_comparison WHERE epoch_no = {epoch_no}"  # noqa: S608
    until(f"epoch {epoch_no} is compared", lambda: ledgerline.rows("preview", statement))


def unaccounted(ledgerline: Ledgerline, ledger: Ledger) -> int:
    """The supply less our unspent outputs and rewards, the ledger's other pots and its deposits."""
    ((unspent, rewards),) = ledgerline.rows(
        "preview", "SELECT (SELECT sum(lovelace) FROM utxo), (SELECT coalesce(sum(lovelace), 0) FROM reward)"
    )
    deposits = [
        *(account.deposit for account in ledger.accounts.values()),
        *(pool.deposit for pool in ledger.pools.values()),
        *(representative.deposit for representative in ledger.representatives.values()),
        *(proposal.deposit for proposal in ledger.proposals.values()),
    ]
    pots = ledger.reserves + ledger.treasury + ledger.donations + ledger.fees + sum(deposits)
    return MAX_SUPPLY - int(unspent) - int(rewards) - pots


def off_by(caller: Caller, ledger: Ledger) -> dict[str, int]:
    """The excess of active stakes, also of reaped pools, over the ledger's."""
    told = {pool: caller.ok(f"/v1/pools/{pool}")["data"]["active_stake"] for pool in ledger.active_stakes()}
    return {pool: int(told[pool]) - stake for pool, stake in ledger.active_stakes().items()}


@pytest.mark.parametrize("seed", [5, 6])
def test_every_comparison_with_a_fast_node_matches(ledgerline: Ledgerline, seed: int) -> None:
    """Blocks with withdrawals and new epochs arrive while rewards are read and stakes are compared."""
    chain = Generated(Options(seed=seed, blocks_per_epoch=12, density=2, plain=0.1, eras=CONWAY), 100)
    node = TellingNode(chain)
    node.server.delay_s = 0.005  # a block or two arrive during the queries of one comparison
    with node, ledgerline.indexing("preview", node.url) as process:
        ledgerline.reaches("preview", node.tip(), process)
        for _ in range(360):
            node.do(node.server.grow, 1)
            time.sleep(0.025)
        ledgerline.reaches("preview", node.tip(), process)
        complete(ledgerline, chain.ledger.epoch)
        # The first ones may be at a block before any pool. A slow indexer skips epochs whose end it does not see.
        while sum(event["compared"]["live_stake"] > 0 for event in events(process, "ledger_state.compared")) <= 5:
            node.do(node.server.grow, 12)
            ledgerline.reaches("preview", node.tip(), process)
            complete(ledgerline, chain.ledger.epoch)
            all_compared(ledgerline, chain.ledger.epoch)
        compared = events(process, "ledger_state.compared")
    assert [event for event in compared if event["differing"]] == []


@pytest.mark.parametrize(
    ("eras", "withholds"),
    [((("babbage", 0),), False), (CONWAY, False), ((("conway", 0), ("dijkstra", 2)), False), (CONWAY, True)],
    ids=["babbage", "conway", "dijkstra", "conway-withheld"],
)
def test_active_stakes_are_the_ledgers_to_the_lovelace(
    ledgerline: Ledgerline, eras: tuple[tuple[str, int], ...], withholds: bool
) -> None:
    """By epoch, with reaped pools, returned deposits, withdrawals before rewards are read, and forks across epochs."""
    chain = Generated(Options(seed=35, blocks_per_epoch=12, density=6, plain=0.1, eras=eras), 40)
    first_epoch_no = chain.ledger.epoch
    compared = reaped = 0
    with (
        TellingNode(chain, withholds=withholds) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
    ):
        ledgerline.reaches("preview", node.tip(), process)
        # Not two epochs at once if snapshots are derived only from accounts, which include later rewards.
        undone = 9 if eras[0][0] == "conway" else 5
        for step in range(30):
            if step % 5 == 4:
                chain = chain.fork(len(chain.blocks) - 1 - undone, step, undone + 1)
                node.do(node.server.switch, chain)
            else:
                node.do(node.server.grow, 5)
            ledgerline.reaches("preview", node.tip(), process)
            complete(ledgerline, chain.ledger.epoch)
            assert unaccounted(ledgerline, chain.ledger) == 0
            if chain.ledger.epoch < first_epoch_no + 3:  # the snapshot was not taken while we followed
                continue
            reaped += sum(pool not in chain.ledger.pools for pool in chain.ledger.active_stakes())
            found = off_by(caller, chain.ledger)
            if withholds:  # proposals' deposits are refunded right after the snapshot, to unknown accounts
                assert all(more >= 0 and more % PROPOSAL_DEPOSIT == 0 for more in found.values()), list(found.values())
            else:
                assert not any(found.values()), (chain.ledger.epoch, found)
            compared += len(found)
    assert compared > 50 and reaped > 0


@pytest.mark.parametrize("remembers", [True, False])
def test_after_indexing_from_scratch_active_stakes_are_correct_once_rewards_are_read(
    ledgerline: Ledgerline, remembers: bool
) -> None:
    """Two snapshots precede the first reading of rewards: the node reports the newest, and possibly the other."""
    eras = CONWAY if remembers else (("babbage", 0),)
    chain = Generated(Options(seed=8, blocks_per_epoch=30, density=6, plain=0.1, eras=eras), 300)
    node = TellingNode(chain)
    epoch_no = chain.ledger.epoch
    if not remembers:
        node.server.oldest = chain.network.epoch_start(epoch_no)
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:
        ledgerline.reaches("preview", node.tip(), process)
        complete(ledgerline, epoch_no)
        found = off_by(caller, chain.ledger)
        assert any(found.values()) is not remembers
        # A snapshot that the node does not report includes the rewards from the beginning of the epoch.
        assert all(more >= 0 for more in found.values()), found
        while chain.ledger.epoch == epoch_no:
            node.do(node.server.grow, 1)
        ledgerline.reaches("preview", node.tip(), process)
        assert not any(off_by(caller, chain.ledger).values())


@pytest.mark.parametrize("withholds", [True, False])
def test_changes_between_a_snapshot_and_its_reading_do_not_count(ledgerline: Ledgerline, withholds: bool) -> None:
    chain = Scripted()
    pool, other = chain.cast.pools[0], chain.cast.pools[1]
    ann, bob, carol = chain.cast.stakers[:3]
    returning = chain.registration(other)
    returning["stakePool"]["rewardAccount"] = chain.cast.reward_address(bob)
    chain.block(0, [chain.registration(pool)], [returning])
    chain.block(
        5, [join(ann), delegate(ann, pool)], [join(bob), delegate(bob, pool)], [join(carol), delegate(carol, other)]
    )
    for second, staker in enumerate((ann, bob, carol), start=10):
        chain.pay(second, home_of(chain, staker), 1_000 * ADA)
    for epoch in (1, 2, 3):
        chain.block(epoch * EPOCH, by=pool)
        chain.block(epoch * EPOCH + 1, by=other)
    chain.block(3 * EPOCH + 20, [retire(other, 4)])
    node = TellingNode(chain, withholds=withholds)
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:

        def follow() -> None:
            node.server.silent = True
            node.do(node.server.switch, chain)
            ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
            node.server.silent = False
            chain.block(chain.blocks[-1].slot + 1)
            node.do(node.server.switch, chain)
            ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
            complete(ledgerline, chain.ledger.epoch)

        def counts() -> None:
            """The snapshot from the beginning of this epoch is correct once it is active."""
            ends = chain.fork(len(chain.blocks) - 1)
            ends.block((ends.ledger.epoch + 1) * EPOCH)
            node.do(node.server.switch, ends)
            ledgerline.reaches("preview", ends.blocks[-1].decoded(), process)
            assert off_by(caller, ends.ledger) == {pool.id: 0, other.id: 0}
            assert ends.ledger.active_stakes()[other.id] > 1_000 * ADA

        follow()
        before = len(chain.blocks) - 1
        chain.block(4 * EPOCH + 3, by=pool)
        rewards = {who: chain.ledger.accounts[who].rewards for who in (ann, bob, carol)}
        assert rewards[ann] and rewards[bob] > 500 * ADA and rewards[carol]
        chain.withdraw(4 * EPOCH + 10, ann)
        chain.block(4 * EPOCH + 11, [leave(ann)])
        chain.withdraw(4 * EPOCH + 12, bob)  # the deposit of the pool that was reaped in it
        chain.withdraw(4 * EPOCH + 13, carol)
        follow()
        counts()
        follow()
        # The same epoch on another fork, where ann withdrew hers before it began; nothing is read meanwhile.
        chain = chain.fork(before)
        chain.withdraw(3 * EPOCH + 80_000, ann)
        chain.block(4 * EPOCH + 3, by=pool)
        chain.withdraw(4 * EPOCH + 10, bob)
        follow()
        counts()


def test_accounts_due_at_a_rolled_back_block_are_read_at_the_one_before(ledgerline: Ledgerline) -> None:
    """The first rollback makes an account due at its point, which the second one removes. Nothing is read meanwhile."""
    chain = Scripted()
    (pool, other), ann = chain.cast.pools[:2], chain.cast.stakers[0]
    chain.block(0, [chain.registration(pool), chain.registration(other)])
    chain.block(5, [join(ann), delegate(ann, pool)])
    chain.block(EPOCH, by=pool)
    node = TellingNode(chain)
    with node, ledgerline.indexing("preview", node.url) as process:

        def follow(chain: Scripted) -> None:
            node.do(node.server.switch, chain)
            ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)

        follow(chain)
        complete(ledgerline, 1)
        node.server.silent = True
        ahead = chain.fork(len(chain.blocks) - 1)
        ahead.block(2 * EPOCH)
        ahead.block(2 * EPOCH + 5, [delegate(ann, other)])
        follow(ahead)
        back = ahead.fork(len(ahead.blocks) - 2)
        back.block(2 * EPOCH + 1)
        follow(back)
        assert [tuple(row) for row in ledgerline.rows("preview", "SELECT slot_no FROM reward_due")] == [(2 * EPOCH,)]
        chain.block(EPOCH + 1)
        follow(chain)
        node.server.silent = False
        chain.block(EPOCH + 2)
        follow(chain)
        complete(ledgerline, 1)


@pytest.mark.parametrize("forks", [[4], [5, 4], [5, 3]])
def test_snapshots_of_repeatedly_rolled_back_epochs_are_read_again(ledgerline: Ledgerline, forks: list[int]) -> None:
    """Each fork goes back to the end of an epoch; the reader sees only the last one."""
    chain = Scripted()
    pool, ann = chain.cast.pools[0], chain.cast.stakers[0]
    chain.block(0, [chain.registration(pool)])
    chain.block(5, [join(ann), delegate(ann, pool)])
    chain.pay(10, home_of(chain, ann), 1_000 * ADA)
    for epoch in range(1, 7):
        chain.block(epoch * EPOCH, by=pool)
        chain.block(epoch * EPOCH + 40_000, by=pool)
    node = TellingNode(chain)
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:
        ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
        complete(ledgerline, 6)
        all_compared(ledgerline, 6)
        assert off_by(caller, chain.ledger) == {pool.id: 0}
        node.server.silent = True
        for epoch in forks:
            kept = [place for place, block in enumerate(chain.blocks) if block.slot < (epoch + 1) * EPOCH]
            chain = chain.fork(kept[-1])
            chain.block(epoch * EPOCH + 50_000)
            node.do(node.server.switch, chain)
            ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
        assert ledgerline.rows("preview", "SELECT 1 FROM node_comparison") == []
        for epoch in range(forks[-1] + 1, 7):
            chain.block(epoch * EPOCH, by=pool)
            chain.block(epoch * EPOCH + 40_000, by=pool)
        node.do(node.server.switch, chain)
        ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
        node.server.silent = False
        chain.block(6 * EPOCH + 50_000)
        node.do(node.server.switch, chain)
        ledgerline.reaches("preview", chain.blocks[-1].decoded(), process)
        complete(ledgerline, 6)
        assert off_by(caller, chain.ledger) == {pool.id: 0}


def test_a_rolled_back_first_round_completes_both_snapshots(ledgerline: Ledgerline) -> None:
    """Indexed from scratch to the beginning of an epoch, which is rolled back before its rewards are read."""
    chain = Generated(Options(seed=8, blocks_per_epoch=30, density=6, plain=0.1, eras=CONWAY), 300)
    epoch_no = chain.ledger.epoch + 1
    while chain.ledger.epoch < epoch_no:
        chain.grow(1)
    node = TellingNode(chain)
    node.server.once = node.server.oldest = chain.blocks[-1].slot
    with node, ledgerline.indexing("preview", node.url) as process, ledgerline.serving("preview") as caller:
        until("the first round has begun", lambda: ledgerline.rows("preview", "SELECT 1 FROM ledger_state"))
        chain = chain.fork(len(chain.blocks) - 4, 77, 1)
        assert chain.ledger.epoch == epoch_no - 1
        node.do(node.server.switch, chain)
        ledgerline.reaches("preview", node.tip(), process)
        while chain.ledger.epoch < epoch_no:
            node.do(node.server.grow, 1)
        ledgerline.reaches("preview", node.tip(), process)
        node.server.once, node.server.oldest, node.server.silent = -1, 0, False
        node.do(node.server.grow, 1)
        assert chain.ledger.epoch == epoch_no
        ledgerline.reaches("preview", node.tip(), process)
        complete(ledgerline, epoch_no)
        assert not any(off_by(caller, chain.ledger).values())
