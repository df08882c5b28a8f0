"""Limits when Valkey loses its data, is unreachable, or has its clock set back. Decision 0021."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from api.keys import valkey as valkeys
from api.keys.limits import scripts
from api.keys.limits.shared import SharedLimits
from api.keys.limits.state import HOLD_S, OPEN
from api.keys.limits.verdicts import AskPostgres, Barred, KeyLease, Verdict
from api.keys.restrictions import KeyUse, Restrictions
from tests.api.client import Client, serving
from tests.api.conftest import IssueKey
from tests.api.minutes import good_key, shorten_minute
from tests.api.own_valkey import OwnValkey
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED
from tests.conftest import REDIS_DATABASES
from tests.patience import PATIENCE_S, OwnTime
from tests.processes.relay import TcpRelay

KEY = bytes(32)
WINDOW_S = 3.0


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A separate Valkey for this test."""
    server = OwnValkey(tmp_path / "valkey")
    server.start()
    yield server
    server.kill()


@asynccontextmanager
async def processes(url: str, count: int) -> AsyncIterator[list[SharedLimits]]:
    """The limits of `count` API processes, each with its own connection and heartbeats."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(count):
            minutes = SharedLimits(await stack.enter_async_context(valkeys.opened(url)))
            beating = asyncio.create_task(minutes.beat())
            stack.callback(beating.cancel)
            found.append(minutes)
        async with asyncio.timeout(PATIENCE_S):
            while any((part.processes, part.state) != (count, OPEN) for part in (each.participant for each in found)):
                await asyncio.sleep(0.02)
        yield found


@asynccontextmanager
async def served(environment: dict[str, str], count: int) -> AsyncIterator[list[Client]]:
    """`count` API processes as regards limits, which know of each other."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(serving(environment)) for _ in range(count)]
        await all_know_each_other(environment["REDIS_URL"], count)
        yield clients


async def all_know_each_other(url: str, count: int) -> None:
    """Wait until `count` processes have sent two heartbeats since the last of them started."""
    async with Redis.from_url(url) as client, asyncio.timeout(PATIENCE_S):
        for _ in range(2):
            seconds, microseconds = await client.time()
            while await client.zcount("ledgerline:beats", seconds * 1_000_000 + microseconds, "+inf") < count:
                await asyncio.sleep(0.02)


async def admitted(minutes: SharedLimits, told: KeyLease) -> bool:
    """Whether one request is admitted, with or without Valkey, as in Callers."""
    try:
        taken = None if minutes.away else await minutes.take(KEY, told)
    except (OSError, RedisError):
        taken = None
    if not isinstance(taken, Verdict):
        taken = minutes.take_alone(told.key)
    assert isinstance(taken, Verdict)
    return taken.admitted


def fullest(moments: Sequence[tuple[float, float]], limit: int, window_s: float) -> bool:
    """Whether more than `limit` of these were certainly within one window. Each has the times of request and answer."""
    ordered = sorted(moments)
    return any(later[1] - earlier[0] < window_s for earlier, later in zip(ordered, ordered[limit:], strict=False))


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_key_does_not_get_its_limit_twice_when_valkey_loses_its_data(
    environment: dict[str, str], redis_url: str, issue_key: IssueKey, count: int
) -> None:
    key = await issue_key(per_minute=30)
    async with served(environment, count) as clients, Redis.from_url(redis_url) as client:
        found = []
        for flush in (False, True, True):
            if flush:
                await client.flushdb()
            replies = await asyncio.gather(*(api.get(CHAIN_PATH, key) for api in clients for _ in range(40)))
            found += [reply for reply in replies if reply.status == NOTHING_INDEXED]
        assert len(found) == 30
        assert (await clients[0].get(CHAIN_PATH, await issue_key(per_minute=1))).status == NOTHING_INDEXED


