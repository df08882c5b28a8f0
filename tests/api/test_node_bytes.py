"""Bytes that are read through from the node: equal to the block's own, whatever the node does meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from api.keys.restrictions import SCOPES
from api.node_bytes import blocks as node_blocks
from devnet import addresses, control, faucet
from devnet.dialect import Dialect
from devnet.generator import Generated
from devnet.monitor import Monitor
from devnet.refusal import Refusal as DevnetRefusal
from devnet.server import NodeServer
from devnet.session import Session
from shared.encoding import bech32_decode, bech32_encode
from tests import blockfrost_schemas
from tests.api import sandboxes
from tests.api.client import Reply, serving
from tests.api.conftest import IssueKey
from tests.api.payments import NOBODY
from tests.api.sandboxes import Sandbox
from tests.api.submitting import grant
from tests.patience import PATIENCE_S
from tests.wallet import ADA, Wallet

ROOT = "/blockfrost/api/v0"
FLAG = "--include-transaction-cbor"


class Asked(msgspec.Struct):
    """An API before a devnet that it has indexed, and a key with every scope."""

    sandbox: Sandbox
    key: str

    @property
    def node(self) -> NodeServer:
        return self.sandbox.node

    async def get(self, path: str) -> Reply:
        return await self.sandbox.api.get(path, self.key)

    def newest(self) -> dict[str, Any]:
        """The last block with transactions."""
        return next(block.decoded() for block in reversed(self.node.blocks) if block.decoded()["transactions"])


@pytest.fixture
async def asked(
    environment: dict[str, str],
    no_aggregator: None,  # noqa: ARG001
    issue_key: IssueKey,
    db: asyncpg.Connection,
) -> AsyncIterator[Asked]:
    key = await issue_key()
    await grant(db, *SCOPES)
    async with sandboxes.opened(environment) as sandbox:
        yield Asked(sandbox, key)


def failure(reply: Reply) -> tuple[int, str, str]:
    """Status, code and message of a refusal, native or Blockfrost's."""
    body = reply.body
    return reply.status, reply.headers["Error-Code"], body["error"] if "success" in body else body["message"]


async def test_every_transaction_has_the_bytes_of_its_block(asked: Asked) -> None:
    transactions = [tx for block in asked.node.blocks for tx in block.decoded()["transactions"]]
    assert len(transactions) > 20
    for tx in transactions:
        native = await asked.get(f"/v1/tx/hash/{tx['id']}/cbor")
        assert native.body["data"] == {"tx_hash": tx["id"], "cbor": tx["cbor"]}
        assert (await asked.get(f"{ROOT}/txs/{tx['id']}/cbor")).body == {"cbor": tx["cbor"]}


async def test_another_account_reads_the_bytes_that_pycardano_made(
    asked: Asked, issue_key: IssueKey, db: asyncpg.Connection
) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(asked.node.chain, Generated)
    source = next(iter(asked.node.chain.ledger.wallets[str(wallet.address)]))
    made = wallet.payment(source, faucet.OUTPUT_LOVELACE, 5 * ADA)
    reply = await asked.sandbox.api.call("POST", "/v1/tx/submit", asked.key, json={"cbor": made.to_cbor_hex()})
    assert reply.body["data"]["tx_hash"] == str(made.id)
    other = await issue_key()
    await grant(db, *SCOPES)
    paths = (f"/v1/tx/hash/{made.id}/cbor", f"{ROOT}/txs/{made.id}/cbor")
    for path in paths:  # no block has it yet
        assert (await asked.sandbox.api.get(path, other)).status == 404
    await asked.sandbox.grow()
    native, shown = [(await asked.sandbox.api.get(path, other)).body for path in paths]
    assert native["data"]["cbor"] == shown["cbor"] == made.to_cbor_hex()


