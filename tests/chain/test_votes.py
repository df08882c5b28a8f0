"""Who votes for whom: index, devnet and model agree on chains that are full of delegations and representatives.

All three have the rules from cardano-ledger, and share no code: the index keeps what ends delegations, the devnet and
the model keep the ledger's sets.
"""

from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from devnet.addresses import LedgerCredential
from devnet.server import NodeServer
from indexer.store import beginning
from indexer.sync import phase
from indexer.verify.tables import votes
from shared import database
from shared.network import PREVIEW
from tests.chain.dump import differences, dump
from tests.chain.followers import following, reaches
from tests.chain.harness import Json
from tests.chain.scripted import Scripted, join, leave, resign, stand, vote
from tests.chain.test_follow import rewards_are_read
from tests.chain.voting import (
    ABSTAIN,
    CASES,
    EPOCH,
    FORK,
    NO_CONFIDENCE,
    ONE,
    THREE,
    TWO,
    Forking,
    account_of,
    cases,
    modelled,
    played,
    raw,
    staker_of,
)


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def indexed(db: asyncpg.Connection) -> dict[bytes, bytes]:
    """The representative of each account that has one: reward account -> credential as in the CDDL."""
    rows = await db.fetch("SELECT raw, representative FROM represented JOIN stake USING (stake_no)")
    return {row["raw"]: row["representative"] for row in rows}


async def registered(db: asyncpg.Connection) -> dict[bytes, tuple[int, str | None]]:
    """Deposit and URL of each registered representative."""
    rows = await db.fetch("SELECT representative, deposit, anchor_url FROM registered_representative")
    return {
        row["representative"]: (row["deposit"], None if row["anchor_url"] is None else row["anchor_url"].decode())
        for row in rows
    }


def in_cddl(representative: Json) -> bytes:
    if representative["type"] != "registered":
        return {"abstain": b"\2", "noConfidence": b"\3"}[representative["type"]]
    return bytes((representative["from"] == "script",)) + bytes.fromhex(representative["id"])


async def agree(db: asyncpg.Connection, chain: Scripted) -> None:
    """Index, devnet and model have the same votes and representatives; each end of a delegation has its reason."""
    of_devnet = played(chain)
    assert {account_of(who): each for who, each in of_devnet.items()} == modelled(chain)
    assert await indexed(db) == {raw(who): in_cddl(each) for who, each in of_devnet.items()}
    assert await registered(db) == {
        bytes((who.is_script,)) + bytes.fromhex(who.hash): (
            each.deposit,
            None if each.anchor is None else each.anchor["url"],
        )
        for who, each in chain.ledger.representatives.items()
    }
    async with db.transaction(isolation="repeatable_read", readonly=True):
        assert (await votes.check(db, PREVIEW, from_origin=True)).differences == []


async def test_the_index_has_every_case(db: asyncpg.Connection, database_url: str) -> None:
    chain, expected = cases()
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        found = await indexed(db)
        cddl = {raw(who): in_cddl(each) for who, each in expected.items()}
        wrong = [
            name
            for number, name in enumerate(CASES, 1)
            if found.get(raw(staker_of(number))) != cddl.get(raw(staker_of(number)))
        ]
        assert wrong == []
        await agree(db, chain)
        assert await db.fetch("SELECT epoch_no, major FROM protocol_fork") == [(FORK, 10)]


def certificate(random: Random, chain: Scripted) -> Json | None:
    """Any certificate that is valid now."""
    ledger = chain.ledger
    staker = random.choice(chain.cast.stakers[:6])
    who = random.choice([ONE, TWO, THREE])
    known = LedgerCredential(who["from"], who["id"]) in ledger.representatives
    match random.randrange(8):
        case 0 | 1:
            if not known:
                anchor = {"metadata": {"url": f"https://{random.random()}.example.org", "hash": "ab" * 32}}
                return stand(who) | (anchor if random.random() < 0.5 else {})
            return resign(who)
        case 2 if known:
            return {"type": "delegateRepresentativeUpdate", "delegateRepresentative": who}
        case 3 if staker in ledger.accounts:
            return leave(staker)
        case _ if staker not in ledger.accounts:
            return join(staker)
        case 4:
            return vote(staker, random.choice([ABSTAIN, NO_CONFIDENCE]))
        case _ if known or ledger.major < 10:
            return vote(staker, who)
    return None