async def test_no_window_admits_more_than_the_limit_when_data_are_lost_at_any_time(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a minute of 3 s, and processes that send requests at random, each busy or idle for a while.

    The seeds run at the same time, each in its own database.
    """
    shorten_minute(monkeypatch, WINDOW_S)
    place, _, first = redis_url.rpartition("/")
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(lose_data(f"{place}/{int(first) + seed}", seed) for seed in range(REDIS_DATABASES)))


async def lose_data(url: str, seed: int) -> None:
    """Send requests with a key, and empty the database at random; every minute must reach and not exceed the limit.

    What has left the window is granted again, otherwise it never ends.
    """
    limit, chance = 20, random.Random(seed)
    moments: list[tuple[float, float]] = []
    refused = flushes = 0
    told = KeyLease(good_key(limit))
    ends_at = time.monotonic() + 9

    def goes_on() -> bool:
        """On a busy machine it takes longer until the limit was met in several minutes and data were lost in them."""
        return time.monotonic() < ends_at or refused <= 20 or flushes < 3 or len(moments) < limit * 2

    async def ask(minutes: SharedLimits, busy: random.Random) -> None:
        nonlocal refused
        while goes_on():
            before = time.monotonic()
            if await admitted(minutes, told):
                moments.append((before, time.monotonic()))
            else:
                refused += 1
            await asyncio.sleep(busy.choice([0, 0.01, 0.05, 0.3]))

    async with processes(url, 2 + seed % 2) as found, Redis.from_url(url) as client:
        asking = [asyncio.create_task(ask(minutes, random.Random(chance.random()))) for minutes in found]
        while goes_on():
            await asyncio.sleep(chance.choice([0.05, 0.3, 1, 2]))
            await client.flushdb()
            flushes += 1
        await asyncio.gather(*asking)
        assert not any(minutes.away for minutes in found), seed
    assert not fullest(moments, limit, WINDOW_S), seed


@pytest.mark.parametrize("count", [2, 3])
async def test_processes_share_the_limit_while_valkey_is_away_and_report_afterwards(
    environment: dict[str, str], valkey: OwnValkey, issue_key: IssueKey, count: int
) -> None:
    key, used, scarce = [await issue_key(per_minute=limit) for limit in (12, 12, 1)]
    async with served(environment | {"REDIS_URL": valkey.url}, count) as clients:
        assert (await clients[0].get(CHAIN_PATH, used)).headers["RateLimit-Remaining"] == "11"
        valkey.kill()

        async def ask(key: str) -> list[int]:
            """The number of requests that each process admits."""
            statuses = [[(await api.get(CHAIN_PATH, key)).status for _ in range(14)] for api in clients]
            return [found.count(NOTHING_INDEXED) for found in statuses]

        assert await ask(key) == [12 // count] * count
        assert await ask(used) == [12 // count - 1] + [12 // count] * (count - 1)
        assert await ask(scarce) == [1] * count
        valkey.start()
        await all_know_each_other(valkey.url, count)
        for one in (key, used, scarce):
            async with asyncio.timeout(PATIENCE_S):
                assert await ask(one) == [0] * count
        assert (await clients[0].get(CHAIN_PATH, await issue_key(per_minute=1))).status == NOTHING_INDEXED


async def test_admissions_during_an_outage_count_for_all_processes_if_the_data_survived(
    environment: dict[str, str], redis_url: str, issue_key: IssueKey
) -> None:
    key = await issue_key(per_minute=10)
    relays = [TcpRelay(), TcpRelay()]
    async with AsyncExitStack() as stack:
        clients = []
        for relay in relays:
            stack.callback(relay.end)
            relay.open()
            clients.append(
                await stack.enter_async_context(serving(environment | {"REDIS_URL": relay.in_front_of(redis_url)}))
            )
        await all_know_each_other(redis_url, 2)
        for relay in relays:
            relay.close()
        statuses = [(await api.get(CHAIN_PATH, key)).status for api in clients for _ in range(7)]
        assert statuses.count(NOTHING_INDEXED) == 10
        for relay in relays:
            relay.open()
        for _ in range(20):
            assert [(await api.get(CHAIN_PATH, key)).status for api in clients] == [429, 429]
            await asyncio.sleep(0.1)


async def test_a_silent_process_delays_others_only_briefly(redis_url: str) -> None:
    """It may have admitted the whole limit, so the others grant only their shares until its minute is over."""
    told = KeyLease(good_key(10))
    async with (
        processes(redis_url, 2) as (speaking, _),
        Redis.from_url(redis_url) as client,
        valkeys.opened(redis_url) as connection,
    ):
        silent = SharedLimits(connection)
        await silent._heartbeat()
        async with asyncio.timeout(PATIENCE_S):
            while speaking.participant.processes != 3:
                await asyncio.sleep(0.02)
        await client.flushdb()
        took = OwnTime()
        assert isinstance(await speaking.take(KEY), AskPostgres)
        answers = [await speaking.take(KEY, told) for _ in range(5)]
        assert took.seconds < HOLD_S + 1
        assert [isinstance(taken, Verdict) and taken.admitted for taken in answers] == [True] * 3 + [False] * 2
        another = KeyLease(good_key(10))
        together = await asyncio.gather(*(speaking.take(bytes(31) + b"1", another) for _ in range(5)))
        assert sum(isinstance(taken, Verdict) and taken.admitted for taken in together) == 3
        refused = answers[-1]
        assert isinstance(refused, Verdict)
        assert 50 <= refused.reset_s <= 60
        elsewhere = KeyLease(msgspec.structs.replace(told.key, restrictions=Restrictions(scopes=("pools",))))
        assert await speaking.take(KEY, elsewhere, KeyUse("assets")) == Barred("scope")
        silent.participant.own.record(told.key.credential_id, True, 9, time.monotonic())
        assert isinstance(taken := await silent.take(KEY, told), Verdict)
        assert (taken.admitted, taken.remaining) == (True, 5)
        async with asyncio.timeout(PATIENCE_S):
            while not (isinstance(taken := await speaking.take(KEY, told), Verdict) and taken.remaining == 4):
                await asyncio.sleep(0.02)


async def test_a_clock_set_back_refuses_a_key_for_at_most_a_minute(redis_url: str) -> None:
    told = KeyLease(good_key(3))
    async with valkeys.opened(redis_url) as connection, Redis.from_url(redis_url) as client:
        minutes = SharedLimits(connection)
        assert [await admitted(minutes, told) for _ in range(4)] == [True] * 3 + [False]
        (minute,) = await client.keys("ledgerline:minute:*")
        hour_us = 3_600_000_000
        for index, moment in enumerate(await client.lrange(minute, 0, -1)):
            await client.lset(minute, index, str(int(moment) + hour_us))
        for field in ("began", "opens"):
            await client.hincrby("ledgerline:limits", field, hour_us)
        await client.zunionstore("ledgerline:beats", {"ledgerline:beats": 1_000})
        refused = await minutes.take(KEY, told)
        assert isinstance(refused, Verdict)
        assert (refused.admitted, refused.reset_s) == (False, 60)
        another = SharedLimits(connection)
        assert isinstance(taken := await another.take(bytes(31) + b"1", KeyLease(good_key(3))), Verdict)
        assert taken.admitted


async def test_a_repeated_report_counts_once(redis_url: str) -> None:
    told = KeyLease(good_key(10))
    async with valkeys.opened(redis_url) as connection, Redis.from_url(redis_url) as client:
        minutes = SharedLimits(connection)
        for _ in range(4):
            assert await admitted(minutes, told)
        await client.flushdb()
        await minutes._heartbeat()
        report = minutes.participant.next_report(time.monotonic())
        assert report is not None
        for _ in range(2):  # as where the reply is lost
            assert await minutes._run(scripts.TELL, scripts.tell(minutes.participant.name, report))
        (minute,) = await client.keys("ledgerline:minute:*")
        assert await client.llen(minute) == 4


async def test_many_admissions_are_reported_in_batches(redis_url: str) -> None:
    keys = {number.to_bytes(32): KeyLease(good_key(10_000)) for number in range(300)}
    async with valkeys.opened(redis_url) as connection, Redis.from_url(redis_url) as client:
        minutes = SharedLimits(connection)
        for told in keys.values():
            for _ in range(20):
                minutes.participant.own.record(told.key.credential_id, True, 9, time.monotonic())
        await client.flushdb()
        for key, told in keys.items():
            taken = await minutes.take(key, told)
            assert isinstance(taken, Verdict)
            assert taken.remaining == 10_000 - 21
