"""What the index and its node know of the ledger, compared: nothing differs, and each difference is named."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import asyncpg
import pytest

from devnet.blocks import Chain
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.refusal import Refusal
from devnet.server import NodeServer
from devnet.session import Session
from indexer.ledger import subjects
from indexer.ledger.comparer import NodeComparer
from indexer.ledger.reader import LedgerReader
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.store import position
from indexer.verify.node import ledger_state
from shared import database
from shared.ledger import Point
from shared.network import PREVIEW
from shared.network_state import Comparison
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Ledgerline, Node, until
from tests.chain.scripted import Scripted, delegate, join, leave, retire
from tests.patience import PATIENCE_S

EPOCH = 86_400
ERAS = (("babbage", 0), ("conway", 2))
ALL_READ = "SELECT 1 FROM ledger_state WHERE next_stake_no IS NULL AND NOT EXISTS (SELECT FROM reward_due)"


class Altered(NodeServer):
    """A node that pays rewards, and some of whose answers are altered."""

    def __init__(self, chain: Chain, dialect: Dialect | None = None) -> None:
        super().__init__(chain, dialect=dialect)
        self.alter: tuple[str, Callable[[Any], Any]] | None = None

    def query(self, session: Session, method: str, params: Any) -> Any:
        answer = super().query(session, method, params)
        if self.alter is not None and method.endswith(f"/{self.alter[0]}"):
            return self.alter[1](answer)
        return answer


class Telling(Node):
    """A node with such a server."""

    server: Altered

    def __enter__(self) -> "Telling":
        super().__enter__()
        return self

    def __init__(self, chain: Chain, dialect: Dialect | None = None) -> None:
        super().__init__(chain)
        self.server = Altered(chain, dialect)


async def compared(url: str, node: Node) -> list[Comparison]:
    """The comparison that verify makes."""
    db, connection = await database.connect(url, PREVIEW), await ogmios.connect(node.url)
    try:
        found = await ledger_state.compare(db, connection, PREVIEW, 100.0)
        assert found is not None
        return found
    finally:
        await connection.close()
        await db.close()


def differing(found: list[Comparison]) -> dict[str, dict[str, tuple[str, str]]]:
    """Our value and the node's by kind and name."""
    return {
        each.kind: {named.name: (named.ours, named.node) for named in each.differences}
        for each in found
        if each.differing
    }


@contextmanager
def indexed(ledgerline: Ledgerline, chain: Chain) -> Iterator[Telling]:
    """A node whose chain is indexed, with all rewards. Its Ogmios is the newest, which tells most."""
    with Telling(chain, Dialect((7, 0))) as node, ledgerline.indexing("preview", node.url) as process:
        ledgerline.reaches("preview", node.tip(), process)
        until("all rewards are read", lambda: ledgerline.rows("preview", ALL_READ))
        assert process.stop() == 0
        yield node


@pytest.fixture(scope="module")
def generated() -> Generated:
    return Generated(Options(seed=8, blocks_per_epoch=20, density=4, plain=0.1, eras=ERAS), 160)


@pytest.fixture(scope="module")
def known(new_ledgerline: NewLedgerline, generated: Generated) -> Iterator[tuple[Ledgerline, Telling]]:
    ledgerline = new_ledgerline()
    with indexed(ledgerline, generated) as node:
        yield ledgerline, node


@pytest.mark.parametrize("version", [(6, 11), (6, 12), (6, 13), (6, 14), (7, 0)])
async def test_every_kind_is_compared_with_each_version_and_nothing_differs(
    known: tuple[Ledgerline, Telling], generated: Generated, version: tuple[int, int]
) -> None:
    with Telling(generated, Dialect(version)) as node:
        found = await compared(known[0].database_url, node)
    assert differing(found) == {}
    assert [each.kind for each in found] == list(subjects.KINDS)
    assert all(each.compared for each in found), found
    ledger = generated.ledger
    counts = {each.kind: each.compared for each in found}
    assert counts["account_pool"] == len(ledger.accounts) < counts["account_registration"]
    assert counts["pool_parameters"] == len(ledger.pools)


