"""For which pool a reward counts, by rows of a chain: in the sums of pools and in the list of an account alike."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from api.ask import Notes
from api.blockfrost import rewards
from api.blockfrost.paging import Page
from api.chain.pools import show_pool_id
from indexer.ledger import reader
from shared import database
from shared.ledger import tx_id_of
from shared.network import PREVIEW

FIRST, OWN, OTHER = 1, 2, 3
POOLS = {pool_no: bytes([pool_no]) * 28 for pool_no in (FIRST, OWN, OTHER)}
ACCOUNT, ELSE = 7, 8
RAW = {ACCOUNT: b"\xe0" + b"a" * 28, ELSE: b"\xe0" + b"b" * 28}
PAID = 700
HELD = b"".join([bytes([ACCOUNT]), PAID.to_bytes(8), PAID.to_bytes(8)])  # an entry of reward_epoch


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Epoch 12 has paid an account, for epoch 10, in which all pools made blocks."""
    connection = await database.connect(database_url, PREVIEW)
    await connection.executemany("INSERT INTO pool (pool_no, pool_id) VALUES ($1, $2)", POOLS.items())
    await connection.executemany("INSERT INTO stake (stake_no, raw) VALUES ($1, $2)", RAW.items())
    await connection.executemany("INSERT INTO pool_epoch (pool_no, epoch_no, blocks) VALUES ($1, 10, 1)", zip(POOLS))
    await connection.execute("INSERT INTO reward_round (epoch_no) VALUES (11), (12)")
    await connection.execute("INSERT INTO reward_epoch (chunk, epoch_no, entries) VALUES (0, 12, $1)", HELD)
    yield connection
    await connection.close()


@dataclass
class Registration:
    """A registration of a pool in an epoch that names an account."""

    epoch_no: int
    account: int = ACCOUNT
    pool_no: int = OWN

    async def insert(self, db: asyncpg.Connection, place: int) -> None:
        at = tx_id_of(PREVIEW.epoch_start(self.epoch_no), 0), self.pool_no, place
        await db.execute("INSERT INTO pool_update (tx_id, pool_no, place, parameters) VALUES ($1, $2, $3, '')", *at)
        named = "INSERT INTO pool_reward_account (tx_id, pool_no, place, stake_no) VALUES ($1, $2, $3, $4)"
        await db.execute(named, *at, self.account)


@dataclass
class Retirement:
    """The retirement of a pool at the beginning of an epoch, announced in the one before."""

    epoch_no: int
    pool_no: int = OWN

    async def insert(self, db: asyncpg.Connection, place: int) -> None:
        at = tx_id_of(PREVIEW.epoch_start(self.epoch_no - 1), 1), self.pool_no, place
        announced = "INSERT INTO pool_retirement (tx_id, pool_no, place, epoch_no) VALUES ($1, $2, $3, $4)"
        await db.execute(announced, *at, self.epoch_no)
        await db.execute("INSERT INTO pool_reaping (pool_no, epoch_no) VALUES ($1, $2)", self.pool_no, self.epoch_no)


@dataclass
class Delegation:
    """A delegation of the account in an epoch, in the stake snapshot for epoch 10."""

    epoch_no: int
    pool_no: int = OTHER

    async def insert(self, db: asyncpg.Connection, place: int) -> None:
        at = tx_id_of(PREVIEW.epoch_start(self.epoch_no), 0), self.pool_no, place
        delegated = (
            "INSERT INTO stake_event (tx_id, pool_no, place, stake_no, epoch_no, kind) "
            "VALUES ($1, $2, $3, $4, $5, 'delegation')"
        )
        await db.execute(delegated, *at, ACCOUNT, self.epoch_no)
        await insert_member(db, self.pool_no, ACCOUNT)


async def insert_member(db: asyncpg.Connection, pool_no: int, account: int) -> None:
    """Put an account into the stake snapshot for epoch 10."""
    snapshot = (
        "INSERT INTO stake_snapshot (epoch_no, pool_no, first_stake_no, first_seq, entries) VALUES (10, $1, $2, 0, $3)"
    )
    await db.execute(snapshot, pool_no, account, account.to_bytes(4) + bytes(8))