async def test_the_transactions_of_a_block_are_listed_with_their_bytes_by_pages(asked: Asked) -> None:
    block = max((block.decoded() for block in asked.node.blocks), key=lambda block: len(block["transactions"]))
    whole = [{"tx_hash": tx["id"], "cbor": tx["cbor"]} for tx in block["transactions"]]
    assert len(whole) > 2
    path = f"{ROOT}/blocks/{block['id']}/txs/cbor"
    assert (await asked.get(path)).body == whole
    assert (await asked.get(f"{path}?order=desc&count=2")).body == whole[::-1][:2]
    assert (await asked.get(f"{path}?count=2&page=2")).body == whole[2:4]
    assert (await asked.get(f"{path}?page=99")).body == []
    native = (await asked.get(f"/v1/blocks/{block['height']}/transactions/cbor?limit=2&offset=1")).body
    assert native["data"] == whole[1:3]
    assert native["pagination"] == {"limit": 2, "offset": 1, "total": len(whole), "hasMore": len(whole) > 3}


async def test_a_block_is_read_once_while_it_is_cached(asked: Asked) -> None:
    blocks = [block.decoded() for block in asked.node.blocks if block.decoded()["transactions"]][-3:]
    for block in blocks * 2:
        for tx in block["transactions"]:
            assert (await asked.get(f"/v1/tx/hash/{tx['id']}/cbor")).status == 200
    assert asked.node.requests["findIntersection"] == len(blocks)


async def test_the_cache_has_a_bound_of_bytes(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_blocks, "MAX_CACHED_BYTES", 1)
    for times in (1, 2):
        # Two pages, since an answer that is asked for again is not made again.
        assert (await asked.get(f"/v1/blocks/{asked.newest()['id']}/transactions/cbor?limit={times}")).status == 200
        assert asked.node.requests["findIntersection"] == times


async def test_a_node_without_the_flag_is_named_it_and_needs_no_restart_when_it_gets_it(asked: Asked) -> None:
    block = asked.newest()
    paths = (
        f"/v1/tx/hash/{block['transactions'][0]['id']}/cbor",
        f"{ROOT}/txs/{block['transactions'][0]['id']}/cbor",
        f"{ROOT}/blocks/{block['height']}/txs/cbor",
    )
    node, whole = asked.node, asked.node.frames
    without = Dialect(sandboxes.VERSION, transaction_cbor=False)
    node.frames = [without.block(each.content) for each in node.blocks]
    for path in paths:
        status, code, message = failure(await asked.get(path))
        assert (status, code) == (503, "cbor_not_sent")
        assert FLAG in message
    node.frames = whole
    for path in paths:
        assert (await asked.get(path)).status == 200