def _first(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Alter the first item of a list or an object."""

    def altered(answer: Any) -> Any:
        if isinstance(answer, list):
            return [change(answer[0]), *answer[1:]]
        name = min(answer)
        return answer | {name: change(answer[name])}

    return altered


def _without_first(answer: Any) -> Any:
    return answer[1:] if isinstance(answer, list) else {name: answer[name] for name in answer if name != min(answer)}


def _registered(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Alter the first registered representative."""

    def altered(answer: Any) -> Any:
        place = next(place for place, each in enumerate(answer) if each["type"] == "registered")
        return [*answer[:place], *change(answer[place]), *answer[place + 1 :]]

    return altered


def _lovelace(field: str, amount: int) -> Callable[[Any], Any]:
    return lambda thing: thing | {field: {"ada": {"lovelace": thing[field]["ada"]["lovelace"] + amount}}}


STRANGER = "pool1pke9e4eh5930h9vqv084vhz4w6wwf70whhpf3jv6qs5u52nucjj"
# Kind -> the query and how its answer is altered, and words of the node's value that must be named.
ALTERED: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "epoch_start": ("eraSummaries", _first(lambda era: era | {"start": era["start"] | {"slot": 7}}), "7"),
    "genesis_configuration": ("genesisConfiguration", lambda answer: answer | {"era": "x"}, '{"era":"x"}'),
    "protocol_parameter": ("protocolParameters", lambda answer: answer | {"minFeeCoefficient": 45}, "45"),
    "pot": ("treasuryAndReserves", _lovelace("treasury", 1), ""),
    "pool_registration": ("stakePools", _without_first, "no"),
    "pool_parameters": ("stakePools", _first(_lovelace("pledge", 1)), "pledge "),
    "live_stake": ("liveStakeDistribution", lambda answer: answer | {STRANGER: {"stake": "1/45000000000"}}, ""),
    "snapshot": ("stakePools", _first(lambda pool: _lovelace("stake", 1)(pool) if "stake" in pool else pool), ""),
    "genesis_output": ("utxo", _without_first, "none"),
    "account_registration": ("rewardAccountSummaries", _without_first, "no"),
    "account_pool": ("rewardAccountSummaries", _first(lambda each: each | {"stakePool": {"id": STRANGER}}), STRANGER),
    "account_representative": (
        "rewardAccountSummaries",
        _first(lambda each: each | {"delegateRepresentative": {"type": "noConfidence"}}),
        "noConfidence",
    ),
    "representative_registration": ("delegateRepresentatives", _registered(lambda _: []), "no"),
    "representative_deposit": (
        "delegateRepresentatives",
        _registered(lambda each: [_lovelace("deposit", 1)(each)]),
        "500000001",
    ),
    "representative_anchor": (
        "delegateRepresentatives",
        _registered(lambda each: [each | {"metadata": {"url": "https://example.org/x", "hash": "00" * 32}}]),
        "https://example.org/x",
    ),
    "account_deposit": ("rewardAccountSummaries", _first(_lovelace("deposit", 1)), "2000001"),
    "account_rewards": ("rewardAccountSummaries", _first(_lovelace("rewards", 1)), ""),
}


@pytest.mark.parametrize("kind", subjects.KINDS)
async def test_a_difference_of_each_kind_is_named_with_both_values(
    known: tuple[Ledgerline, Telling], kind: str
) -> None:
    method, alter, words = ALTERED[kind]
    ledgerline, node = known
    node.do(partial(setattr, node.server, "alter", (method, alter)))
    try:
        found = differing(await compared(ledgerline.database_url, node))
    finally:
        node.do(partial(setattr, node.server, "alter", None))
    named = found[kind]
    assert named, found
    for name, (ours, theirs) in named.items():
        assert name and ours != theirs and words in theirs


# Kind -> the table that lacks what the node tells, and how it is lost.
LOST = {
    "genesis_configuration": ("genesis_configuration", "UPDATE genesis_configuration SET configuration = '{}'"),
    "protocol_parameter": ("epoch_parameters", "DELETE FROM epoch_parameters"),
    "pot": ("ledger_state", "UPDATE ledger_state SET reserves = NULL"),
}


@pytest.mark.parametrize("kind", LOST)
async def test_a_figure_that_is_missing_here_is_named(known: tuple[Ledgerline, Telling], kind: str) -> None:
    ledgerline, node = known
    table, lose = LOST[kind]
    db = await database.connect(ledgerline.database_url, PREVIEW)
    try:
        await db.execute(f"CREATE TEMP TABLE kept AS TABLE {table}")
        await db.execute(lose)
        found = differing(await compared(ledgerline.database_url, node))
        await db.execute(f"TRUNCATE {table}; INSERT INTO {table} SELECT * FROM kept")  # noqa: S608 - ours
    finally:
        await db.close()
    assert found.keys() == {kind}
    assert all(theirs not in ("none", "{}") for _, theirs in found[kind].values())


def _refused(_: Any) -> Any:
    raise Refusal(-32602, "Not in this version.")


async def test_a_nonce_that_the_node_does_not_tell_is_not_compared(known: tuple[Ledgerline, Telling]) -> None:
    ledgerline, node = known
    told = {each.kind: each.compared for each in await compared(ledgerline.database_url, node)}
    with altered(node, "nonces", _refused):
        found = await compared(ledgerline.database_url, node)
    assert differing(found) == {}
    left = {each.kind: each.compared for each in found}
    assert told == left | {"protocol_parameter": left["protocol_parameter"] + 1}


