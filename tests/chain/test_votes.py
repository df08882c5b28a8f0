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
from tests.chain.model import stake_address
from tests.chain.model_chain import Chain, genesis_of
from tests.chain.scripted import Scripted, join, leave, resign, stand, vote
from tests.chain.test_follow import rewards_are_read

EPOCH = PREVIEW.epoch_slots
FORK = 3
ABSTAIN, NO_CONFIDENCE = {"type": "abstain"}, {"type": "noConfidence"}
ONE, TWO, THREE = (
    {"type": "registered", "from": origin, "id": digit * 56}
    for origin, digit in (("script", "1"), ("verificationKey", "2"), ("verificationKey", "1"))
)


class Forking(Scripted):
    """A chain that begins in protocol 9, and forks to 10 and 11."""

    forks = ((10, FORK), (11, FORK + 2))


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


def account_of(staker: LedgerCredential) -> str:
    return stake_address("preview", staker.hash, script=staker.is_script)


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


def raw(staker: LedgerCredential) -> bytes:
    return bytes((0xF0 if staker.is_script else 0xE0,)) + bytes.fromhex(staker.hash)


def modelled(chain: Scripted) -> dict[str, Json]:
    model = Chain("preview", genesis_of(chain.genesis), chain.forks)
    return model.feed(block.decoded() for block in chain.blocks).pools.votes.representatives


def played(chain: Scripted) -> dict[LedgerCredential, Json]:
    return {who: each.representative for who, each in chain.ledger.accounts.items() if each.representative is not None}


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


# For each account that a case is about: the certificates of each epoch, and its representative in the end. `me` stands
# for its credential. Epochs 0 to 2 are of protocol 9, 3 and 4 of protocol 10.
me = LedgerCredential("verificationKey", "00" * 28)
Step = tuple[int, list[Json]]
CASES: dict[str, tuple[list[Step], Json | None]] = {
    "a delegation": ([(0, [stand(ONE), join(me), vote(me, ONE)])], ONE),
    "a predefined one": ([(0, [join(me), vote(me, ABSTAIN)]), (4, [vote(me, NO_CONFIDENCE)])], NO_CONFIDENCE),
    "a retirement": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (1, [resign(ONE)])], None),
    "a retirement after the fork": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (4, [resign(ONE)])], None),
    "in 9, a retirement ends what followed": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (1, [resign(ONE)])],
        None,
    ),
    "in 10, it does not": (
        [(3, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (4, [resign(ONE)])],
        TWO,
    ),
    "the fork forgets who was left": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (3, [resign(ONE)])],
        TWO,
    ),
    "in 9, the last of the same": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), vote(me, ONE)]), (1, [resign(TWO)])],
        None,
    ),
    "in 9, a predefined one leaves the last set": (
        [(0, [stand(ONE), join(me), vote(me, ONE), vote(me, ABSTAIN)]), (1, [resign(ONE)])],
        ABSTAIN,
    ),
    "in 9, a predefined one leaves only the last set": (
        [(0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), vote(me, ABSTAIN)]), (1, [resign(ONE)])],
        None,
    ),
    "in 9, an ended delegation leaves no set": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, TWO), vote(me, ONE)]),
            (1, [resign(TWO), vote(me, ABSTAIN), resign(ONE)]),
        ],
        None,
    ),
    "in 9, an unregistered one": ([(0, [join(me), vote(me, ONE)])], None),
    "in 9, an unregistered one until the fork": ([(2, [join(me), vote(me, ONE), stand(ONE)])], ONE),
    "in 9, who is not in the set stays": (
        [(0, [join(me), vote(me, ONE), stand(ONE), resign(ONE)]), (1, [stand(ONE)])],
        ONE,
    ),
    "in 9, who is not in the set stays, until the fork": (
        [(0, [join(me), vote(me, ONE), stand(ONE), resign(ONE)])],
        None,
    ),
    "the fork puts all of them into the set": ([(0, [join(me), vote(me, ONE), stand(ONE)]), (4, [resign(ONE)])], None),
    "in 9, choosing it again enters the set": (
        [(0, [join(me), vote(me, ONE), stand(ONE), vote(me, ONE)]), (1, [resign(ONE)])],
        None,
    ),
    "a set begins empty": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]),
            (1, [resign(ONE), stand(ONE), vote(me, TWO), resign(ONE)]),
        ],
        TWO,
    ),
    "a registration in the transaction of the retirement": (
        [(4, [stand(ONE), join(me), vote(me, ONE)]), (4, [resign(ONE), stand(ONE)])],
        None,
    ),
    "in 9, a deregistered account leaves the last set": (
        [
            (0, [stand(ONE), join(me), vote(me, ONE), leave(me), join(me), vote(me, ABSTAIN)]),
            (1, [resign(ONE)]),
        ],
        ABSTAIN,
    ),
    "in 9, a deregistered account stays in the others": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO), leave(me)]),
            (1, [join(me), vote(me, ABSTAIN), resign(ONE)]),
        ],
        None,
    ),
    "in 10, a deregistered account leaves": (
        [(3, [stand(ONE), join(me), vote(me, ONE), leave(me)]), (4, [join(me), vote(me, ABSTAIN), resign(ONE)])],
        ABSTAIN,
    ),
    "a deregistration": ([(0, [stand(ONE), join(me), vote(me, ONE)]), (4, [leave(me), join(me)])], None),
    "a key and a script with the same hash": (
        [(0, [stand(ONE), stand(THREE), join(me), vote(me, THREE)]), (1, [resign(ONE)])],
        THREE,
    ),
    "the last block of 9": ([(2, [join(me), vote(me, ONE)])], None),
    "the first block of 10": ([(3, [stand(ONE), join(me), vote(me, ONE)]), (3, [resign(ONE)])], None),
    "a retirement in the last block of 9": (
        [(1, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (2, [resign(ONE)])],
        None,
    ),
    "a retirement in the first block of 10": (
        [(2, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]), (3, [resign(ONE)])],
        TWO,
    ),
    "a retirement ends what another has left": (
        [
            (0, [stand(ONE), stand(TWO), join(me), vote(me, ONE), vote(me, TWO)]),
            (1, [resign(ONE), resign(TWO), stand(ONE), vote(me, ONE)]),
        ],
        ONE,
    ),
}


