"""A client that folds the events of a subscription, and the comparison of what it believes with the model."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from api.events import log as logs
from api.events import subjects
from api.events.subjects import SentSubject
from shared import notices
from shared.network import PREVIEW
from tests.chain.model import Json
from tests.chain.model_events import NOTHING, Happenings, Told, wanted

NOTICED: Json = {"kind": "key.expiring"}
SUBMITTED: Json = {"kind": "submitted"}

_LOG = """
SELECT number, key, event.slot_no, block_no, block_hash, received, spent, undoes, undone, step, body
FROM partner.event LEFT JOIN partner.event_object USING (object_no)
WHERE subscription_no = $1 ORDER BY number
"""
_NOTICES = "SELECT body FROM partner.event_notice WHERE owner = $1 ORDER BY notice_no"
_SUBSCRIBE = """
INSERT INTO partner.subscription (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no)
VALUES ((SELECT id FROM partner.credential LIMIT 1), 1, $1, 'catching_up', $2, $2)
RETURNING subscription_no
"""


class Subscription(msgspec.Struct):
    """A subscription under test."""

    number: int
    confirmations: int
    subjects: list[Json]
    notices: list[str]  # the objects of those that waited when it was created, or were added since


async def subscribe(
    db: asyncpg.Connection, some: list[Json], confirmations: int = 0, after_slot: int | None = None
) -> Subscription:
    """Create a subscription, from now or after a slot."""
    parsed = await subjects.parse_all([msgspec.convert(each, SentSubject) for each in some], PREVIEW)
    account = await db.fetchval("SELECT id FROM partner.user_account LIMIT 1")
    parsed = subjects.owned(parsed, {"credential": await credential_id(db), "account": account})
    async with db.transaction():
        mark = await logs.share(db, PREVIEW)
        assert mark is not None
        after = mark.slot_no if after_slot is None else after_slot
        number = await db.fetchval(_SUBSCRIBE, confirmations, after)
        await db.executemany(
            "INSERT INTO partner.subject (subscription_no, network_id, key, direction, least)"
            " VALUES ($1, 1, $2, $3, $4)",
            [(number, each.key, each.direction, each.least) for each in parsed.values()],
        )
        waiting = await db.fetch(_NOTICES, await credential_id(db)) if NOTICED in some else []
    return Subscription(number, confirmations, some, [notice["body"] for notice in waiting])


async def credential_id(db: asyncpg.Connection) -> UUID:
    """The credential that owns the subscriptions."""
    found: UUID = await db.fetchval("SELECT id FROM partner.credential LIMIT 1")
    return found


async def notice(db: asyncpg.Connection, random: Random, subscriptions: Iterable[Subscription]) -> None:
    """Add some notices, of this credential or of another."""
    for _ in range(random.randint(1, 3)):
        body = json.dumps({"notice": random.getrandbits(60)})
        is_ours = random.random() < 0.8
        owner = await credential_id(db) if is_ours else UUID(int=random.getrandbits(128))
        await notices.add(db, PREVIEW, NOTICED["kind"], body, owner)
        for subscription in subscriptions:
            if is_ours and NOTICED in subscription.subjects:
                subscription.notices.append(body)


async def subscribe_at_random(db: asyncpg.Connection, random: Random, blocks: list[Json]) -> Subscription:
    """Of few and of many subjects, with and without confirmations, from now and from an earlier slot."""
    after = random.choice((None, random.choice(blocks)["slot"]))
    some = _chosen(random, blocks, random.choice((1, 5, 60)))
    if random.random() < 0.5:
        some += NOTICED, SUBMITTED
    return await subscribe(db, some, random.choice((0, 0, 1, 4)), after)


async def submit(db: asyncpg.Connection, random: Random, blocks: Iterable[Json], tip_slot: int) -> None:
    """Register some transactions before their blocks are indexed, and one that no block contains."""
    rows = [
        (tx["id"], random.choice((None, max(block["slot"], tip_slot) + random.randint(1, 20_000))))
        for block in blocks
        for tx in block.get("transactions", ())
        if random.random() < 0.2
    ]
    rows.append((random.randbytes(32).hex(), tip_slot + random.randint(1, 20_000)))
    await db.executemany(
        "INSERT INTO partner.submitted_tx (network_id, accepted, user_account_id, tx_hash, invalid_hereafter, cbor)"
        " SELECT 1, true, id, decode($1, 'hex'), $2, '' FROM partner.user_account ON CONFLICT DO NOTHING",
        rows,
    )


async def submissions(db: asyncpg.Connection, blocks: Sequence[Json]) -> list[tuple[int, Told]]:
    """What blocks mean for submitted transactions, with their slots."""
    block_of = {tx["id"]: block for block in blocks for tx in block.get("transactions", ())}
    told = []
    for row in await db.fetch("SELECT encode(tx_hash, 'hex'), invalid_hereafter FROM partner.submitted_tx"):
        tx_hash, ends = row
        block, change = block_of.get(tx_hash), "in_block"
        if block is None and ends is not None:
            block, change = next((each for each in blocks if each["slot"] >= ends), None), "dropped"
        if block is not None:
            what = Told("submitted", NOTHING, block["height"], block["id"], (tx_hash, change))
            told.append((block["slot"], what))
    return told


async def check(db: asyncpg.Connection, blocks: Sequence[Json], subscriptions: Iterable[Subscription]) -> int:
    """Compare each log with the model of a chain; returns the number of events that are left in them."""
    happenings, told, tip_no, left_in_all = Happenings(), await submissions(db, blocks), 0, 0
    for block in blocks:
        told += [(block["slot"], each) for each in happenings.forward(block)]
        tip_no = block["height"]
    told.sort(key=lambda each: each[0])
    for subscription in subscriptions:
        after = await db.fetchval(  # an undoing may have lowered it
            "SELECT after_slot_no FROM partner.subscription WHERE subscription_no = $1", subscription.number
        )
        log = await db.fetch(_LOG, subscription.number)
        noticed = [event["body"] for event in log if is_notice(event)]
        assert noticed == subscription.notices, subscription
        got = [shown(event) for event in fold(log)]
        expected = wanted([each for slot, each in told if slot > after], subscription.subjects)
        deep = [each for each in expected if each.block_no <= tip_no - subscription.confirmations]
        # After a fork to a shorter chain, what was told stays told, although it is less deep now.
        assert _by_block(got) == _by_block(expected[: max(len(deep), len(got))]), subscription
        assert subscription.confirmations or len(got) == len(deep)
        left_in_all += len(got)
    return left_in_all


def fold(log: list[asyncpg.Record]) -> list[asyncpg.Record]:
    """What is left after a log: its numbers are dense, and each undoing is of the last event that is left."""
    assert [event["number"] for event in log] == list(range(1, len(log) + 1))
    assert [event["step"] for event in log] == sorted(event["step"] for event in log)
    left: list[asyncpg.Record] = []
    for event in log:
        if is_notice(event):
            assert event["undone"] and event["undoes"] is None
        elif event["key"] == subjects.RESET:
            assert not left, "an undoing below the beginning undoes everything"
        elif event["undoes"] is None:
            assert not left or left[-1]["slot_no"] <= event["slot_no"]
            left.append(event)
        else:
            undone = left.pop()
            assert undone["number"] == event["undoes"] and undone["undone"] and event["undone"]
            assert (undone["key"], undone["body"]) == (event["key"], event["body"])
    assert not any(event["undone"] for event in left)
    return left


def is_notice(event: asyncpg.Record) -> bool:
    """Whether an event tells of what is in no block."""
    key: bytes = event["key"]
    return key.startswith(subjects.NOTICE)


def shown(event: asyncpg.Record) -> Told:
    """An event in the words of the model, from its object where that says it."""
    kind, subject = subjects.kind_of(event["key"]), subjects.show(event["key"]) or {}
    its = json.loads(event["body"])
    match kind:
        case "epoch":
            what: tuple[Any, ...] = (its["epoch_no"],)
        case "block":
            what = (its["block_hash"],)
        case "pool" if its["change"] == "block":
            what = ("block", its["block"]["block_hash"])
        case "pool":
            what = (its["transaction"]["tx_hash"], its["change"])
        case "delegation":
            what = its["transaction"]["tx_hash"], its["stake_address"], its["pool_id"]
        case "withdrawal":
            what = its["tx_hash"], int(its["lovelace"])
        case "governance":
            what = its["transaction"]["tx_hash"], its["change"], its["drep_id"], its["stake_address"]
        case "submitted":
            what = its["tx_hash"], its["change"]
        case "mint":
            what = its["tx_hash"], f"{its['policy_id']}.{its['asset_name']}", int(its["quantity"])
        case _:
            what = (its["tx_hash"],)
    amounts = (None if each is None else int(each) for each in (event["received"], event["spent"]))
    named = next(iter(subject.items()), ("", ""))
    return Told(kind, named, event["block_no"], event["block_hash"].hex(), what, *amounts)


def _by_block(told: list[Told]) -> list[tuple[int, Counter[Told]]]:
    blocks: dict[int, Counter[Told]] = {}
    for each in told:
        blocks.setdefault(each.block_no, Counter())[each] += 1
    return sorted(blocks.items())


def _chosen(random: Random, blocks: list[Json], most: int) -> list[Json]:
    """Subjects that a chain has, some with a direction and a least quantity."""
    happenings = Happenings()
    seen = sorted({(each.kind, each.subject) for block in blocks for each in happenings.forward(block)})
    picked: list[Json] = []
    for kind, (name, text) in random.sample(seen, min(most, len(seen))):
        subject: Json = {"kind": kind} | ({name: text} if name else {})
        if kind in subjects.WITH_QUANTITY and random.random() < 0.4:
            subject["direction"] = random.choice(("in", "out", "both"))
            subject["least_quantity"] = str(random.choice((0, 1, 1_000_000, 5_000_000)))
        picked.append(subject)
    return picked
