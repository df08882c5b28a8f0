"""`verify --against-node`, and early ends of `verify`."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import Any

import psutil
import pytest

from devnet.generator import Generated, Options
from devnet.networks import BY_NAME
from indexer.ledger import reader
from indexer.ledger.comparisons import MAX_NAMED
from indexer.ogmios import connection as ogmios
from indexer.verify.node import against_node, ledger_state
from indexer.verify.results import CheckResult
from shared import database
from shared.address import show_stake
from shared.ledger import Point
from shared.network import by_name
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Ledgerline, Node
from tests.chain.planted import verified
from tests.chain.recordings import FILES
from tests.ports import free_port

ERAS = (("babbage", 0), ("conway", 2))


async def compared(url: str, connect: ogmios.Connect, network: str) -> against_node.Compared:
    db = await database.connect(url, by_name[network])
    try:
        return await against_node.compare(db, connect, by_name[network], lambda *_: None)
    finally:
        await db.close()


def to(node: Node) -> ogmios.Connect:
    return partial(ogmios.connect, node.url)


@pytest.fixture(scope="module")
def chain() -> Generated:
    return Generated(Options(seed=8, blocks_per_epoch=40, density=3, eras=ERAS), 160)


@pytest.fixture(scope="module")
def indexed(new_ledgerline: NewLedgerline, chain: Generated) -> Ledgerline:
    ledgerline = new_ledgerline()
    with Node(chain) as node, ledgerline.indexing("preview", node.url) as process:
        ledgerline.reaches("preview", node.tip(), process)
        assert process.stop() == 0
    return ledgerline


def verify(ledgerline: Ledgerline, *options: str) -> tuple[int, str]:
    """The exit status and the output, without the line that names the database."""
    run = ledgerline.run("indexer", "verify", "--network", "preview", *options)
    named, _, rest = run.stderr.partition("\n")
    assert named.startswith("database: ")
    return run.returncode, run.stdout + rest


def test_the_command_compares_with_the_node_and_prints_the_scope(indexed: Ledgerline, chain: Generated) -> None:
    with Node(chain) as node:
        status, told = verify(indexed, "--against-node", "--ogmios-url", node.url)
        assert (status, "preview: 160 of 160 blocks" in told) == (0, True), told
        half = chain.blocks[80].slot
        status, told = verify(
            indexed, "--against-node", "--sample", "5%", "--from-slot", str(half), "--ogmios-url", node.url
        )
        assert (status, "preview: 80 of 160 blocks" in told) == (0, True), told


def test_an_unusable_node_is_reported_in_one_line_with_status_1(indexed: Ledgerline) -> None:
    status, told = verify(indexed, "--against-node", "--ogmios-url", f"ws://127.0.0.1:{free_port()}")
    assert (status, told.startswith("can't connect to Ogmios at 'ws://"), told.count("\n")) == (1, True, 1), told
    other = Generated(Options(network="preprod", eras=BY_NAME["preprod"].eras[:1]), 10)
    with Node(other) as node:
        status, told = verify(indexed, "--against-node", "--ogmios-url", node.url)
    assert (status, "the node's" in told, told.count("\n")) == (1, True, 1), told


def test_verify_with_a_killed_helper_never_ends_with_status_0(indexed: Ledgerline) -> None:
    process = indexed.start("indexer", "verify", "--network", "preview")
    helpers: list[psutil.Process] = []
    while not helpers and process.popen.poll() is None:
        children = psutil.Process(process.popen.pid).children(recursive=True)
        helpers = [child for child in children if any("spawn_main" in word for word in child.cmdline())]
        time.sleep(0.01)
    helpers[0].kill()
    assert process.ends() == 1, process.output()
    assert "a process that reads history ended, so nothing is verified" in process.output()


class Changing:
    """A connection to a node that changes its chain at chosen moments: before it answers, or before a message is read.

    Moments are counted over all connections.
    """

    def __init__(self, connection: ogmios.Ogmios, node: Node, moments: Iterator[int], changes: dict[int, Generated]):
        self._connection, self._node, self._moments, self._changes = connection, node, moments, changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def intersect(self, points: list[Point]) -> Any:
        await self._moment()
        return await self._connection.intersect(points)

    async def messages(self) -> AsyncIterator[ogmios.Message]:
        async with aclosing(self._connection.messages()) as messages:
            async for message in messages:
                await self._moment()
                yield message

    async def _moment(self) -> None:
        change = self._changes.get(next(self._moments))
        if change is not None:
            await asyncio.to_thread(self._node.do, self._node.server.switch, change)


async def test_blocks_of_a_fork_are_not_reported_as_differences(
    indexed: Ledgerline, chain: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a fork that the index has not followed, nor for one that comes, or comes and goes, during the check."""
    monkeypatch.setattr(against_node, "WINDOW_BLOCKS", 50)
    monkeypatch.setattr(ogmios, "IN_FLIGHT", 8)  # so that a rollback is read soon after the change
    fork = chain.fork(len(chain.blocks) - 30, 4, 35)
    with Node(fork) as node:

        async def compared_while(changes: dict[int, Generated]) -> tuple[against_node.Compared, int]:
            moments = count()

            async def connect() -> ogmios.Ogmios:
                return Changing(await ogmios.connect(node.url), node, moments, changes)  # type: ignore[return-value]

            return await compared(indexed.database_url, connect, "preview"), next(moments)

        found, _ = await compared_while({})
        assert (found.results, found.blocks) == ([], 131)
        node.do(node.server.switch, chain)
        found, last = await compared_while({})
        assert (found.results, found.blocks) == ([], 160)
        pick = random.Random(1)
        # Around the fork, and anywhere.
        for first in [*range(last * 5 // 8 - 4, last * 7 // 8, 3), *(pick.randrange(last) for _ in range(10))]:
            for changes in ({first: fork}, {first: fork, first + 1 + pick.randrange(40): chain}):
                found, _ = await compared_while(changes)
                assert found.results == [], changes.keys()
                node.do(node.server.switch, chain)


async def test_verify_beside_an_indexer_on_forks_finds_no_difference(ledgerline: Ledgerline) -> None:
    chain = Generated(Options(seed=9, blocks_per_epoch=40, density=3, eras=ERAS), 120)
    with Node(chain) as node, ledgerline.indexing("preview", node.url) as process:
        await asyncio.to_thread(ledgerline.reaches, "preview", node.tip(), process)
        for step in range(8):
            comparing = asyncio.create_task(compared(ledgerline.database_url, to(node), "preview"))
            chain = chain.fork(len(chain.blocks) - 8, step, 9)
            await asyncio.to_thread(node.do, node.server.switch, chain)
            assert (await comparing).results == []


@pytest.mark.parametrize("name", ["byron", "allegra", "babbage", "conway", "conway-defaults"])
def test_recorded_blocks_equal_those_of_their_node(
    ledgerline: Ledgerline, name: str, finish: Callable[[Any], Any]
) -> None:
    """Also partial ones, with inputs from before the first block."""
    file = FILES[name]

    async def spoil() -> list[CheckResult]:
        db = await database.connect(ledgerline.database_url, by_name[file.network])
        await db.execute("UPDATE tx SET size = size + 1, fee = fee + 1 WHERE tx_id = (SELECT max(tx_id) FROM tx)")
        await db.close()
        return (await compared(ledgerline.database_url, to(node), file.network)).results

    with Node(file.played()) as node, ledgerline.indexing(file.network, node.url) as process:
        ledgerline.reaches(file.network, file.blocks()[-1], process)
        assert process.stop() == 0
        assert finish(verified(ledgerline.database_url, by_name[file.network], node.url)) == {}
        assert [result.check for result in finish(spoil())] == ["tx"]


async def test_a_window_that_changes_on_every_read_is_not_reported_as_another_fork(
    indexed: Ledgerline, chain: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rolled_back(*_: object) -> None:
        return None

    monkeypatch.setattr(against_node, "_read", rolled_back)
    told = "compared with the node: 1 ranges whose blocks changed"
    with Node(chain) as node, pytest.raises(against_node.NothingCommon, match=told):
        await compared(indexed.database_url, to(node), "preview")


async def test_accounts_are_compared_in_parts(
    database_url: str, chain: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No query asks for all accounts at once: mainnet has millions."""
    monkeypatch.setattr(reader, "BATCH_ACCOUNTS", 2)
    db = await database.connect(database_url, by_name["preview"])
    accounts = [(number, b"\xe0" + number.to_bytes(28)) for number in range(1, 8)]
    await db.copy_records_to_table("stake", columns=("stake_no", "raw"), records=accounts)
    await db.execute("INSERT INTO stake_event SELECT 5, stake_no, NULL, 0, 0, 'registration' FROM stake")
    with Node(chain) as server:
        tip = server.tip()
        first = "INSERT INTO tip VALUES (true, $1, 0, $2, 0, 0, 'live')"
        await db.execute(first, tip["slot"], bytes.fromhex(tip["id"]))
        node = await ogmios.connect(server.url)
        found = {each.kind: each for each in await ledger_state.compare(db, node, by_name["preview"], 100.0) or []}
        await node.close()
        assert server.server.requests["queryLedgerState/rewardAccountSummaries"] == 4
    compared = found["account_registration"]
    assert (compared.compared, compared.differing) == (7, 7)
    assert [(each.name, each.ours, each.node) for each in compared.differences] == sorted(
        (show_stake(raw), "yes", "no") for _, raw in accounts
    )[:MAX_NAMED]
    await db.close()


async def test_windows_end_where_the_next_begins(indexed: Ledgerline, chain: Generated) -> None:
    with pytest.MonkeyPatch.context() as patch, Node(chain) as node:
        patch.setattr(against_node, "WINDOW_BLOCKS", 7)
        found = await compared(indexed.database_url, to(node), "preview")
    assert (found.blocks, found.results) == (len(chain.blocks), [])