def renamed(certificate: Json, number: int) -> Json:
    """A certificate of a case about this account and these representatives: each case has its own."""
    told = dict(certificate)
    if "credential" in told:
        told["credential"] = staker_of(number).hash
        told["from"] = staker_of(number).origin
    representative = told.get("delegateRepresentative", {})
    if "id" in representative:
        told["delegateRepresentative"] = representative | {"id": f"{representative['id'][:52]}{number:04x}"}
    return told


def staker_of(number: int) -> LedgerCredential:
    return LedgerCredential("script" if number % 3 == 0 else "verificationKey", f"{number:056x}")


def cases() -> tuple[Forking, dict[LedgerCredential, Json]]:
    """A chain with a block for each step of each case, and the representatives in the end."""
    chain, expected, slot = Forking(), dict[LedgerCredential, Json](), 0
    for epoch in range(FORK + 3):
        slot = epoch * EPOCH
        for number, (steps, _) in enumerate(CASES.values(), start=1):
            for at, certificates in steps:
                if at == epoch:
                    slot += 1
                    chain.block(slot, [renamed(each, number) for each in certificates])
        chain.block(slot + 1)
    for number, (_, representative) in enumerate(CASES.values(), start=1):
        if representative is not None:
            told = renamed({"delegateRepresentative": representative}, number)
            expected[staker_of(number)] = told["delegateRepresentative"]
    return chain, expected


def named(found: dict[LedgerCredential, Json], expected: dict[LedgerCredential, Json]) -> list[str]:
    """The cases whose representative is another than expected."""
    return [
        name for number, name in enumerate(CASES, 1) if found.get(staker_of(number)) != expected.get(staker_of(number))
    ]


def test_devnet_and_model_play_every_case() -> None:
    chain, expected = cases()
    assert named(played(chain), expected) == []
    assert modelled(chain) == {account_of(who): each for who, each in expected.items()}


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
