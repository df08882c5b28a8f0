"""What the beginning of each epoch paid into reward accounts, as in the node's ledger, and that the sums add up."""

import asyncio
import json
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import asyncpg
import pytest

from api.blockfrost.rewards import show_epochs
from devnet.blocks import Chain
from devnet.generator import Generated, Options
from devnet.ledger import Ledger
from devnet.parameters import PROPOSAL_DEPOSIT
from shared.network import POOL_DEPOSIT, PREVIEW
from tests.chain.harness import Caller, Json, Ledgerline
from tests.chain.in_turns import InTurns
from tests.chain.model import bech32_payload
from tests.chain.planted import planted, within
from tests.chain.test_rewards import CONWAY, TellingNode, complete

ERAS = {"babbage": (("babbage", 0),), "conway": CONWAY, "dijkstra": (("conway", 0), ("dijkstra", 2))}
Amounts = dict[int, dict[bytes, int]]  # lovelace by epoch and reward account


def begun(chain: Generated) -> tuple[Amounts, Amounts]:
    """What accounts held when each epoch began, and of that what was paid to them then."""
    ledger = Ledger.at_genesis(chain)
    held: Amounts = {}
    paid: Amounts = {}
    for block in chain.blocks:
        decoded = block.decoded()
        before = balances(chain, ledger)
        if "slot" in decoded and chain.network.epoch_of(decoded["slot"]) > ledger.epoch:
            ledger.begin_era(decoded["era"])
            ledger.enter(decoded["slot"])
            held[ledger.epoch] = now = balances(chain, ledger)
            paid[ledger.epoch] = {account: now[account] - before.get(account, 0) for account in now}
        ledger.apply(decoded)
    return without_zeros(held), without_zeros(paid)


def balances(chain: Generated, ledger: Ledger) -> dict[bytes, int]:
    return {bech32_payload(chain.cast.reward_address(who)): account.rewards for who, account in ledger.accounts.items()}


def without_zeros(amounts: Amounts) -> Amounts:
    return {epoch: {who: lovelace for who, lovelace in of.items() if lovelace} for epoch, of in amounts.items()}


def indexed(ledgerline: Ledgerline, column: str) -> Amounts:
    found: Amounts = defaultdict(dict)
    statement = f"SELECT epoch_no, raw, {column} FROM reward_epoch_entry JOIN stake USING (stake_no)"  # noqa: S608
    for epoch_no, raw, lovelace in ledgerline.rows("preview", statement):
        assert bytes(raw) not in found[epoch_no]
        found[epoch_no][bytes(raw)] = lovelace
    return without_zeros(found)


def moved(chain: Chain, first_slot: int) -> Counter[bytes]:
    """What transactions took out of reward accounts since a slot, less what they paid in."""
    taken: Counter[bytes] = Counter()

    def add(tx: Json) -> None:
        for part in (*tx.get("subTransactions", ()), tx):
            for sign, name in ((1, "withdrawals"), (-1, "credits")):
                for account, value in part.get(name, {}).items():
                    taken[bech32_payload(account)] += sign * value["ada"]["lovelace"]

    for block in chain.blocks:
        decoded = block.decoded()
        if decoded.get("slot", -1) >= first_slot:
            for tx in decoded.get("transactions", ()):
                if tx.get("spends") != "collaterals":
                    add(tx)
    return taken


@pytest.mark.parametrize("eras", ERAS)
def test_what_each_epoch_paid_is_the_ledgers_to_the_lovelace(ledgerline: Ledgerline, eras: str) -> None:
    """With returned deposits, payments of governance, withdrawals and deregistrations before the rewards are read, and
    forks across epochs. What an account holds and has withdrawn is what it held at first and was paid since.
    """
    chain = Generated(Options(seed=35, blocks_per_epoch=12, density=6, plain=0.1, eras=ERAS[eras]), 40)
    with (
        TellingNode(chain) as node,
        ledgerline.indexing("preview", node.url) as process,
        ledgerline.serving("preview") as caller,
    ):
        ledgerline.reaches("preview", node.tip(), process)
        for step in range(26):
            if step % 5 == 4:
                chain = chain.fork(len(chain.blocks) - 1 - 9, step, 10)
                node.do(node.server.switch, chain)
            else:
                node.do(node.server.grow, 5)
            ledgerline.reaches("preview", node.tip(), process)
            complete(ledgerline, chain.ledger.epoch)
        rounds = [row[0] for row in ledgerline.rows("preview", "SELECT epoch_no FROM reward_round ORDER BY 1")]
        known = [epoch for epoch in rounds if epoch - 1 in rounds]
        assert len(known) > 6 and known[-1] == chain.ledger.epoch
        held, paid = begun(chain)
        told_held, told_paid = indexed(ledgerline, "lovelace"), indexed(ledgerline, "paid")
        assert {epoch: told_held.get(epoch, {}) for epoch in rounds} == {epoch: held[epoch] for epoch in rounds}
        assert {epoch: told_paid.get(epoch, {}) for epoch in known} == {epoch: paid[epoch] for epoch in known}
        assert {epoch for epoch, of_accounts in told_paid.items() if of_accounts} <= set(known)
        first = next(epoch for epoch in rounds if set(range(epoch, rounds[-1])) <= set(rounds))
        taken, now = moved(chain, chain.network.epoch_start(first)), balances(chain, chain.ledger)
        for account in {who for of_epoch in told_held.values() for who in of_epoch} | taken.keys() | now.keys():
            earned = sum(told_paid.get(epoch, {}).get(account, 0) for epoch in rounds if epoch > first)
            assert now.get(account, 0) + taken[account] == told_held.get(first, {}).get(account, 0) + earned
        check_answers(caller, chain, known, paid)
        check_stakes(caller, chain, rounds)
        check_pools(caller, chain, rounds, known)
        asyncio.run(check_verified(ledgerline.database_url))