async def test_a_known_nonce_outlives_a_node_that_refuses_to_tell_it(known: tuple[Ledgerline, Telling]) -> None:
    """Also if the parameters of its epoch are read again, as after a rollback to an earlier epoch."""
    ledgerline, node = known
    db, writer = [await database.connect(ledgerline.database_url, PREVIEW) for _ in range(2)]
    connection = await ogmios.connect(node.url)
    try:
        before = await db.fetch("SELECT * FROM epoch_parameters ORDER BY epoch_no")
        assert before[-1]["nonce"] is not None
        await db.execute("DELETE FROM ledger_state")
        reader = LedgerReader(PREVIEW, node.url, ledgerline.database_url, writer, asyncio.Lock(), lambda: None)
        with altered(node, "nonces", _refused):
            while await reader._step(connection, db):
                pass
        assert await db.fetch("SELECT * FROM epoch_parameters ORDER BY epoch_no") == before
    finally:
        await connection.close()
        await db.close()
        await writer.close()


async def test_configurations_are_stored_only_with_the_row_that_ends_kept_answers(
    known: tuple[Ledgerline, Telling],
) -> None:
    """What was read at a point that was undone meanwhile is not stored."""
    ledgerline, node = known
    writer, connection = await database.connect(ledgerline.database_url, PREVIEW), await ogmios.connect(node.url)
    configurations = "(SELECT string_agg(configuration::text, '' ORDER BY era) FROM genesis_configuration)"
    state = f"SELECT xmin::text, {configurations} FROM ledger_state"  # noqa: S608 - ours
    try:
        index = await position.read(writer)
        assert index is not None
        reader = LedgerReader(PREVIEW, node.url, ledgerline.database_url, writer, asyncio.Lock(), lambda: None)
        told = await writer.fetchrow(state)
        await writer.execute("UPDATE genesis_configuration SET configuration = '{}'")
        damaged = await writer.fetchrow(state)
        epoch_no = PREVIEW.epoch_of(index.slot_no)
        await reader._begin_epoch(connection, Point(index.slot_no, bytes(32)), epoch_no)
        assert await writer.fetchrow(state) == damaged
        await reader._begin_epoch(connection, index.point, epoch_no)
        stored = await writer.fetchrow(state)
        assert stored[1] == told[1] and stored[0] != told[0]
        while await reader._step(connection, writer):
            pass
    finally:
        await connection.close()
        await writer.close()


def test_a_pools_new_parameters_count_from_the_next_epoch_on(ledgerline: Ledgerline) -> None:
    """Also those of a pool that retires, and of one that is registered again after it has retired."""
    chain = Scripted()
    pool, other, gone = chain.cast.pools[:3]
    ann, bob = chain.cast.stakers[:2]
    chain.block(0, [chain.registration(pool), chain.registration(other), chain.registration(gone)])
    chain.block(5, [join(ann), delegate(ann, pool)], [join(bob), delegate(bob, gone)])
    chain.block(10, [retire(gone, 1)])
    chain.block(EPOCH, [chain.registration(pool, margin="2/100")], [retire(other, 2)])
    chain.block(EPOCH + 1, [chain.registration(gone, margin="3/100")])
    chain.block(EPOCH + 2, [chain.registration(gone, margin="4/100")], [leave(bob)])
    in_force = []
    for slot in (EPOCH + 5, 2 * EPOCH):
        chain.block(slot)
        with indexed(ledgerline, chain) as node:
            assert differing(asyncio.run(compared(ledgerline.database_url, node))) == {}
        in_force.append({id_: each.parameters["margin"] for id_, each in chain.ledger.pools.items()})
    assert in_force == [
        {pool.id: "1/100", other.id: "1/100", gone.id: "3/100"},
        {pool.id: "2/100", gone.id: "4/100"},
    ]


def test_the_indexer_compares_once_in_each_epoch_and_keeps_what_differs(
    ledgerline: Ledgerline, generated: Generated
) -> None:
    chain = generated.fork(len(generated.blocks) - 1, 1, 0)
    with Telling(chain) as node, ledgerline.indexing("preview", node.url) as process:

        def comparison(epoch_no: int) -> dict[str, Any]:
            statement = f"SELECT * FROM node_comparison WHERE epoch_no = {epoch_no}"  # noqa: S608
            found = until(f"epoch {epoch_no} is compared", lambda: ledgerline.rows("preview", statement))
            return {row["kind"]: row for row in found}

        ledgerline.reaches("preview", node.tip(), process)
        found = comparison(chain.ledger.epoch)
        assert found.keys() == set(subjects.KINDS)
        assert not any(row["differing"] for row in found.values())
        node.do(partial(setattr, node.server, "alter", ALTERED["account_pool"][:2]))
        epoch_no = chain.ledger.epoch
        while chain.ledger.epoch == epoch_no:
            node.do(node.server.grow, 1)
        ledgerline.reaches("preview", node.tip(), process)
        found = comparison(epoch_no + 1)
        assert {kind for kind, row in found.items() if row["differing"]} == {"account_pool"}
        row = found["account_pool"]
        assert 0 < row["differing"] < row["compared"]
        for named in json.loads(row["differences"]):
            assert named["name"].startswith("stake_test1") and named["node"] == STRANGER != named["ours"]
        process.says("ledger_state.compared", "account_pool of stake_test1", STRANGER)


