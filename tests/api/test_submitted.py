"""A submitted transaction is followed, and resubmitted on request. docs/decisions/0043-submitted.md."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest
from ledgerline_client import Ledgerline, chain_context
from ledgerline_client.chain_context import LedgerlineChainContext
from pycardano import TransactionFailedException

from api.chain import submitted
from api.repeats import idempotency
from api.sources import retention
from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import NodeConnection
from devnet import control, faucet
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from shared import database
from shared.network import PREVIEW
from shared.settings import Settings
from tests.api.client import Client, Reply, serving
from tests.api.conftest import IssueKey
from tests.api.partners import Partner, partner_of
from tests.api.submitting import SUBMIT, grant, new_key
from tests.chain.followers import following, reaches
from tests.patience import PATIENCE_S
from tests.wallet import ADA, Wallet, id_of

HELD = faucet.OUTPUT_LOVELACE
SETTLED = {"block_no", "block_hash", "slot_no", "confirmations"}


class Followed(msgspec.Struct):
    """A devnet, an indexer that follows it, and an API in front of both."""

    node: NodeServer
    api: Client
    key: str
    chain: asyncpg.Connection
    indexing: asyncio.Task[None]
    environment: dict[str, str]
    outputs: list[tuple[str, int]]
    wallet: Wallet = msgspec.field(default_factory=Wallet.of_faucet)

    def payment(self, **changes: Any) -> Any:
        """A payment from an output that no other one spends."""
        return self.wallet.payment(self.outputs.pop(), HELD, 5 * ADA, **changes)

    async def post(self, tx: Any, **headers: str) -> Reply:
        return await self.api.call("POST", SUBMIT, self.key, json={"cbor": tx.to_cbor_hex()}, headers=headers)

    async def submitted(self, **changes: Any) -> str:
        """The hash of a new payment that the node has accepted."""
        reply = await self.post(self.payment(**changes))
        assert reply.status == 200, reply.body
        return str(reply.body["data"]["tx_hash"])

    async def of(self, tx_hash: str, key: str = "", api: Client | None = None) -> Reply:
        return await (api or self.api).get(f"/v1/tx/submitted/{tx_hash}", key or self.key)

    async def state(self, tx_hash: str) -> str:
        """The state of a transaction, with its confirmations if it is in a block. Asserts that the answer is sound."""
        reply = await self.of(tx_hash)
        assert reply.status == 200, reply.body
        data = reply.body["data"]
        assert data["tx_hash"] == tx_hash
        if data["state"] != "in_block":
            assert {data[name] for name in SETTLED} == {None}
            return str(data["state"])
        (block,) = (each for each in self.node.blocks if each.id == data["block_hash"])
        assert (data["block_no"], data["slot_no"]) == (block.height, block.slot)
        assert tx_hash in {tx["id"] for tx in block.decoded()["transactions"]}
        assert reply.body["last_updated"]["block_hash"] == self.node.blocks[-1].id
        return f"in_block {data['confirmations']}"

    async def seen(self) -> list[str]:
        """The transactions that subscriptions are told of, each time that the node accepts one anew."""
        rows = await self.chain.fetch("SELECT body FROM partner.event_notice ORDER BY notice_no")
        told = [json.loads(row["body"]) for row in rows]
        assert {each["change"] for each in told} == {"seen"}
        return [each["tx_hash"] for each in told]

    async def resubmit(self, tx_hash: str, key: str = "", **headers: str) -> Reply:
        path = f"/v1/tx/submitted/{tx_hash}/resubmit"
        return await self.api.call("POST", path, key or self.key, headers=headers)

    async def grow(self, blocks: int = 1) -> None:
        self.node.grow(blocks)
        await reaches(self.chain, self.node, self.indexing)

    async def fork(self, depth: int, *, forget: bool = False) -> None:
        control.fork(self.node, depth, forget=forget)
        await reaches(self.chain, self.node, self.indexing)


@pytest.fixture
async def followed(
    environment: dict[str, str],
    no_aggregator: None,  # noqa: ARG001
    db: asyncpg.Connection,
    issue_key: IssueKey,
) -> AsyncIterator[Followed]:
    key = await issue_key()
    await grant(db, "submit")
    generated = Generated(Options(seed=3, density=1, eras=(("conway", 0),), faucet=True, blocks_per_epoch=40), 20)
    url = environment["DATABASE_URL"]
    chain = await database.connect(url, PREVIEW)
    async with (
        NodeServer(generated) as node,
        following(url, node) as indexing,
        serving(environment | {"OGMIOS_URL_PREVIEW": node.url}) as api,
    ):
        await reaches(chain, node, indexing)
        outputs = list(generated.ledger.wallets[faucet.address(0)])
        yield Followed(node, api, key, chain, indexing, environment | {"OGMIOS_URL_PREVIEW": node.url}, outputs)
    await chain.close()


def code_of(reply: Reply) -> tuple[int, str | None]:
    return reply.status, reply.headers.get("Error-Code")


# What becomes of it ---------------------------------------------------------------------------------------------------


async def test_a_payment_is_followed_through_a_restart_and_a_fork_and_resubmitted(followed: Followed) -> None:
    asked, unasked = await followed.submitted(), await followed.submitted()
    assert await followed.state(asked) == "pending"
    await followed.grow()
    assert await followed.state(asked) == "in_block 0"
    await followed.grow(2)
    assert await followed.state(asked) == "in_block 2"
    assert code_of(await followed.resubmit(asked)) == (409, "transaction_in_block")

    async with serving(followed.environment) as restarted:
        assert (await followed.of(asked, api=restarted)).body == (await followed.of(asked)).body

    await followed.fork(3, forget=True)
    assert [await followed.state(each) for each in (asked, unasked)] == ["rolled_back"] * 2
    assert (await followed.of(unasked)).body["data"]["rolled_back_at"]
    sent = followed.node.requests["submitTransaction"]
    reply = await followed.resubmit(asked)
    assert reply.body["data"] == {"tx_hash": asked, "invalid_hereafter": None}
    assert followed.node.requests["submitTransaction"] == sent + 1
    assert (await followed.resubmit(asked)).status == 200, "it waits already, so nobody is told again"
    assert [await followed.state(each) for each in (asked, unasked)] == ["pending", "rolled_back"]
    await followed.grow()
    assert [await followed.state(each) for each in (asked, unasked)] == ["in_block 0", "rolled_back"]
    assert (await followed.of(asked)).body["data"]["rolled_back_at"] is None
    assert await followed.seen() == [asked, unasked, asked]


async def test_a_transaction_that_returns_to_the_chain_after_a_fork_is_in_a_block_again(followed: Followed) -> None:
    tx_hash = await followed.submitted()
    await followed.grow()
    first = (await followed.of(tx_hash)).body["data"]
    await followed.fork(1)
    await followed.grow()
    assert (await followed.state(tx_hash)).startswith("in_block")
    again = (await followed.of(tx_hash)).body["data"]
    assert again["block_hash"] != first["block_hash"]
    assert again["rolled_back_at"] is not None
    assert {name: again[name] for name in ("submitted_at", "invalid_hereafter")} == {
        name: first[name] for name in ("submitted_at", "invalid_hereafter")
    }


async def test_a_transaction_expires_with_the_tip_unless_it_is_in_a_block(followed: Followed) -> None:
    ends = followed.node.blocks[-1].slot + 10_000  # some blocks
    paid, dropped = followed.payment(ttl=ends), await followed.submitted(ttl=ends)
    kept = str((await followed.post(paid)).body["data"]["tx_hash"])
    await followed.grow()
    await followed.fork(1, forget=True)
    assert code_of(await followed.resubmit(kept)) == (200, None)
    while followed.node.blocks[-1].slot < ends:
        assert await followed.state(dropped) == "rolled_back"
        await followed.grow()
    assert (await followed.state(kept)).startswith("in_block")
    assert await followed.state(dropped) == "expired"
    assert (await followed.of(dropped)).body["data"]["invalid_hereafter"] == ends
    assert code_of(await followed.resubmit(dropped)) == (400, "transaction_expired")
    assert code_of(await followed.post(paid)) == (200, None), "a caller that lost the answer must not pay again"


@pytest.mark.parametrize("ends", [None, 2**63, 2**64 - 1])
async def test_an_interval_may_be_as_long_as_a_slot_can_be(followed: Followed, ends: int | None) -> None:
    tx_hash = await followed.submitted(ttl=ends)
    assert (await followed.of(tx_hash)).body["data"]["invalid_hereafter"] == ends


# Who sees it ----------------------------------------------------------------------------------------------------------


async def test_every_key_of_the_account_sees_it_and_no_other(
    followed: Followed, db: asyncpg.Connection, issue_key: IssueKey
) -> None:
    tx_hash = await followed.submitted()
    sibling, reader = await new_key(db, ["submit"]), await new_key(db, ["transactions"])
    other = await issue_key()
    await db.execute("UPDATE partner.credential SET scopes = '{submit}' WHERE scopes = '{}'")
    assert (await followed.of(tx_hash, sibling)).body == (await followed.of(tx_hash)).body
    for missing in (await followed.of(tx_hash, other), await followed.resubmit(tx_hash, other)):
        assert code_of(missing) == (404, "transaction_not_submitted")
        assert missing.body == (await followed.of("0" * 64)).body
    assert code_of(await followed.of(tx_hash, reader)) == (403, "scope_not_covered")
    followed.key, mine = other, followed.key
    assert (await followed.post(followed.wallet.payment(("ab" * 32, 0), HELD, ADA))).status == 400
    followed.key = mine


async def test_a_refused_transaction_is_not_followed(followed: Followed, db: asyncpg.Connection) -> None:
    source = followed.outputs[-1]
    first, second = (followed.wallet.payment(source, HELD, lovelace) for lovelace in (5 * ADA, 6 * ADA))
    assert (await followed.post(first)).status == 200
    assert code_of(await followed.post(second)) == (400, "inputs_not_unspent")
    assert code_of(await followed.of(id_of(second))) == (404, "transaction_not_submitted")
    assert await db.fetchval("SELECT count(*) FROM partner.submitted_tx") == 1
    # The state of one that the node no longer accepts does not change.
    await followed.grow()
    await followed.fork(1, forget=True)
    assert (await followed.post(second)).status == 200
    assert code_of(await followed.resubmit(id_of(first))) == (400, "inputs_not_unspent")
    assert await followed.state(id_of(first)) == "rolled_back"


@pytest.mark.parametrize(("meanwhile", "then"), [("accepted", "pending"), ("rolled back", "rolled_back")])
async def test_a_refusal_does_not_overwrite_a_concurrent_change(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, meanwhile: str, then: str
) -> None:
    """Another process submits the transaction, or a fork removes it, before this process records the refusal."""
    source, withdraw = followed.outputs.pop(), submitted.Register.withdraw
    first, second = (followed.wallet.payment(source, HELD, lovelace) for lovelace in (5 * ADA, 6 * ADA))
    assert (await followed.post(first)).status == 200

    async def late(register: submitted.Register) -> None:
        await followed.grow()
        await followed.fork(1, forget=True)
        if meanwhile == "accepted":
            async with serving(followed.environment) as other:
                reply = await other.call("POST", SUBMIT, followed.key, json={"cbor": second.to_cbor_hex()})
                assert reply.status == 200, reply.body
        else:
            node = NodeConnection(NodeAddresses([followed.node.url]))
            await asyncio.to_thread(node.submit, second.to_cbor(), bytes.fromhex(id_of(second)))
            await asyncio.to_thread(node.close)
            await followed.grow()
            await followed.fork(1, forget=True)
        await withdraw(register)

    with monkeypatch.context() as patch:
        patch.setattr(submitted.Register, "withdraw", late)
        assert code_of(await followed.post(second)) == (400, "inputs_not_unspent")
    assert await followed.state(id_of(second)) == then


async def test_if_the_answer_of_the_node_is_lost_a_block_proves_that_it_was_accepted(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, resent = followed.payment(), followed.payment()
    followed.node.delay_s = 1.0
    monkeypatch.setattr("api.sources.nodes.ANSWER_WITHIN_S", 0.1)
    for tx in (lost, resent):
        assert code_of(await followed.post(tx)) == (503, "node_not_available")
    followed.node.delay_s = 0.0
    monkeypatch.setattr("api.sources.nodes.ANSWER_WITHIN_S", 8.0)
    async with asyncio.timeout(PATIENCE_S):
        while len(followed.node.mempool.waiting) < 2:
            await asyncio.sleep(0.02)
    assert code_of(await followed.of(id_of(lost))) == (404, "transaction_not_submitted")
    assert (await followed.post(resent)).status == 200
    assert await followed.state(id_of(resent)) == "pending"
    await followed.grow()
    assert [await followed.state(id_of(tx)) for tx in (lost, resent)] == ["in_block 0"] * 2
    await followed.fork(1, forget=True)
    assert [await followed.state(id_of(tx)) for tx in (lost, resent)] == ["rolled_back"] * 2
    assert (await followed.resubmit(id_of(lost))).status == 200


async def test_a_rollback_between_the_acceptance_and_its_record_is_noted(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = submitted.Register.accept

    async def late(register: submitted.Register, *, in_block: bool) -> None:
        await followed.grow()
        await followed.fork(1, forget=True)
        await accept(register, in_block=in_block)

    with monkeypatch.context() as patch:
        patch.setattr(submitted.Register, "accept", late)
        tx_hash = await followed.submitted()
    assert await followed.state(tx_hash) == "rolled_back"
    assert (await followed.resubmit(tx_hash)).status == 200
    assert await followed.state(tx_hash) == "pending"


# The client ----------------------------------------------------------------------------------------------------------


def context_of(followed: Followed, key: str) -> LedgerlineChainContext:
    return LedgerlineChainContext(Ledgerline(f"http://127.0.0.1:{followed.api.port}", api_key=key))


async def test_the_chain_context_resubmits_a_transaction_that_a_fork_removed(
    followed: Followed, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_context, "ASK_EVERY_S", 0.05)
    tx_hash = await followed.submitted()
    await followed.grow()
    reading = ["transactions", "network"]
    ours, reader = [context_of(followed, await new_key(db, scopes)) for scopes in (["submit", *reading], reading)]
    waiting = [
        asyncio.create_task(asyncio.to_thread(each.wait_for, tx_hash, confirmations=1)) for each in (ours, reader)
    ]
    sent = followed.node.requests["submitTransaction"]
    await followed.fork(1, forget=True)
    async with asyncio.timeout(PATIENCE_S):
        while await followed.state(tx_hash) != "pending":
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    assert followed.node.requests["submitTransaction"] == sent + 1, "once for a fork"
    await followed.grow(2)
    (block,) = (each for each in followed.node.blocks if tx_hash in {tx["id"] for tx in each.decoded()["transactions"]})
    assert [(await each)["block_no"] for each in waiting] == [block.height] * 2


async def test_the_chain_context_ends_if_a_transaction_can_no_longer_be_in_a_block(
    followed: Followed, db: asyncpg.Connection
) -> None:
    ends, source = followed.node.blocks[-1].slot + 10_000, followed.outputs.pop()
    late = await followed.submitted(ttl=ends)
    first, second = (followed.wallet.payment(source, HELD, lovelace) for lovelace in (5 * ADA, 6 * ADA))
    assert (await followed.post(first)).status == 200
    await followed.grow()
    await followed.fork(1, forget=True)
    assert (await followed.post(second)).status == 200
    context = context_of(followed, await new_key(db, ["submit", "transactions", "network"]))
    with pytest.raises(TransactionFailedException, match="spent already"):
        await asyncio.to_thread(context.wait_for, id_of(first), within_s=0)
    while followed.node.blocks[-1].slot < ends:
        await followed.grow()
    with pytest.raises(TransactionFailedException, match="expired before a block included it"):
        await asyncio.to_thread(context.wait_for, late)


# Idempotency ----------------------------------------------------------------------------------------------------------


def is_replayed(reply: Reply) -> bool:
    return reply.headers.get("Idempotent-Replayed") == "true"


async def test_a_key_and_a_body_submit_once_over_two_processes(followed: Followed, db: asyncpg.Connection) -> None:
    tx, other, once = followed.payment(), followed.payment(), {"Idempotency-Key": str(uuid4())}
    requests = followed.node.requests
    async with serving(followed.environment) as second:

        async def post(api: Client, tx: Any) -> Reply:
            return await api.call("POST", SUBMIT, followed.key, json={"cbor": tx.to_cbor_hex()}, headers=once)

        followed.node.delay_s = 0.3
        twins = await asyncio.gather(*(post(api, tx) for api in (followed.api, second) for _ in range(3)))
        followed.node.delay_s = 0.0
        assert {reply.status for reply in twins} == {200}
        assert [msgspec.json.encode(reply.body) for reply in twins] == [msgspec.json.encode(twins[0].body)] * 6
        assert sum(not is_replayed(reply) for reply in twins) == 1
        assert requests["submitTransaction"] == 1
        assert code_of(await post(second, other)) == (409, "idempotency_key_reused")
        assert is_replayed(await post(second, tx))
    assert requests["submitTransaction"] == 1
    again = await followed.post(tx)
    assert (again.status, is_replayed(again)) == (200, False)
    assert requests["submitTransaction"] == 2
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1"
    assert await db.fetchval(held, idempotency._LOCK) == 0


async def test_a_refusal_is_not_remembered_and_a_key_belongs_to_its_path(followed: Followed) -> None:
    once = {"Idempotency-Key": "one"}
    source = followed.outputs.pop()
    tx, late = followed.wallet.payment(source, HELD, ADA), followed.wallet.payment(source, HELD, 2 * ADA)
    assert (await followed.post(late)).status == 200
    assert code_of(await followed.post(tx, **once)) == (400, "inputs_not_unspent")
    await followed.grow()
    await followed.fork(1, forget=True)
    first = await followed.post(tx, **once)
    assert (first.status, is_replayed(first)) == (200, False)
    await followed.grow()
    await followed.fork(1, forget=True)
    assert await followed.state(id_of(tx)) == "rolled_back"
    sent = followed.node.requests["submitTransaction"]
    assert is_replayed(await followed.post(tx, **once))
    resent = await followed.resubmit(id_of(tx), **once)
    assert (resent.status, is_replayed(resent)) == (200, False)
    await followed.grow()
    replayed = await followed.resubmit(id_of(tx), **once)
    assert (replayed.body, is_replayed(replayed)) == (resent.body, True)
    assert followed.node.requests["submitTransaction"] == sent + 1


async def test_posts_that_only_read_store_nothing(followed: Followed, db: asyncpg.Connection) -> None:
    for ids in (["ab" * 32], ["cd" * 32]):
        reply = await followed.api.call(
            "POST",
            "/v1/bulk/transactions",
            await new_key(db, []),
            json={"ids": ids},
            headers={"Idempotency-Key": "one"},
        )
        assert reply.status == 200
    assert await db.fetchval("SELECT count(*) FROM partner.idempotency_key") == 0


# What is kept ---------------------------------------------------------------------------------------------------------


async def test_the_last_transactions_of_an_account_are_kept(
    followed: Followed, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitted, "MAX_KEPT", 2)
    hashes = [await followed.submitted() for _ in range(3)]
    assert [(await followed.of(each)).status for each in hashes] == [404, 200, 200]
    await db.execute(
        "UPDATE partner.submitted_tx SET submitted_at = now() - interval '8 days' WHERE tx_hash = $1",
        bytes.fromhex(hashes[1]),
    )
    async with await database.create_pool(followed.environment["DATABASE_URL"], None, max_size=1) as pool:
        assert (await retention.prune(pool, Settings())).submitted_transactions == 1
    assert [(await followed.of(each)).status for each in hashes] == [404, 404, 200]


async def test_a_deleted_account_leaves_nothing(followed: Followed, db: asyncpg.Connection) -> None:
    partner = await partner_of(followed.api, "Deleting")
    user = await partner.user()
    credential, followed.key = await partner.issued(user)
    await restrict(partner, credential["id"])
    await followed.submitted()
    assert await db.fetchval("SELECT count(*) FROM partner.submitted_tx") == 1
    await partner.data("DELETE", f"/users/{user['id']}")
    assert await db.fetchval("SELECT count(*) FROM partner.submitted_tx") == 0


async def restrict(partner: Partner, credential_id: str) -> None:
    await partner.data("PUT", f"/credentials/{credential_id}/restrictions", {"scopes": ["submit"]})
