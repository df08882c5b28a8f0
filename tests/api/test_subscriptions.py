"""Subscriptions and their logs, as callers see them: what is told, undone, kept, waited for and refused."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from api.events import expiring
from api.events import follower as following
from api.events import log as logs
from api.events.follower import Follower
from api.sources import retention
from api.usage.queue import UsageBatch, batch_of
from api.usage.spool import RECORD, Spool, spools_in
from shared import database, notices, splits
from shared.network import PREVIEW
from shared.settings import read
from tests.api.client import Client, Reply
from tests.api.conftest import IssueKey
from tests.api.counting import ENDPOINTS, mine_of
from tests.api.locks import until_blocked
from tests.api.partners import NOWHERE
from tests.chain.written import ADA, POLICY, Json, Written, hash_of, mints, pays, person, reward_account, tx
from tests.patience import PATIENCE_S

ALICE, BOB = person("alice"), person("bob", staked=True)
RECENT = int(time.time() - PREVIEW.start_time.timestamp()) - 40_000
"""A slot of half a day ago: events may begin there."""


class Telling:
    """A chain, its follower, and a caller."""

    def __init__(self, api: Client, key: str, chain: Written, follower: Follower) -> None:
        self.api, self.key, self.chain, self.follower = api, key, chain, follower

    async def told(self) -> None:
        """Let the follower do everything that there is to do."""
        idle = 0
        while idle < 12:  # it looks for new subscriptions at every tenth step
            idle = 0 if await self.follower.step() else idle + 1

    async def append(self, after: int, *transactions: Json) -> str:
        block_hash = await self.chain.append(RECENT + after, *transactions)
        await self.told()
        return block_hash

    async def back_to(self, after: int) -> None:
        await self.chain.back_to(RECENT + after)

    async def call(self, method: str, path: str = "", body: Any = None, key: str | None = None) -> Reply:
        options = {} if body is None else {"json": body}
        return await self.api.call(method, f"/v1/subscriptions{path}", key or self.key, **options)

    async def subscribe(self, *some: Json, **fields: Any) -> str:
        reply = await self.call("POST", "", {"subjects": list(some), **fields})
        assert reply.status == 201, reply.body
        await self.told()
        subscription_id: str = reply.body["data"]["id"]
        return subscription_id

    async def events(self, subscription: str, **query: Any) -> Reply:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return await self.call("GET", f"/{subscription}/events?{asked}")

    async def log(self, subscription: str, **query: Any) -> list[tuple[int, str, Any]]:
        """Number, action and transaction or block of each event."""
        reply = await self.events(subscription, **query)
        assert reply.status == 200, reply.body
        return [
            (each["number"], each["action"], each["object"].get("tx_hash") or each["object"].get("block_hash"))
            for each in reply.body["data"]
        ]


@pytest.fixture
async def telling(api: Client, key: str, database_url: str) -> AsyncIterator[Telling]:
    writer = await database.connect(database_url, PREVIEW)
    partners = await database.connect(database_url)
    async with await database.create_pool(database_url, PREVIEW, max_size=1) as pool:
        telling = Telling(api, key, Written(writer), Follower(PREVIEW, pool, partners))
        await telling.append(0, tx("first", pays(ALICE)))
        yield telling
    await writer.close()
    await partners.close()


def of_address(address: str, **rest: Any) -> Json:
    return {"kind": "transaction", "address": address, **rest}


async def test_a_subscription_is_told_of_the_next_transactions_of_its_address(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    await telling.append(20, tx("to bob", pays(BOB)), tx("to alice", pays(ALICE), spends=(("first", 0),)))
    block_hash = await telling.append(40, tx("later", pays(BOB)))
    reply = await telling.events(alice)
    assert list(reply.body) == ["success", "data", "pagination"]
    (event,) = reply.body["data"]
    whole = await telling.api.get(f"/v1/tx/hash/{hash_of('to alice')}", telling.key)
    assert event["object"]["outputs"][0]["value"] == {"lovelace": str(2 * ADA)}
    assert event["object"].keys() == whole.body["data"].keys()
    assert {name: event[name] for name in ("number", "action", "kind", "subject", "received", "spent")} == {
        "number": 1,
        "action": "apply",
        "kind": "transaction",
        "subject": {"address": ALICE},
        "received": str(2 * ADA),
        "spent": str(2 * ADA),
    }
    assert event["block"]["slot_no"] == RECENT + 20
    paging = reply.body["pagination"]
    assert paging.pop("complete_to")["block_hash"] == block_hash
    assert paging == {"limit": 100, "after": 0, "next": 1, "hasMore": False}


async def test_an_undoing_names_what_it_undoes_in_reverse_before_the_new_branch(telling: Telling) -> None:
    alice = await telling.subscribe(of_address(ALICE))
    await telling.append(20, tx("a", pays(ALICE)))
    await telling.append(30, tx("b", pays(ALICE)), tx("c", pays(ALICE)))
    await telling.append(40, tx("d", pays(ALICE)))
    await telling.back_to(20)
    await telling.append(35, tx("e", pays(ALICE)))
    told = (await telling.events(alice)).body["data"]
    assert [(each["number"], each["action"], each.get("undoes")) for each in told] == [
        (1, "apply", None),
        (2, "apply", None),
        (3, "apply", None),
        (4, "apply", None),
        (5, "undo", 4),
        (6, "undo", 3),
        (7, "undo", 2),
        (8, "apply", None),
    ]
    assert told[4]["object"] == told[3]["object"] and told[7]["object"]["tx_hash"] == hash_of("e")
    assert await telling.log(alice, after=7) == [(8, "apply", hash_of("e"))]
    page = await telling.events(alice, after=0, limit=3)
    assert page.body["pagination"] == {"limit": 3, "after": 0, "next": 3, "hasMore": True, "complete_to": None}
    assert page.headers["Link"] == f'</v1/subscriptions/{alice}/events?limit=3&after=3>; rel="next"'


async def test_what_is_undone_before_its_confirmations_is_never_told(telling: Telling) -> None:
    deep = await telling.subscribe(of_address(ALICE), confirmations=2)
    await telling.append(20, tx("a", pays(ALICE)))
    await telling.append(30, tx("b", pays(ALICE)))
    assert await telling.log(deep) == []
    last = await telling.append(40)
    assert await telling.log(deep) == [(1, "apply", hash_of("a"))]
    assert (await telling.events(deep)).body["pagination"]["complete_to"]["slot_no"] == RECENT + 20
    await telling.back_to(20)
    for slot in (41, 42, 43):
        await telling.append(slot)
    assert await telling.log(deep) == [(1, "apply", hash_of("a"))], "b was undone before it was told"
    assert last


async def test_a_fork_below_the_beginning_is_told_as_a_reset(telling: Telling) -> None:
    await telling.append(20, tx("old", pays(ALICE)))
    alice = await telling.subscribe(of_address(ALICE))
    await telling.append(30, tx("a", pays(ALICE)))
    await telling.back_to(0)
    await telling.append(15, tx("b", pays(ALICE)))
    told = (await telling.events(alice)).body["data"]
    assert [(each["action"], each["kind"]) for each in told] == [
        ("apply", "transaction"),
        ("undo", "transaction"),
        ("reset", None),
        ("apply", "transaction"),
    ]
    assert told[2]["object"]["slot_no"] == RECENT and told[3]["object"]["tx_hash"] == hash_of("b")


async def test_a_log_from_an_earlier_slot_equals_one_that_was_there(telling: Telling) -> None:
    early = await telling.subscribe(of_address(ALICE), {"kind": "block"})
    for slot in range(10, 100, 10):
        await telling.append(slot, tx(f"{slot}", pays(ALICE if slot % 20 else BOB)))
    late = await telling.subscribe(of_address(ALICE), {"kind": "block"}, from_slot=RECENT + 1)
    assert await telling.log(late) == await telling.log(early) != []
    await telling.append(120, tx("next", pays(ALICE)))
    assert await telling.log(late) == await telling.log(early)
    part = await telling.subscribe({"kind": "block"}, from_slot=RECENT + 50)
    assert len(await telling.log(part)) == 6


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ({"kind": "transaction", "stake_address": reward_account("bob")}, ["pay", "burn"]),
        ({"kind": "transaction", "asset": f"{POLICY}.00"}, ["mint", "burn"]),
        ({"kind": "transaction", "policy_id": POLICY, "direction": "out"}, ["burn"]),
        ({"kind": "transaction", "address": BOB, "direction": "in", "least_quantity": str(3 * ADA)}, []),
        ({"kind": "mint", "asset": f"{POLICY}.00", "direction": "in"}, ["mint"]),
        ({"kind": "mint", "policy_id": POLICY, "least_quantity": "4"}, ["mint"]),
        ({"kind": "withdrawal", "stake_address": reward_account("bob")}, ["pay"]),
        ({"kind": "metadata", "label": "674"}, ["pay"]),
        ({"kind": "metadata", "label": "675"}, []),
    ],
)
async def test_each_kind_of_subject_is_matched(telling: Telling, subject: Json, names: list[str]) -> None:
    subscription = await telling.subscribe(subject)
    await telling.append(20, tx("mint", pays(ALICE, ("00", 5)), mint=mints(("00", 5))))
    labels = {"674": {"json": {"string": "x"}}}
    paid = {reward_account("bob"): {"ada": {"lovelace": 7}}}
    await telling.append(30, tx("pay", pays(BOB), withdrawals=paid, metadata={"labels": labels}))
    burnt = mints(("00", -2))
    await telling.append(40, tx("burn", pays(BOB, ("00", 3)), spends=(("mint", 0),), mint=burnt))
    assert [named for _, _, named in await telling.log(subscription)] == [hash_of(name) for name in names]


async def test_subjects_are_added_and_removed(telling: Telling) -> None:
    subscription = await telling.subscribe(of_address(ALICE))
    reply = await telling.call("POST", f"/{subscription}/subjects", {"subjects": [of_address(BOB), of_address(ALICE)]})
    assert reply.body["data"]["subject_count"] == 2
    await telling.append(20, tx("a", pays(BOB)))
    reply = await telling.call("POST", f"/{subscription}/subjects/remove", {"subjects": [of_address(ALICE)]})
    assert reply.body["data"]["subject_count"] == 1
    await telling.append(30, tx("b", pays(ALICE)), tx("c", pays(BOB)))
    assert [named for _, _, named in await telling.log(subscription)] == [hash_of("a"), hash_of("c")]
    listed = (await telling.call("GET", f"/{subscription}/subjects")).body["data"]
    assert listed == [{"kind": "transaction", "subject": {"address": BOB}, "direction": "both", "least_quantity": "0"}]


async def test_a_subject_that_is_added_while_the_follower_waits_is_told(
    telling: Telling, db: asyncpg.Connection
) -> None:
    """The follower waits for it, and later requests wait behind the follower, however many share the lock."""
    subscription = await telling.subscribe(of_address(ALICE))
    subject = await db.fetchrow("DELETE FROM partner.subject RETURNING *")
    assert subject is not None
    await telling.chain.append(RECENT + 20, tx("a", pays(ALICE)))
    async with db.transaction():
        await logs.share(db, PREVIEW)
        telling_all = asyncio.create_task(telling.told())
        await until_blocked(db)
        adding = asyncio.create_task(telling.call("POST", f"/{subscription}/subjects", {"subjects": [of_address(BOB)]}))
        await asyncio.sleep(0.3)
        assert not adding.done()
        await db.execute("INSERT INTO partner.subject VALUES ($1, $2, $3, $4, $5)", *subject)
    await telling_all
    assert (await adding).status == 200
    assert await telling.log(subscription) == [(1, "apply", hash_of("a"))]


async def test_a_new_log_does_not_wait_for_one_that_begins_far_back(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_BLOCKS", 1)
    for slot in range(10, 400, 10):
        await telling.chain.append(RECENT + slot)
    await telling.told()
    far = await telling.call("POST", "", {"subjects": [{"kind": "block"}], "from_slot": RECENT + 1})
    near = await telling.call("POST", "", {"subjects": [{"kind": "block"}], "from_slot": RECENT + 375})

    async def state(created: Reply) -> Any:
        return (await telling.call("GET", f"/{created.body['data']['id']}")).body["data"]["state"]

    async with asyncio.timeout(PATIENCE_S):
        while await state(near) != "live":
            await telling.follower.step()
    assert await state(far) == "catching_up"
    await telling.told()
    assert [len(await telling.log(each.body["data"]["id"])) for each in (far, near)] == [39, 2]


async def test_a_client_loads_a_list_and_follows_from_its_block(telling: Telling) -> None:
    subscription = await telling.subscribe(of_address(ALICE))
    await telling.append(20, tx("a", pays(ALICE)))
    history = (await telling.api.get(f"/v1/tx/history/{ALICE}", telling.key)).body
    await telling.append(30, tx("b", pays(ALICE)))
    after_block = history["last_updated"]["block_hash"]
    assert await telling.log(subscription, after_block=after_block) == [(2, "apply", hash_of("b"))]
    await telling.back_to(0)
    await telling.append(25)
    log = await telling.log(subscription, after_block=after_block)
    assert log == [(2, "apply", hash_of("b")), (3, "undo", hash_of("b")), (4, "undo", hash_of("a"))]
    await telling.call("POST", f"/{subscription}/subjects", {"subjects": [of_address(BOB)]})
    assert (await telling.events(subscription, after_block=after_block)).headers["Error-Code"] == "block_not_followed"
    assert (await telling.events(subscription, after_block="00" * 32)).status == 409


async def test_a_request_waits_for_the_next_event(telling: Telling) -> None:
    subscription = await telling.subscribe(of_address(ALICE))
    began = time.monotonic()
    assert (await telling.events(subscription, after=0, wait=1)).body["data"] == []
    assert time.monotonic() - began >= 1
    waiting = asyncio.create_task(telling.events(subscription, after=0, wait=20))
    await asyncio.sleep(0.2)
    await telling.append(20, tx("b", pays(BOB)))
    assert not waiting.done()
    await telling.append(30, tx("a", pays(ALICE)))
    (event,) = (await asyncio.wait_for(waiting, 5)).body["data"]
    assert event["object"]["tx_hash"] == hash_of("a")


async def test_an_expiring_key_is_told_once_to_its_own_credential(
    telling: Telling, db: asyncpg.Connection, database_url: str, issue_key: IssueKey
) -> None:
    ours = await telling.subscribe({"kind": "key.expiring"}, confirmations=2)
    await telling.call("POST", "", {"subjects": [{"kind": "key.expiring"}]}, await issue_key())
    await telling.append(20)
    expire = (
        "UPDATE partner.credential SET expires_at = now() + make_interval(days => $2) FROM partner.subscription"
        " WHERE credential.id = credential_id AND subscription.id = $1::text::uuid"
    )
    async with await database.create_pool(database_url, None, max_size=2) as pool:
        for days in (15, 13):
            await db.execute(expire, ours, days)
            await asyncio.gather(*(expiring.notice(pool) for _ in range(2)))
            await telling.told()
    await telling.back_to(0)
    await telling.append(10)
    (event,) = (await telling.events(ours)).body["data"]
    assert [event[name] for name in ("number", "action", "kind", "subject")] == [1, "notice", "key.expiring", None]
    assert event["block"]["slot_no"] == RECENT + 20 and telling.key.startswith(event["object"]["api_key_prefix"])
    assert await db.fetchval("SELECT count(*) FROM partner.event") == 1, "another credential's key does not expire"
    listed = (await telling.call("GET", f"/{ours}/subjects")).body["data"]
    assert listed == [{"kind": "key.expiring", "subject": None, "direction": "both", "least_quantity": "0"}]
    removed = await telling.call("POST", f"/{ours}/subjects/remove", {"subjects": [{"kind": "key.expiring"}]})
    assert removed.body["data"]["subject_count"] == 0


async def test_a_split_is_told_when_it_begins_and_when_it_ends(telling: Telling, db: asyncpg.Connection) -> None:
    common, ours, theirs = (splits.ChainBlock(20 * number, number, f"{number:064x}") for number in (20, 40, 50))
    asking = await telling.subscribe({"kind": "chain_split"}, confirmations=5)
    other = await telling.subscribe({"kind": "epoch"})
    await telling.append(20)
    for tip in (ours, theirs):
        await splits.note(db, PREVIEW, 2, common, tip, theirs)
        await telling.told()
    for _ in range(2):
        await splits.end(db, PREVIEW, 2)
        await telling.told()
    begun, ended = (await telling.events(asking)).body["data"]
    assert [(event["action"], event["kind"], event["object"]["state"]) for event in (begun, ended)] == [
        ("notice", "chain_split", "begun"),
        ("notice", "chain_split", "ended"),
    ]
    assert begun["object"]["common"] == msgspec.to_builtins(common)
    assert [event["object"]["our_tip"] for event in (begun, ended)] == msgspec.to_builtins([ours, theirs])
    assert begun["object"]["noticed_at"] == ended["object"]["noticed_at"]
    assert (await telling.events(other)).body["data"] == []


async def test_every_key_of_an_account_is_told_what_becomes_of_its_submissions(
    telling: Telling, db: asyncpg.Connection, issue_key: IssueKey
) -> None:
    await db.execute(
        "INSERT INTO partner.submitted_tx (network_id, accepted, user_account_id, tx_hash, invalid_hereafter, cbor)"
        " SELECT 1, true, id, decode(hash, 'hex'), ends::text::numeric, ''"
        " FROM partner.user_account, unnest($1::text[], $2::bigint[]) AS sent (hash, ends)",
        [hash_of("a"), hash_of("late")],
        [None, RECENT + 30],
    )
    sibling = await issue_key()
    await db.execute(
        "UPDATE partner.credential SET (user_account_id, admin_key_id) ="
        " (SELECT user_account_id, admin_key_id FROM partner.submitted_tx JOIN partner.user_account"
        "  ON user_account.id = user_account_id LIMIT 1)"
    )
    keys = telling.key, sibling, await issue_key()
    body = {"subjects": [{"kind": "submitted"}]}
    logs_of = {key: (await telling.call("POST", "", body, key)).body["data"]["id"] for key in keys}
    await telling.told()
    await telling.append(20, tx("a", pays(ALICE)), tx("b", pays(ALICE)))
    await telling.append(30)
    await telling.back_to(0)
    await telling.append(25)
    told, same, none = [
        (await telling.call("GET", f"/{log}/events", key=key)).body["data"] for key, log in logs_of.items()
    ]
    assert [(each["action"], each["object"]["change"], each["object"]["tx_hash"]) for each in told] == [
        ("apply", "in_block", hash_of("a")),
        ("apply", "dropped", hash_of("late")),
        ("undo", "dropped", hash_of("late")),
        ("undo", "in_block", hash_of("a")),
    ]
    assert (same, none) == (told, []), "another account is told nothing"


async def test_a_client_that_has_loaded_the_last_block_reads_what_was_noticed_after_it(
    telling: Telling, db: asyncpg.Connection
) -> None:
    subscription = await telling.subscribe({"kind": "block"}, {"kind": "key.expiring"})
    loaded = await telling.append(20)
    owner = await db.fetchval("SELECT credential_id FROM partner.subscription")
    await notices.add(db, PREVIEW, "key.expiring", "{}", owner)
    await telling.told()
    assert [number for number, _, _ in await telling.log(subscription, after_block=loaded)] == [2]
    loaded = await telling.append(30)
    assert await telling.log(subscription, after_block=loaded) == []


async def test_delivered_events_are_counted_with_their_request(
    telling: Telling, environment: dict[str, str], db: asyncpg.Connection
) -> None:
    """Once for each time that they are delivered: an empty page, a HEAD, a 304 and a refusal deliver none."""
    subscription = await telling.subscribe({"kind": "block"})
    for slot in (20, 30, 40):
        await telling.append(slot)
    events = f"/{subscription}/events"
    page = await telling.call("GET", f"{events}?limit=2")
    await telling.call("GET", events)
    await telling.call("GET", f"{events}?after=3")
    await telling.call("HEAD", events)
    path, unchanged = f"/v1/subscriptions{events}?limit=2", {"If-None-Match": page.headers["ETag"]}
    again = await telling.api.call("GET", path, telling.key, headers=unchanged)
    assert again.status == 304
    await telling.call("GET", f"{events}?limit=0")
    credential_id, name = await db.fetchval("SELECT id FROM partner.credential"), "GET /v1/subscriptions/{id}/events"
    delivered = {
        part.status_class: (part.requests, part.events)
        for path_of_spool in spools_in(Path(environment["DATA_DIR"]) / "usage")
        for part in mine_of(batch_in(path_of_spool), credential_id)
        if part.endpoint == name
    }
    assert delivered == {2: (4, 5), 3: (1, 0), 4: (1, 0)}


def batch_in(path_of_spool: Path) -> UsageBatch:
    """What the aggregator gets of a spool. Fails if a record would count as lost."""
    spool = Spool.look_at(path_of_spool)
    assert spool is not None
    spool.synced_bytes = spool.size_bytes
    batch = batch_of(spool, ENDPOINTS)
    spool.close()
    recorded = sum(total.successful + total.failed for total in batch.sums) + batch.other_records
    assert batch.end == recorded * RECORD.size
    return batch


async def test_another_credentials_subscription_is_not_found(telling: Telling, issue_key: IssueKey) -> None:
    subscription, stranger = await telling.subscribe(of_address(ALICE)), await issue_key()
    body = {"subjects": [of_address(BOB)]}
    for method, path, sent in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/begin", None),
        ("GET", "/subjects", None),
        ("POST", "/subjects", body),
        ("POST", "/subjects/remove", body),
        ("GET", "/events", None),
    ):
        foreign = await telling.call(method, f"/{subscription}{path}", sent, stranger)
        missing = await telling.call(method, f"/{NOWHERE}{path}", sent, stranger)
        assert (foreign.status, foreign.body) == (missing.status, missing.body)
        assert foreign.status == 404, (method, path)
    assert (await telling.call("GET", "", None, stranger)).body["data"] == []
    assert [each["id"] for each in (await telling.call("GET")).body["data"]] == [subscription]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"subjects": []}, "subjects must be an array of 1 to 5000 subjects"),
        ({"subjects": [{"kind": "x"}]}, "subjects[0]: Invalid enum value 'x' - at `$.kind`"),
        ({"subjects": [{"kind": "block"}, of_address("x")]}, "subjects[1]: Invalid address format"),
        (
            {"subjects": [{"kind": "mint", "address": ALICE}]},
            "subjects[0]: a subject of the kind mint must have",
        ),
        ({"subjects": [{"kind": "block", "direction": "in"}]}, "subjects[0]: the kind block has neither direction"),
        (
            {"subjects": [{"kind": "governance", "drep_id": "drep1x"}]},
            "subjects[0]: drep_id must be the id of a delegate",
        ),
        ({"subjects": [{"kind": "block"}], "from_slot": 1}, "from_slot must be at most 30 days ago"),
        ({"subjects": [{"kind": "block"}], "confirmations": 2161}, "confirmations must be between 0 and 2160"),
    ],
)
async def test_a_wrong_subscription_is_refused_with_its_fault(telling: Telling, body: Json, message: str) -> None:
    reply = await telling.call("POST", "", body)
    assert reply.status == 400 and reply.error.startswith(message), reply.body


async def test_limits_are_those_of_the_settings(telling: Telling, db: asyncpg.Connection) -> None:
    await db.execute(
        "INSERT INTO partner.subscription (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no)"
        " SELECT id, 1, 0, 'new', 0, 0 FROM partner.credential, generate_series(1, 99)"
    )
    last = await telling.subscribe({"kind": "block"})
    reply = await telling.call("POST", "", {"subjects": [{"kind": "block"}]})
    assert (reply.status, reply.error) == (409, "A credential may have at most 100 subscriptions")
    await db.execute("UPDATE partner.subscription SET subjects = 100000 WHERE id = $1::text::uuid", last)
    reply = await telling.call("POST", f"/{last}/subjects", {"subjects": [of_address(ALICE)]})
    assert (reply.status, reply.error) == (409, "A subscription may have at most 100000 subjects")


async def test_old_events_and_deleted_subscriptions_are_dropped(
    telling: Telling, db: asyncpg.Connection, database_url: str, environment: dict[str, str]
) -> None:
    kept, deleted = await telling.subscribe({"kind": "block"}), await telling.subscribe({"kind": "block"})
    for slot in range(10, 60, 10):
        await telling.append(slot)
    await db.execute("UPDATE partner.event SET told_at = now() - interval '31 days' WHERE number <= 3")
    await db.execute("UPDATE partner.event_object SET made_at = now() - interval '62 days' WHERE object_no <= 2")
    assert (await telling.call("DELETE", f"/{deleted}")).status == 200
    assert (await telling.call("GET", f"/{deleted}")).status == 404
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        pruned = await retention.prune(pool, read(environment))
    assert (pruned.events, pruned.event_objects, pruned.subjects, pruned.subscriptions) == (8, 2, 1, 1)
    assert [number for number, _, _ in await telling.log(kept)] == [4, 5]
    refused = await telling.events(kept, after=1)
    assert refused.headers["Error-Code"] == "events_not_kept"
    assert refused.error == "Events before number 4 are no longer kept"
    assert [number for number, _, _ in await telling.log(kept, after=3)] == [4, 5]
    await db.execute("DELETE FROM partner.event WHERE number = 4")
    assert (await telling.events(kept, after=3)).error == "Events before number 5 are no longer kept"


async def test_a_log_whose_events_are_all_dropped_goes_on(telling: Telling, db: asyncpg.Connection) -> None:
    subscription = await telling.subscribe({"kind": "block"})
    await telling.append(10)
    await telling.append(20)
    await db.execute("DELETE FROM partner.event")
    assert await telling.log(subscription) == []
    assert (await telling.events(subscription, after=0)).error == "Events before number 3 are no longer kept"
    last = await telling.append(30)
    assert await telling.log(subscription) == [(3, "apply", last)]
    assert (await telling.events(subscription, after=0)).error == "Events before number 3 are no longer kept"


async def test_a_subscription_that_is_never_begun_ends(
    telling: Telling, db: asyncpg.Connection, database_url: str, environment: dict[str, str]
) -> None:
    old, new = [await telling.subscribe({"kind": "block"}, begins="later") for _ in range(2)]
    begun = await telling.subscribe({"kind": "block"})
    aged = "UPDATE partner.subscription SET created_at = now() - interval '31 days' WHERE id::text = ANY ($1)"
    await db.execute(aged, [old, begun])
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        await retention.prune(pool, read(environment))
    assert [each["id"] for each in (await telling.call("GET")).body["data"]] == [begun, new]


async def test_a_revoked_credential_leaves_no_subjects(
    telling: Telling, db: asyncpg.Connection, database_url: str, environment: dict[str, str]
) -> None:
    await telling.subscribe(of_address(ALICE), {"kind": "block"})
    await telling.append(20, tx("a", pays(ALICE)))
    await db.execute("UPDATE partner.credential SET revoked_at = now()")
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        pruned = await retention.prune(pool, read(environment))
    assert (pruned.events, pruned.subjects, pruned.subscriptions) == (2, 2, 1)


async def test_a_repeated_creation_creates_once(telling: Telling) -> None:
    once = {"Idempotency-Key": "the same"}
    body = {"subjects": [{"kind": "block"}]}
    replies = [
        await telling.api.call("POST", "/v1/subscriptions", telling.key, json=body, headers=once) for _ in range(2)
    ]
    assert replies[0].body == replies[1].body and replies[1].headers["Idempotent-Replayed"] == "true"
    assert len((await telling.call("GET")).body["data"]) == 1