@contextmanager
def altered(node: Telling, query: str, change: Callable[[Any], Any]) -> Iterator[None]:
    node.do(setattr, node.server, "alter", (query, change))
    try:
        yield
    finally:
        node.do(setattr, node.server, "alter", None)


@asynccontextmanager
async def comparing(url: str, node: Node) -> AsyncIterator[tuple[Callable[[], Awaitable[bool]], asyncpg.Connection]]:
    """One step of an indexer's comparison, which has made none yet, and the connection with which it reads."""
    db, writer = [await database.connect(url, PREVIEW) for _ in range(2)]
    connection = await ogmios.connect(node.url)
    try:
        await db.execute("DELETE FROM node_comparison")
        comparer = NodeComparer(PREVIEW, node.url, url, writer, asyncio.Lock())
        yield partial(comparer._step, connection, db), db
    finally:
        await connection.close()
        await db.close()
        await writer.close()


async def test_a_block_of_an_epoch_that_is_compared_costs_one_statement(known: tuple[Ledgerline, Telling]) -> None:
    async with comparing(known[0].database_url, known[1]) as (step, db):
        while await step():
            pass
        asked = list[str]()
        db.add_query_logger(lambda each: asked.append(each.query))
        assert not await step()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("query", "change", "lost"),
    [
        ("stakePools", _first(lambda pool: pool | {"margin": "1/0"}), "pool_"),
        ("rewardAccountSummaries", _first(lambda each: each | {"stakePool": {"id": "pool1x"}}), "account_"),
        ("utxo", _first(lambda output: output | {"transaction": {"id": "x"}}), "genesis_output"),
        ("utxo", _first(lambda output: output | {"transaction": {"id": "00" * 32}}), "genesis_output"),
        ("delegateRepresentatives", _registered(lambda each: [each | {"id": "x"}]), "representative_"),
    ],
)
async def test_what_can_not_be_read_is_left_out_and_nothing_else(
    known: tuple[Ledgerline, Telling], query: str, change: Callable[[Any], Any], lost: str
) -> None:
    with altered(known[1], query, change):
        async with comparing(known[0].database_url, known[1]) as (step, db):
            while await step():
                pass
            kinds = [row["kind"] for row in await db.fetch("SELECT kind FROM node_comparison")]
    assert sorted(kinds) == sorted(kind for kind in subjects.KINDS if not kind.startswith(lost))


@pytest.mark.parametrize(
    ("query", "lost"), [("delegateRepresentatives", "representative_"), ("rewardAccountSummaries", "account_")]
)
async def test_what_the_node_does_not_answer_in_time_is_not_asked_again(
    known: tuple[Ledgerline, Telling], monkeypatch: pytest.MonkeyPatch, query: str, lost: str
) -> None:
    asked, call = list[str](), ogmios.Ogmios.call

    async def answered(connection: ogmios.Ogmios, method: str, kind: Any, **params: object) -> Any:
        asked.append(method)
        if method == f"queryLedgerState/{query}":
            raise TimeoutError(method)
        return await call(connection, method, kind, **params)

    monkeypatch.setattr(ogmios.Ogmios, "call", answered)
    async with comparing(known[0].database_url, known[1]) as (step, db):
        with pytest.raises(TimeoutError):
            while await step():
                pass
        while await step():
            pass
        kinds = [row["kind"] for row in await db.fetch("SELECT kind FROM node_comparison")]
    assert asked.count(f"queryLedgerState/{query}") == 1
    assert sorted(kinds) == sorted(kind for kind in subjects.KINDS if not kind.startswith(lost))


async def test_a_node_that_answers_nothing_is_asked_once_for_each_block(
    known: tuple[Ledgerline, Telling], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_: ogmios.Ogmios, method: str, *__: Any, **___: object) -> None:
        if method != "acquireLedgerState":
            raise frames.Unreadable(method)

    monkeypatch.setattr(ogmios.Ogmios, "call", unreadable)
    async with comparing(known[0].database_url, known[1]) as (step, _):
        async with asyncio.timeout(PATIENCE_S):
            while await step():
                pass