async def check_verified(database_url: str) -> None:
    """`verify` finds nothing, and what is wrong in the last earnings of pools, which it adds up again."""
    settings = {"search_path": PREVIEW.schema}
    db = await asyncpg.connect(database_url, connection_class=InTurns, server_settings=settings)
    finds = partial(within, network=PREVIEW)
    last = "epoch_no = (SELECT max(epoch_no) - 2 FROM reward_round)"
    assert await planted(db, "UPDATE tip SET phase = phase", finds) == {}
    for error in ("UPDATE pool_earning SET lovelace = lovelace - 1", "DELETE FROM pool_earning"):
        found = await planted(db, f"{error} WHERE {last}", finds)
        assert found and set(found) == {"pool_earning"}, found
    await db.close()


def check_pools(caller: Caller, chain: Generated, rounds: list[int], known: list[int]) -> None:
    """The rewards of pools are those of accounts for them, also of accounts that are not registered any more."""
    earned: Counter[tuple[str, int]] = Counter()
    for account in accounts_of(chain):
        for each in listed(caller, f"/blockfrost/api/v0/accounts/{account}/rewards"):
            if each["type"] != "pool_deposit_refund":
                earned[each["pool_id"], each["epoch"]] += int(each["amount"])
    taken = snapshots(chain)
    epochs = [epoch - 2 for epoch in known if epoch - 3 in rounds]
    compared = 0
    for pool in {pool for of_epoch in taken.values() for pool in of_epoch}:
        path = f"/blockfrost/api/v0/pools/{pool}/history"
        headers, _ = caller.text(path)
        assert headers["Known-Epochs"] == show_epochs(epochs)
        told = listed(caller, path)
        assert [each["epoch"] for each in told] == [epoch for epoch in epochs if taken.get(epoch, {}).get(pool)]
        assert listed(caller, path, order="desc", count=2) == told[::-1][:2]
        for each in told:
            assert int(each["rewards"]) == earned[pool, each["epoch"]]
            assert each["delegators_count"] == len(taken[each["epoch"]][pool])
            assert int(each["active_stake"]) == sum(taken[each["epoch"]][pool].values())
            assert 0 <= int(each["fees"]) <= int(each["rewards"])
            compared += int(each["rewards"]) > 0
    assert compared > 2


def accounts_of(chain: Generated) -> set[str]:
    """Every account that was ever registered."""
    ledger = Ledger.at_genesis(chain)
    found = set()
    for block in chain.blocks:
        ledger.apply(block.decoded())
        found |= {chain.cast.reward_address(who) for who in ledger.accounts}
    return found


def snapshots(chain: Generated) -> dict[int, dict[str, dict[str, int]]]:
    """The stake snapshots by the epoch in which they count, by pool and account."""
    ledger = Ledger.at_genesis(chain)
    found = {}
    for block in chain.blocks:
        decoded = block.decoded()
        if "slot" in decoded and chain.network.epoch_of(decoded["slot"]) > ledger.epoch:
            ledger.begin_era(decoded["era"])
            ledger.enter(decoded["slot"])
            found[ledger.epoch + 1] = {
                pool: {chain.cast.reward_address(who): lovelace for who, lovelace in members.items()}
                for pool, members in ledger.stake_snapshots[0].items()
            }
        ledger.apply(decoded)
    return found