@pytest.mark.parametrize(
    "facts, expected",
    [
        ([Delegation(3)], ("member", OTHER)),
        ([Registration(3)], ("leader", OWN)),
        ([Registration(8)], ("leader", OWN)),
        ([Registration(9)], None),
        ([Registration(3), Registration(7, ELSE)], None),
        ([Registration(3), Registration(8, ELSE)], ("leader", OWN)),  # a change counts an epoch later than a first one
        ([Registration(3, ELSE), Registration(8)], None),
        ([Registration(8), Registration(8, ELSE)], ("leader", OWN)),
        ([Registration(3), Retirement(8), Registration(8, ELSE)], None),  # the first since it retired
        ([Registration(3), Retirement(6), Registration(8, ELSE)], None),
        ([Registration(3), Retirement(6), Registration(7), Registration(8, ELSE)], ("leader", OWN)),
        ([Registration(3), Retirement(9), Registration(8, ELSE, OTHER)], ("leader", OWN)),
        ([Registration(3), Registration(3, pool_no=FIRST)], ("leader", FIRST)),
        ([Registration(3), Delegation(3)], ("member", OTHER)),  # anyone can register a pool that names the account
        ([Registration(3), Registration(3, pool_no=FIRST), Delegation(3, OWN)], ("leader", OWN)),
    ],
)
async def test_a_reward_counts_for_the_pool_that_history_has_a_reason_for(
    db: asyncpg.Connection, facts: list[Registration | Retirement | Delegation], expected: tuple[str, int] | None
) -> None:
    await insert_member(db, OTHER, ELSE)
    for place, fact in enumerate(facts):
        await fact.insert(db, place)
    earned = {each.pool_no: each.lovelace for each in await reader.earnings(db, PREVIEW, 12) if each.lovelace}
    told = await rewards.page(db, RAW[ACCOUNT], Page(), PREVIEW, Notes())
    if expected is None:
        assert earned == {} and told == []
    else:
        kind, pool_no = expected
        assert earned == {pool_no: PAID}
        assert [(each.epoch, each.amount, each.type) for each in told] == [(10, str(PAID), kind)]
        assert told[0].pool_id == show_pool_id(POOLS[pool_no])


async def test_the_last_delegation_of_an_epoch_counts(db: asyncpg.Connection) -> None:
    for place, pool_no in enumerate((OWN, FIRST, OTHER)):
        await Delegation(3, pool_no).insert(db, place)
    known = await rewards.past(db, RAW[ACCOUNT])
    assert known is not None and (known[1].delegated(4), known[1].delegated(5)) == (None, OTHER)


async def test_a_pool_that_made_no_blocks_takes_no_reward(db: asyncpg.Connection) -> None:
    await Delegation(3).insert(db, 0)
    await Registration(3).insert(db, 1)
    await db.execute("DELETE FROM pool_epoch WHERE pool_no <> $1", OWN)
    earned = {each.pool_no: each.lovelace for each in await reader.earnings(db, PREVIEW, 12)}
    assert earned == {OTHER: 0, OWN: PAID}
    (told,) = await rewards.page(db, RAW[ACCOUNT], Page(), PREVIEW, Notes())
    assert told.type == "leader" and told.pool_id == show_pool_id(POOLS[OWN])


async def test_what_an_incomplete_round_has_stored_is_forgotten_when_a_later_epoch_begins(
    db: asyncpg.Connection,
) -> None:
    for epoch_no in (10, 13, 15):  # 12 is complete
        await db.execute("INSERT INTO reward_epoch (chunk, epoch_no, entries) VALUES (0, $1, $2)", epoch_no, HELD)
    left = "SELECT array_agg(epoch_no ORDER BY epoch_no) FROM reward_epoch"
    for epoch_no, expected in ((12, [10, 12, 13, 15]), (14, [10, 12, 15]), (15, [10, 12])):
        await reader._forget_begun_round.run(db, epoch_no)
        assert await db.fetchval(left) == expected