async def test_while_the_node_is_away_the_answer_says_so_and_afterwards_it_is_read(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/tx/hash/{asked.newest()['transactions'][0]['id']}/cbor"
    asked.node.delay_s = 1.0
    monkeypatch.setattr(node_blocks, "BLOCK_WITHIN_S", 0.1)
    reply = await asked.get(path)
    assert failure(reply) == (503, "node_not_available", "Node not available: it does not answer")
    assert reply.headers["Retry-After"]
    asked.node.delay_s = 0.0
    monkeypatch.setattr(node_blocks, "BLOCK_WITHIN_S", PATIENCE_S)
    assert (await asked.get(path)).status == 200
    for other in asked.node.blocks[:-1]:  # a connection that was lost while it was idle is replaced
        asked.node.drop_connections()
        assert (await asked.get(f"{ROOT}/blocks/{other.id}/txs/cbor")).status in (200, 503)
    assert (await asked.get(f"{ROOT}/blocks/{asked.node.blocks[-2].id}/txs/cbor")).status == 200


async def test_an_api_without_a_node_says_so(
    asked: Asked,
    environment: dict[str, str],
) -> None:
    async with serving(environment) as api:
        reply = await api.get(f"/v1/tx/hash/{asked.newest()['transactions'][0]['id']}/cbor", asked.key)
    assert failure(reply) == (503, "no_node", "This is read from a node, and this service has none for preview")


async def test_an_unknown_transaction_or_block_is_not_found(asked: Asked) -> None:
    unknown = "0" * 64
    assert failure(await asked.get(f"/v1/tx/hash/{unknown}/cbor"))[:2] == (404, "transaction_not_found")
    assert failure(await asked.get(f"{ROOT}/txs/{unknown}/cbor"))[0] == 404
    assert failure(await asked.get(f"{ROOT}/blocks/{unknown}/txs/cbor"))[0] == 404
    assert asked.node.requests["findIntersection"] == 0


# Headers --------------------------------------------------------------------------------------------------------------


async def test_blocks_have_what_their_headers_say_and_each_is_read_once(asked: Asked) -> None:
    blocks = [block.decoded() for block in asked.node.blocks]
    last = blocks[-1]
    shown = (await asked.get(f"{ROOT}/blocks/{last['id']}/previous?count=20")).body
    shown.append((await asked.get(f"{ROOT}/blocks/latest")).body)
    assert [each["hash"] for each in shown] == [each["id"] for each in blocks[-21:]]
    for each, block in zip(shown, blocks[-21:], strict=True):
        issuer = block["issuer"]
        hrp, vrf_key = bech32_decode(each["block_vrf"])
        assert (hrp, vrf_key.hex(), len(each["block_vrf"])) == ("vrf_vk", issuer["vrfVerificationKey"], 65)
        assert each["op_cert"] == issuer["operationalCertificate"]["kes"]["verificationKey"]
        assert each["op_cert_counter"] == str(issuer["operationalCertificate"]["count"])
        assert each["size"] == block["size"]["bytes"]
    assert asked.node.requests["findIntersection"] == 2
    for path in (f"{last['id']}/previous?count=20", "latest", str(last["height"])):
        assert (await asked.get(f"{ROOT}/blocks/{path}")).status == 200
    assert asked.node.requests["findIntersection"] == 2


async def test_a_lost_node_costs_blocks_only_their_headers_and_no_time(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{ROOT}/blocks/latest"
    asked.node.delay_s = 1_000.0
    monkeypatch.setattr(node_blocks, "HEADERS_WITHIN_S", 0.05)
    for _ in range(5):
        body = (await asked.get(path)).body
        assert [body[name] for name in ("block_vrf", "op_cert", "op_cert_counter")] == [None] * 3
        assert body["tx_count"] is not None and body["size"] is not None
    assert asked.node.requests["findIntersection"] == 1  # it is not asked again for a while
    asked.node.delay_s = 0.0
    monkeypatch.setattr(node_blocks, "HEADERS_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(node_blocks, "PAUSE_S", 0.0)
    await asked.sandbox.grow()
    async with asyncio.timeout(PATIENCE_S):
        while (await asked.get(path)).body["block_vrf"] is None:
            await asyncio.sleep(0.1)


async def test_blocks_have_no_header_while_readings_of_bytes_wait_for_a_hanging_node_and_after_they_failed(
    asked: Asked, issue_key: IssueKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.node.delay_s = 1_000.0
    monkeypatch.setattr(node_blocks, "BLOCK_WITHIN_S", 1_000.0)
    monkeypatch.setattr(node_blocks, "HEADERS_TURN_WITHIN_S", 0.05)
    bytes_of = f"{ROOT}/blocks/{asked.newest()['id']}/txs/cbor"
    # Two pages, since requests with one question wait for one answer.
    pages = {asked.key: f"{bytes_of}?count=1", await issue_key(): f"{bytes_of}?count=2"}
    readings = [asyncio.create_task(asked.sandbox.api.get(page, key)) for key, page in pages.items()]
    async with asyncio.timeout(PATIENCE_S):
        while asked.node.requests["findIntersection"] < len(readings):
            await asyncio.sleep(0.01)
    shown = await asked.get(f"{ROOT}/blocks/latest")
    assert (shown.status, shown.body["block_vrf"]) == (200, None)
    asked.node.drop_connections()
    assert [(await reading).status for reading in readings] == [503, 503]
    shown = await asked.get(f"{ROOT}/blocks/latest")
    assert (shown.status, shown.body["block_vrf"]) == (200, None)
    assert asked.node.requests["findIntersection"] == len(readings)


async def test_blocks_of_a_fork_that_the_node_has_left_have_no_header(asked: Asked) -> None:
    control.fork(asked.node, 3)
    shown = (await asked.get(f"{ROOT}/blocks/latest/previous?count=4")).body
    assert [each["block_vrf"] is None for each in shown] == [False, False, True, True]
    assert (await asked.get(f"{ROOT}/blocks/latest")).body["block_vrf"] is None


# Forks ----------------------------------------------------------------------------------------------------------------


async def test_a_block_that_only_the_index_still_has_is_refused_until_the_index_follows(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.chain.block_bytes._BETWEEN_S", 0.01)
    gone = asked.node.blocks[-1].decoded()
    while not gone["transactions"]:
        await asked.sandbox.grow()
        gone = asked.node.blocks[-1].decoded()
    path = f"/v1/tx/hash/{gone['transactions'][0]['id']}/cbor"
    control.fork(asked.node, 3)
    reply = await asked.get(path)
    assert failure(reply) == (503, "node_not_available", "Node not available: its chain does not have the block")


async def test_a_fork_between_look_up_and_answer_is_followed(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index knows the block at first, the node does not; then the index has rolled back, too."""
    monkeypatch.setattr("api.chain.block_bytes._BETWEEN_S", 0.05)
    monkeypatch.setattr("api.chain.block_bytes._READINGS", 10_000)
    gone = asked.node.blocks[-1].decoded()
    while not gone["transactions"]:
        await asked.sandbox.grow()
        gone = asked.node.blocks[-1].decoded()
    control.fork(asked.node, 1)
    asking = asyncio.create_task(asked.get(f"/v1/tx/hash/{gone['transactions'][0]['id']}/cbor"))
    async with asyncio.timeout(PATIENCE_S):
        while asked.node.requests["findIntersection"] < 2:
            await asyncio.sleep(0.01)
    assert not asking.done()
    *_, before, first, second = asked.node.blocks
    await asked.sandbox.written.back_to(before.slot)
    for block in (first, second):
        await asked.sandbox.written.index(block.decoded())
    assert failure(await asking)[:2] == (404, "transaction_not_found")


async def test_a_node_that_is_behind_the_index_is_not_waited_for(asked: Asked) -> None:
    """A request for the block after the node's tip would wait until there is one."""
    newest = asked.newest()
    index = next(at for at, each in enumerate(asked.node.blocks) if each.id == newest["id"])
    asked.node.fork(index - 1, [])
    reply = await asked.get(f"{ROOT}/blocks/{newest['id']}/txs/cbor")
    assert failure(reply) == (503, "node_not_available", "Node not available: its chain does not have the block")
    assert asked.node.requests["nextBlock"] == 0


# The mempool ----------------------------------------------------------------------------------------------------------


async def test_waiting_transactions_are_shown_as_they_are_once_a_block_has_them(asked: Asked) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(asked.node.chain, Generated)
    outputs = list(asked.node.chain.ledger.wallets[str(wallet.address)])
    pool = addresses.raw(next(iter(asked.node.chain.ledger.pools)))
    held = faucet.OUTPUT_LOVELACE
    sent = [
        wallet.payment(outputs[0], held, 5 * ADA),
        wallet.mint(outputs[1], held, b"Token", 7),
        wallet.delegation(outputs[2], held, pool),
    ]
    hashes = []
    for tx in sent:
        body = {"cbor": tx if isinstance(tx, str) else tx.to_cbor_hex()}
        reply = await asked.sandbox.api.call("POST", "/v1/tx/submit", asked.key, json=body)
        hashes.append(reply.body["data"]["tx_hash"])
    for query, expected in (
        ("", hashes),
        ("?order=desc", hashes[::-1]),
        ("?count=2&page=2", hashes[2:]),
        ("?page=3", []),
    ):
        assert (await asked.get(f"{ROOT}/mempool{query}")).body == [{"tx_hash": each} for each in expected]
    own = f"{ROOT}/mempool/addresses/{wallet.address}"
    assert (await asked.get(own)).body == [{"tx_hash": each} for each in hashes]
    for prefix in ("addr_vkh", "script"):
        credential = bech32_encode(prefix, wallet.address.payment_part.payload)
        assert (await asked.get(f"{ROOT}/mempool/addresses/{credential}")).body == (await asked.get(own)).body
    assert (await asked.get(f"{ROOT}/mempool/addresses/{bech32_encode('addr_vkh', bytes(28))}")).body == []
    assert (await asked.get(f"{ROOT}/mempool/addresses/addr_vkh1x")).status == 400
    assert (await asked.get(f"{own}?count=1&page=2")).body == [{"tx_hash": hashes[1]}]
    assert (await asked.get(f"{ROOT}/mempool/addresses/{NOBODY}")).body == []
    waiting = [(await asked.get(f"{ROOT}/mempool/{each}")).body for each in hashes]
    await asked.sandbox.grow()
    for tx_hash, shown in zip(hashes, waiting, strict=True):
        blockfrost_schemas.check("/mempool/{hash}", shown)
        in_block = (await asked.get(f"{ROOT}/txs/{tx_hash}")).body
        not_kept = {"mir_cert_count": 0, "redeemer_count": 0}
        assert shown["tx"] == {name: in_block[name] for name in shown["tx"]} | not_kept
        made = (await asked.get(f"{ROOT}/txs/{tx_hash}/utxos")).body
        assert shown["outputs"] == [without(each, "consumed_by_tx") for each in made["outputs"]]
        names = ("address", "tx_hash", "output_index", "collateral", "reference")
        assert shown["inputs"] == [{name: each[name] for name in names} for each in made["inputs"]]
        assert shown["redeemers"] == []
        assert (await asked.get(f"{ROOT}/mempool/{tx_hash}")).status == 404
    assert (await asked.get(f"{ROOT}/mempool")).body == (await asked.get(own)).body == []


async def test_a_chain_of_waiting_transactions_is_read_without_the_index(asked: Asked) -> None:
    """The second spends an output of the first, which no block has."""
    wallet = Wallet.of_faucet()
    assert isinstance(asked.node.chain, Generated)
    source = next(iter(asked.node.chain.ledger.wallets[str(wallet.address)]))
    first = wallet.payment(source, faucet.OUTPUT_LOVELACE, 5 * ADA)
    change = next(at for at, each in enumerate(first.transaction_body.outputs) if each.address == wallet.address)
    held = first.transaction_body.outputs[change].amount.coin
    second = wallet.payment((str(first.id), change), held, 2 * ADA)
    for tx in (first, second):
        sent = await asked.sandbox.api.call("POST", "/v1/tx/submit", asked.key, json={"cbor": tx.to_cbor_hex()})
        assert sent.status == 200
    shown = (await asked.get(f"{ROOT}/mempool/{second.id}")).body
    assert [each["address"] for each in shown["inputs"]] == [str(wallet.address)]
    assert shown["tx"]["deposit"] == "0"
    both = [{"tx_hash": str(each.id)} for each in (first, second)]
    assert (await asked.get(f"{ROOT}/mempool/addresses/{wallet.address}")).body == both


async def test_the_mempool_needs_a_node_and_its_contents_the_flag(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(asked.node.chain, Generated)
    source = next(iter(asked.node.chain.ledger.wallets[str(wallet.address)]))
    made = wallet.payment(source, faucet.OUTPUT_LOVELACE, 5 * ADA)
    await asked.sandbox.api.call("POST", "/v1/tx/submit", asked.key, json={"cbor": made.to_cbor_hex()})
    asked.node.dialect, dialect = Dialect(sandboxes.VERSION, transaction_cbor=False), asked.node.dialect
    status, code, message = failure(await asked.get(f"{ROOT}/mempool/{made.id}"))
    assert (status, code) == (503, "cbor_not_sent")
    assert FLAG in message
    assert (await asked.get(f"{ROOT}/mempool")).body == [{"tx_hash": str(made.id)}]
    asked.node.dialect = dialect
    assert (await asked.get(f"{ROOT}/mempool/{made.id}")).status == 200
    asked.node.drop_connections()
    assert (await asked.get(f"{ROOT}/mempool")).body == [{"tx_hash": str(made.id)}]
    asked.node.delay_s = 1_000.0
    monkeypatch.setattr("api.node_bytes.mempool.WITHIN_S", 0.1)
    for path in ("", f"/{made.id}", f"/addresses/{wallet.address}"):
        assert failure(await asked.get(f"{ROOT}/mempool{path}"))[:2] == (503, "node_not_available")


async def test_the_mempool_is_not_shown_before_its_network_is_served(asked: Asked, db: asyncpg.Connection) -> None:
    for statement in ("UPDATE chain_preview.tip SET phase = 'bulk'", "DELETE FROM chain_preview.tip"):
        await db.execute(statement)
        for path in ("", f"/{'0' * 64}", f"/addresses/{NOBODY}"):
            reply = await asked.get(f"{ROOT}/mempool{path}")
            assert failure(reply) == (503, "network_not_available", "Network not available"), statement


async def test_an_answer_about_the_mempool_that_makes_no_sense_is_refused(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(asked.node.chain, Generated)
    source = next(iter(asked.node.chain.ledger.wallets[str(wallet.address)]))
    made = wallet.payment(source, faucet.OUTPUT_LOVELACE, 5 * ADA)
    await asked.sandbox.api.call("POST", "/v1/tx/submit", asked.key, json={"cbor": made.to_cbor_hex()})
    whole = asked.node.mempool.waiting[str(made.id)].content
    told: dict[str, Any] = {}

    def tell(monitor: Monitor, _full: bool) -> Any:
        monitor._position += 1
        return told if monitor._position == 1 else None

    monkeypatch.setattr(Monitor, "_next", tell)
    (output, *others), (spent, *_) = whole["outputs"], whole["inputs"]

    def paying(**fields: Any) -> dict[str, Any]:
        return {"outputs": [{**output, **fields}, *others]}

    told = {**whole, **paying(script={"language": "plutus:v9", "cbor": "01"})}
    path = f"{ROOT}/mempool/{whole['id']}"
    shown = await asked.get(path)
    assert shown.status == 200, shown.body
    assert shown.body["outputs"][0]["reference_script_hash"] is None
    answers: tuple[dict[str, Any], ...] = (
        {"id": "x" * 64},
        {"inputs": [{**spent, "transaction": {"id": "x" * 64}}]},
        {"inputs": [{**spent, "index": -1}]},
        {"withdrawals": {"stake_test1": {}}},
        paying(value={}),
        paying(value={"ada": {}}),
        paying(datum="x"),
        paying(datum="abc"),
        paying(datumHash="00"),
        paying(script={"language": "plutus:v3", "cbor": "x"}),
    )
    unreadable = (503, "node_not_available", "Node not available: its answer can't be read")
    for wrong in answers:
        told = {**whole, **wrong}
        for each in (path, f"{ROOT}/mempool/addresses/{NOBODY}"):
            assert failure(await asked.get(each)) == unreadable, wrong
    told = {**whole, **paying(address="addr_test1x")}
    by_credential = f"{ROOT}/mempool/addresses/{bech32_encode('addr_vkh', bytes(28))}"
    status, code, message = failure(await asked.get(by_credential))
    assert (status, code) == (503, "node_not_available")
    assert "an address of a transaction can't be read" in message


async def test_a_longer_mempool_than_any_can_be_is_refused(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.node_bytes.mempool.MAX_TRANSACTIONS", -1)
    assert failure(await asked.get(f"{ROOT}/mempool"))[:2] == (503, "node_not_available")


async def test_a_node_that_refuses_a_reading_is_quoted_and_blocks_lack_only_their_headers(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_asked: object) -> None:
        raise DevnetRefusal(-32603, "Not now. " + "x" * 10_000)

    monkeypatch.setattr(Session, "_next_block", refuse)
    shown = await asked.get(f"{ROOT}/blocks/latest")
    assert (shown.status, shown.body["block_vrf"]) == (200, None)
    block = asked.newest()
    assert_quoted(await asked.get(f"{ROOT}/blocks/{block['id']}/txs/cbor"))
    assert_quoted(await asked.get(f"/v1/tx/hash/{block['transactions'][0]['id']}/cbor"))
    for method in ("_next", "_acquire"):
        monkeypatch.setattr(Monitor, method, refuse)
        for path in ("", f"/{block['id']}", f"/addresses/{NOBODY}"):
            assert_quoted(await asked.get(f"{ROOT}/mempool{path}"))


def assert_quoted(reply: Reply) -> None:
    status, code, message = failure(reply)
    assert (status, code) == (503, "node_not_available")
    assert message.startswith("Node not available: it refused to be read: Not now. x")
    assert message.endswith(" (code -32603)")
    assert len(message) < 300


def without(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


# Wrong and long answers -----------------------------------------------------------------------------------------------


async def test_bytes_that_do_not_have_the_id_of_the_transaction_are_refused(asked: Asked) -> None:
    block = asked.newest()
    index = next(at for at, each in enumerate(asked.node.blocks) if each.id == block["id"])
    tx = block["transactions"][0]
    at = 20  # inside the body
    wrong = tx["cbor"][:at] + format(int(tx["cbor"][at], 16) ^ 1, "x") + tx["cbor"][at + 1 :]
    for cbor in (wrong, "", "f6", "80", tx["cbor"][:40]):
        told = {**block, "transactions": [{**tx, "cbor": cbor}, *block["transactions"][1:]]}
        asked.node.frames[index] = msgspec.json.encode(told)
        for path in (f"/v1/tx/hash/{tx['id']}/cbor", f"{ROOT}/blocks/{block['id']}/txs/cbor"):
            status, code, message = failure(await asked.get(path))
            assert (status, code) == (503, "node_not_available"), path
            assert "not those of the index" in message


async def test_a_huge_block_is_read_and_a_longer_one_than_any_can_be_is_refused(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = asked.newest()
    index = next(at for at, each in enumerate(asked.node.blocks) if each.id == block["id"])
    path = f"{ROOT}/blocks/{block['id']}/txs/cbor"
    asked.node.frames[index] = msgspec.json.encode({**block, "padding": "x" * 3_000_000})
    monkeypatch.setattr("api.node_bytes.connection.MAX_FRAME_BYTES", 1_000_000)
    assert failure(await asked.get(path))[:2] == (503, "node_not_available")
    monkeypatch.setattr("api.node_bytes.connection.MAX_FRAME_BYTES", 16_000_000)
    assert (await asked.get(path)).body == [{"tx_hash": tx["id"], "cbor": tx["cbor"]} for tx in block["transactions"]]


# Turns ----------------------------------------------------------------------------------------------------------------


async def test_one_key_reads_one_block_at_a_time_and_another_goes_on(asked: Asked, issue_key: IssueKey) -> None:
    other = await issue_key()
    blocks = [block.decoded() for block in asked.node.blocks if block.decoded()["transactions"]]
    asked.node.delay_s = 0.05
    order: list[str] = []

    async def read(key: str, block: dict[str, Any]) -> None:
        reply = await asked.sandbox.api.get(f"{ROOT}/blocks/{block['id']}/txs/cbor", key)
        assert reply.status == 200
        order.append(key)

    readings = [read(asked.key, block) for block in blocks[:8]]
    await asyncio.gather(*readings, read(other, blocks[8]))
    assert order.index(other) <= 2