def check_stakes(caller: Caller, chain: Generated, rounds: list[int]) -> None:
    """The stakes in epochs and of accounts; proposals' deposits that a new epoch returns do not count yet."""
    told_by_account: dict[str, list[Json]] = defaultdict(list)
    expected = {epoch: of for epoch, of in snapshots(chain).items() if epoch - 1 in rounds}
    compared = 0
    for epoch, pools in expected.items():
        for pool, members in pools.items():
            for account in members:
                told_by_account[account].append({"active_epoch": epoch, "pool_id": pool})
        if epoch > chain.ledger.epoch:
            continue
        path = f"/blockfrost/api/v0/epochs/{epoch}/stakes"
        told = walked(caller, path)
        assert {pool for pool, members in pools.items() if members} == {each["pool_id"] for each in told}
        for pool, members in pools.items():
            of_pool = walked(caller, f"{path}/{pool}")
            assert [each | {"pool_id": pool} for each in of_pool] == [each for each in told if each["pool_id"] == pool]
            more = {each["stake_address"]: int(each["amount"]) - members[each["stake_address"]] for each in of_pool}
            assert more.keys() == members.keys()
            assert all(lovelace >= 0 and lovelace % PROPOSAL_DEPOSIT == 0 for lovelace in more.values()), more
            compared += len(more)
    assert compared > 20
    status, body = caller.get(f"/blockfrost/api/v0/epochs/{min(rounds)}/stakes")
    assert status == 501 and f"Known epochs: {show_epochs(list(expected))}." in body["message"]
    for account, entries in told_by_account.items():
        path = f"/blockfrost/api/v0/accounts/{account}/history"
        headers, content = caller.text(path)
        assert headers["Known-Epochs"] == show_epochs(list(expected))
        assert [without_amount(each) for each in json.loads(content)] == entries
        assert caller.get(path, order="desc", count=3, page=2)[1] == json.loads(content)[::-1][3:6]


def without_amount(entry: Json) -> Json:
    assert int(entry["amount"]) >= 0
    return {name: value for name, value in entry.items() if name != "amount"}


def walked(caller: Caller, path: str) -> list[Json]:
    """All pages of a list, three entries each, which equal one long page."""
    rows: list[Json] = []
    while page := listed(caller, path, count=3, page=len(rows) // 3 + 1):
        rows += page
        if len(page) < 3:
            break
    assert rows[:100] == listed(caller, path)
    return rows


def listed(caller: Caller, path: str, **query: int | str) -> list[Json]:
    told: tuple[int, Any] = caller.get(path, **query)
    assert told[0] == 200 and isinstance(told[1], list), (path, told)
    rows: list[Json] = told[1]
    return rows


def check_answers(caller: Caller, chain: Generated, known: list[int], paid: Amounts) -> None:
    """The answers about accounts name the epochs that are known, and list deposits of pools in all epochs. A reward is
    what was paid two epochs later, less these.
    """
    refunds = compared = 0
    for who in chain.ledger.accounts:
        account = chain.cast.reward_address(who)
        path = f"/blockfrost/api/v0/accounts/{account}/rewards"
        headers, body = caller.text(path)
        told = json.loads(body)
        assert headers["Known-Epochs"] == show_epochs([epoch - 2 for epoch in known])
        assert [each["epoch"] for each in told] == sorted(each["epoch"] for each in told)
        returned = Counter(each["epoch"] for each in told if each["type"] == "pool_deposit_refund")
        refunds += returned.total()
        rewards = {each["epoch"]: int(each["amount"]) for each in told if each["type"] != "pool_deposit_refund"}
        assert len(rewards) + returned.total() == len(told)
        for epoch, lovelace in rewards.items():
            assert epoch + 2 in known
            assert lovelace == paid[epoch + 2][bech32_payload(account)] - returned[epoch + 2] * POOL_DEPOSIT
            compared += 1
        newest_first = sorted(told, key=lambda each: -each["epoch"])  # types in the same order, as with Blockfrost
        assert listed(caller, path, order="desc") == newest_first
        assert listed(caller, path, order="desc", count=2, page=2) == newest_first[2:4]
    assert refunds == deposits_returned(chain) and compared > 10


def deposits_returned(chain: Generated) -> int:
    """How many pools' deposits went to accounts that are registered now."""
    ledger = Ledger.at_genesis(chain)
    returned = 0
    for block in chain.blocks:
        decoded = block.decoded()
        if "slot" in decoded and chain.network.epoch_of(decoded["slot"]) > ledger.epoch:
            before = dict(ledger.pools)
            ledger.begin_era(decoded["era"])
            ledger.enter(decoded["slot"])
            for pool in before.keys() - ledger.pools.keys():
                account = (before[pool].next_parameters or before[pool].parameters)["rewardAccount"]
                credentials = {chain.cast.reward_address(who): who for who in ledger.accounts}
                returned += account in credentials and credentials[account] in chain.ledger.accounts
        ledger.apply(decoded)
    return returned
