"""Kept answers, without servers: who waits for whom, what is dropped, and how much memory they take."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import pytest

from api.http.bodies import Encoded
from api.repeats import kept
from api.repeats.kept import KeptAnswers, OfServer, State
from api.sources.chain_servers import ChainServer
from shared.network import MAINNET
from tests.patience import PATIENCE_S

QUESTION = ("/v1/pools/x", None)
EARLY, LATE = (State(slot_no, bytes([slot_no]) * 32, UUID(int=1), slot_no, None) for slot_no in (1, 2))


class Index:
    """An index whose state is read through `connection`, like a ChainServer's, when `gate` is open."""

    def __init__(self) -> None:
        self.state, self.reads, self.fails = EARLY, 0, False
        self.gate = asyncio.Event()
        self.gate.set()

    @asynccontextmanager
    async def connection(self, _network: Any) -> AsyncIterator["Index"]:
        """Itself."""
        if self.fails:
            raise ConnectionError
        yield self

    async def fetchrow(self, *_: Any) -> Any:
        """The state when the read began."""
        self.reads += 1
        state = self.state
        await self.gate.wait()  # the gate of that time: a later one is for later reads
        return state


class Handler:
    """A handler that answers when `gate` is open, and counts its calls."""

    def __init__(self, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> None:
        self.body, self.headers, self.calls, self.fails = body, headers or {}, 0, False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> Encoded:
        """The answer."""
        self.calls += 1
        answer = Encoded(200, {}, self.headers, self.body + b"%d" % self.calls, None)
        await self.gate.wait()
        if self.fails:
            raise ValueError
        return answer


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index in the state EARLY."""

    class Query:
        async def one(self, db: Index) -> State:
            row: State = await db.fetchrow()
            return row

    monkeypatch.setattr(kept, "_state", Query())
    return Index()


def answers_of(index: Index, max_bytes: int = kept.MAX_BYTES) -> tuple[KeptAnswers, OfServer]:
    """No kept answers yet."""
    every = KeptAnswers(max_bytes)
    return every, every.of(cast(ChainServer, index), MAINNET)


async def ask(answers: OfServer, make: Handler, question: kept.Question = QUESTION, *, at_once: bool = True) -> bytes:
    """The body of the answer."""
    return (await answers.answer(question, make, at_once=lambda: at_once)).body


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_answer_is_kept_while_the_state_is_the_same(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    assert [await ask(answers, make) for _ in range(3)] == [b"{}1"] * 3
    index.state = LATE
    assert await ask(answers, make) == b"{}2"
    index.state = EARLY
    assert await ask(answers, make) == b"{}3", "what was dropped does not come back with a fork"
    assert await ask(answers, make, ("/v1/pools/x", "gzip")) == b"{}4"


async def test_each_kept_answer_follows_a_read_that_began_after_its_request(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    await ask(answers, make)
    index.gate.clear()
    first = asyncio.create_task(ask(answers, make))
    await settle()
    index.state = LATE  # after the read of `first` began
    later = [asyncio.create_task(ask(answers, make)) for _ in range(5)]
    await settle()
    index.gate.set()
    assert await first == b"{}1"
    assert await asyncio.gather(*later) == [b"{}2"] * 5
    assert index.reads == 3, "requests that wait share one read"


async def test_a_read_that_is_stuck_delays_no_later_one(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_HOLDS_UP_FOR_S", 0.01)
    (_, answers), make = answers_of(index), Handler()
    await ask(answers, make)
    free, stuck = index.gate, asyncio.Event()
    index.gate = stuck
    first = asyncio.create_task(ask(answers, make))
    await settle()
    index.state, index.gate = LATE, free
    async with asyncio.timeout(PATIENCE_S):
        assert [await ask(answers, make) for _ in range(2)] == [b"{}2"] * 2
    assert not first.done()
    stuck.set()
    assert await first == b"{}2", "an answer of EARLY would be older than one that was given"
    assert (await answers.tip()).slot_no == LATE.slot_no
    assert make.calls == 2, "what is kept in LATE stays"


async def test_reads_that_end_in_their_order_all_count(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_HOLDS_UP_FOR_S", 0.01)
    (_, answers), make = answers_of(index), Handler()
    await ask(answers, make)
    gates = [asyncio.Event() for _ in range(2)]
    waiting = []
    for index.state, index.gate in zip((LATE, EARLY), gates, strict=True):
        reads = index.reads
        waiting.append(asyncio.create_task(ask(answers, make)))
        async with asyncio.timeout(PATIENCE_S):
            while index.reads == reads:
                await asyncio.sleep(0.001)
    for gate, asked, body in zip(gates, waiting, (b"{}2", b"{}3"), strict=True):
        gate.set()
        assert await asked == body


async def test_a_question_of_the_first_time_reads_no_state(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    for number in range(100):
        await ask(answers, make, (f"/{number}", None))
    assert index.reads == 1


async def test_an_answer_of_a_later_state_is_not_kept_in_the_known_one(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    await ask(answers, make, ("/another", None))
    index.state = LATE
    assert await ask(answers, make) == b"{}2", "made in LATE, while EARLY is known"
    assert await ask(answers, make) == b"{}3"
    assert await ask(answers, make) == b"{}3"


async def test_the_same_question_waits_for_the_answer_that_is_being_made(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    make.gate.clear()
    asked = [asyncio.create_task(ask(answers, make)) for _ in range(5)]
    await settle()
    asked[1].cancel()
    make.gate.set()
    bodies = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(bodies.pop(1), asyncio.CancelledError)
    assert (bodies, make.calls) == ([b"{}1"] * 4, 1)


@pytest.mark.parametrize("end", ["canceled", "failed"])
async def test_who_waits_for_an_answer_that_fails_makes_its_own(index: Index, end: str) -> None:
    (_, answers), make, own = answers_of(index), Handler(), Handler()
    make.gate.clear()
    leader = asyncio.create_task(ask(answers, make))
    await settle()
    waiting = [asyncio.create_task(ask(answers, own)) for _ in range(2)]
    await settle()
    make.fails = end == "failed"
    if end == "failed":
        make.gate.set()
    else:
        leader.cancel()
    assert sorted(await asyncio.gather(*waiting)) == [b"{}1", b"{}2"]
    with pytest.raises(ValueError if end == "failed" else asyncio.CancelledError):
        await leader
    assert make.calls == 1, "an error is not kept"


async def test_nobody_waits_for_an_answer_whose_maker_waits_for_its_turn(index: Index) -> None:
    (_, answers), late, own = answers_of(index), Handler(), Handler()
    late.gate.clear()
    waiting = asyncio.create_task(ask(answers, late, at_once=False))
    await settle()
    assert await ask(answers, own) == b"{}1"
    late.gate.set()
    assert await waiting == b"{}1"
    assert own.calls == 1


async def test_a_turn_that_was_lost_while_the_state_was_read_is_waited_for_by_nobody(index: Index) -> None:
    (_, answers), late, own = answers_of(index), Handler(), Handler()
    late.gate.clear()
    index.gate.clear()
    has_turn = True
    waiting = asyncio.create_task(answers.answer(QUESTION, late, at_once=lambda: has_turn))
    await settle()
    has_turn = False
    index.gate.set()
    await settle()
    assert late.calls == 1
    assert await ask(answers, own) == b"{}1"
    assert not waiting.done()
    late.gate.set()
    await waiting


async def test_a_failed_read_is_tried_again(index: Index) -> None:
    (_, answers), make = answers_of(index), Handler()
    index.fails = True
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await ask(answers, make)
    index.fails = False
    assert await ask(answers, make) == b"{}1"


async def test_memory_stays_within_the_bound(index: Index) -> None:
    every, answers = answers_of(index, 100_000)
    other = every.of(cast(ChainServer, Index()), MAINNET)
    often, make = Handler(b"often"), Handler(bytes(5_000))
    await ask(other, Handler(bytes(30_000)))
    for number in range(100):
        assert await ask(answers, often) == b"often1", "what is used is kept"
        await ask(answers, make, (f"/{number}", None))
        assert every.size_bytes <= 100_000
    assert other.size_bytes > 30_000, "the one that has the most gives room"
    index.state = LATE
    await ask(answers, often)
    assert answers.size_bytes < 2_000
    long = Handler(bytes(1_000_000))
    assert [len(await ask(answers, long, ("/long", None))) for _ in range(2)] == [1_000_001] * 2
    assert (long.calls, answers.size_bytes < 2_000) == (2, True)


async def test_memory_counts_headers(index: Index) -> None:
    every, answers = answers_of(index)
    await ask(answers, Handler())
    without = every.size_bytes
    await ask(answers, Handler(headers={"Link": "x" * 6_000}), ("/v1/pools/y", None))
    assert every.size_bytes == 2 * without + 6_000
    index.state = LATE
    await ask(answers, Handler())
    assert every.size_bytes == without


async def statements(answers: OfServer, index: Index, *states: State, fault: Exception | None = None) -> None:
    """As many statements as states in one `unmoved`, each after the index has moved to that state; then `fault`."""
    async with answers.unmoved(cast(Any, index)) as db:
        for state in states:
            index.state = state
            await db.fetchrow("")
        if fault is not None:
            raise fault


@pytest.mark.parametrize("fault", [None, ValueError()])
async def test_statements_that_may_have_seen_two_states_are_not_trusted(index: Index, fault: Exception | None) -> None:
    _, answers = answers_of(index)
    await answers._read_state()
    with pytest.raises(kept.Moved):
        await statements(answers, index, EARLY, LATE, fault=fault)
    assert answers._known_until == 0.0, "the next request reads the state"


async def test_statements_that_have_seen_one_state_are_trusted(index: Index) -> None:
    _, answers = answers_of(index)
    await answers._read_state()
    await statements(answers, index, EARLY, EARLY)
    with pytest.raises(ValueError, match="missing"):
        await statements(answers, index, EARLY, EARLY, fault=ValueError("missing"))
    reads = index.reads
    await statements(answers, index, LATE)
    assert index.reads == reads + 1, "a single statement is a snapshot"


async def test_a_handler_may_compare_the_tip_itself(index: Index) -> None:
    _, answers = answers_of(index)
    await answers._read_state()
    async with answers.unmoved(cast(Any, index)) as db:
        for _ in range(2):
            await db.fetchrow("")
        kept.require_same(db, has_same_tip=True)
    assert index.reads == 3
    with pytest.raises(kept.Moved):
        async with answers.unmoved(cast(Any, index)) as db:
            kept.require_same(db, has_same_tip=False)


async def test_constants_stay_until_the_numbering_changes(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_NUMBERING_KNOWN_FOR_S", 0.0)
    _, answers = answers_of(index)
    await answers._read_state()
    constant = Encoded(200, {}, {}, b"{}", None)
    answers.keep_constant("genesis", constant)
    index.state = LATE
    assert await answers.constant("genesis") is constant
    index.state = State(3, bytes(32), UUID(int=2), 3, None)
    assert await answers.constant("genesis") is None