def grow(random: Random, chain: Scripted, blocks: int) -> None:
    """Append blocks of one or more certificates, often several in a transaction, about ten blocks to an epoch."""
    for _ in range(blocks):
        slot = (chain.blocks[-1].slot if chain.blocks else 0) + random.randint(1, EPOCH // 5)
        chain.ledger.enter(slot)
        transactions: list[list[Json]] = [[] for _ in range(random.randint(0, 3))]
        twin = chain.ledger.copy()
        for certificates in transactions:
            for _ in range(random.randint(1, 4)):
                if (made := certificate(random, chain)) is not None:
                    certificates.append(made)
                    chain.ledger._certify(made)
        chain.ledger = twin
        chain.block(slot, *[certificates for certificates in transactions if certificates])


@pytest.mark.parametrize("seed", range(4))
async def test_votes_agree_over_forks_of_chain_and_protocol(
    db: asyncpg.Connection, database_url: str, seed: int
) -> None:
    """The chain forks again and again, often before the fork of the protocol; the index is that of the last chain."""
    random, chain = Random(seed), Forking(seed)
    grow(random, chain, 30)
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await agree(db, chain)
        for _ in range(8):
            chain = chain.fork(len(chain.blocks) - 1 - random.randint(1, min(len(chain.blocks) - 1, 25)))
            grow(random, chain, random.randint(1, 25))
            node.switch(chain)
            await reaches(db, node, task)
            await agree(db, chain)
        await rewards_are_read(db)
        forked = await dump(db, PREVIEW.schema)
    await beginning.erase(db)
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await rewards_are_read(db)
        assert differences(await dump(db, PREVIEW.schema), forked) == []


async def test_bulk_has_the_votes_that_a_live_index_has(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase, "BULK_FROM_BLOCKS", 40)
    monkeypatch.setattr(phase, "SECURITY_PARAMETER", 20)
    random, chain = Random(7), Forking(7)
    grow(random, chain, 90)
    assert PREVIEW.epoch_of(chain.blocks[60].slot) > FORK
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
        await agree(db, chain)
        assert await db.fetch("SELECT epoch_no FROM protocol_fork") == [(FORK,)]


async def test_who_registered_before_the_first_block_is_registered_at_the_fork(
    db: asyncpg.Connection, database_url: str
) -> None:
    """Of one representative the index knows an update, of one nothing, and of one that it has retired."""
    chain = Forking()
    updated, unknown, retired = [LedgerCredential("verificationKey", digit * 56) for digit in "456"]
    stakers = dict(zip((updated, unknown, retired), chain.cast.stakers, strict=False))
    chain.block(0, [stand(told_of(retired)), resign(told_of(retired))])
    for who, staker in stakers.items():
        chain.block(len(chain.blocks), [join(staker), vote(staker, told_of(who))])
    update = {"type": "delegateRepresentativeUpdate", "delegateRepresentative": told_of(updated)}
    chain.block(10, [stand(told_of(updated)), update])
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
    await db.execute("DELETE FROM representative_event WHERE kind = 'registration'")
    await db.execute("UPDATE tip SET first_block_no = 1")
    chain.block(FORK * EPOCH)
    async with NodeServer(chain) as node, following(database_url, node) as task:
        await reaches(db, node, task)
    assert (await indexed(db)).keys() == {raw(stakers[updated]), raw(stakers[unknown])}
    async with db.transaction(isolation="repeatable_read", readonly=True):
        assert (await votes.check(db, PREVIEW, from_origin=False)).differences == []


def told_of(who: LedgerCredential) -> Json:
    return {"type": "registered", "from": who.origin, "id": who.hash}
