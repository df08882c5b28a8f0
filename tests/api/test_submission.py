"""Evaluate and submit: the transactions that reach the node, its answers, and a payment through the API alone."""

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import cbor2
import msgspec
import pycardano
import pytest

from api.blockfrost.shape import ROOT
from api.chain import submission
from api.keys import restrictions
from api.keys.restrictions import SCOPES, KeyUse
from devnet import addresses, faucet
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from shared import database
from shared.network import PREVIEW
from tests import blockfrost_schemas
from tests.api.client import Client, Reply, serving
from tests.api.conftest import IssueKey
from tests.api.locks import until_blocked
from tests.api.submitting import EVALUATE, SUBMIT, grant, new_key
from tests.chain.written import Written
from tests.wallet import ADA, Wallet, id_of

HELD = faucet.OUTPUT_LOVELACE
SEED = 20_261_122


class Sandbox(msgspec.Struct):
    """A devnet with an API in front of it, whose index begins with the devnet's last block."""

    node: NodeServer
    api: Client
    key: str
    written: Written
    outputs: list[tuple[str, int]]
    wallet: Wallet = msgspec.field(default_factory=Wallet.of_faucet)

    async def send(self, tx: Any, path: str = SUBMIT) -> Reply:
        """Send a transaction: as JSON if it is hex, otherwise as CBOR."""
        if isinstance(tx, str):
            return await self.api.call("POST", path, self.key, json={"cbor": tx})
        cbor = tx if isinstance(tx, bytes) else tx.to_cbor()
        return await self.api.call("POST", path, self.key, data=cbor, headers={"Content-Type": "application/cbor"})

    async def grow(self) -> None:
        self.node.grow()
        await self.written.index(self.node.blocks[-1].decoded())


@pytest.fixture(params=[(6, 14), (7, 0)], ids=["6", "7"])
async def sandbox(
    request: pytest.FixtureRequest,
    environment: dict[str, str],
    no_aggregator: None,  # noqa: ARG001
    db: asyncpg.Connection,
    issue_key: IssueKey,
) -> AsyncIterator[Sandbox]:
    key = await issue_key()
    await grant(db, *SCOPES)
    generated = Generated(Options(seed=8, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=40), 60)
    chain = await database.connect(environment["DATABASE_URL"], PREVIEW)
    async with (
        NodeServer(generated, dialect=Dialect(request.param)) as node,
        serving({**environment, "OGMIOS_URL_PREVIEW": node.url}) as api,
    ):
        outputs = list(generated.ledger.wallets[faucet.address(0)])
        sandbox = Sandbox(node, api, key, Written(chain), outputs)
        await sandbox.grow()
        yield sandbox
    await chain.close()


async def test_payment_mint_and_delegation_are_confirmed_and_accepted_again(sandbox: Sandbox) -> None:
    wallet, outputs = sandbox.wallet, sandbox.outputs
    assert isinstance(sandbox.node.chain, Generated)
    pool = addresses.raw(next(iter(sandbox.node.chain.ledger.pools)))
    sent = [
        wallet.payment(outputs[0], HELD, 5 * ADA).to_cbor_hex(),
        wallet.mint(outputs[1], HELD, b"Token", 7),
        wallet.delegation(outputs[2], HELD, pool),
    ]
    ids = []
    for tx in sent:
        assert (await sandbox.send(tx, EVALUATE)).body["data"]["budgets"] == []
        reply = await sandbox.send(tx)
        assert reply.status == 200, reply.body
        assert reply.headers["RateLimit-Limit"]
        ids.append(reply.body["data"]["tx_hash"])
        assert (await sandbox.send(tx)).body == reply.body  # it waits in the mempool
    assert ids[1:] == [id_of(tx) for tx in sent[1:]]
    await sandbox.grow()
    for tx, tx_hash in zip(sent, ids, strict=True):
        found = await sandbox.api.get(f"/v1/tx/hash/{tx_hash}", sandbox.key)
        assert found.status == 200
        assert (await sandbox.send(tx)).status == 200  # it is in a block


async def test_slow_reads_of_a_key_delay_no_submission(sandbox: Sandbox, db: asyncpg.Connection) -> None:
    """Its own would otherwise wait behind them, and those of all keys behind its own."""
    tx = sandbox.wallet.payment(sandbox.outputs[0], HELD, 5 * ADA).to_cbor_hex()
    async with db.transaction():
        await db.execute("LOCK TABLE chain_preview.policy")
        path = f"/v1/assets/policy/{'00' * 28}"
        reading = [asyncio.create_task(sandbox.api.get(path, sandbox.key)) for _ in range(2)]
        await until_blocked(db)
        assert (await sandbox.send(tx)).status == 200
        assert not any(each.done() for each in reading)
    assert [(await each).status for each in reading] == [200, 200]


async def test_a_transaction_in_an_unindexed_block_is_accepted_again_and_others_are_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx, conflicting = (sandbox.wallet.payment(sandbox.outputs[0], HELD, n * ADA).to_cbor_hex() for n in (5, 6))
    assert (await sandbox.send(tx)).status == 200
    sandbox.node.grow()
    monkeypatch.setattr(submission, "INDEXED_WITHIN_S", 60.0)
    again = [asyncio.create_task(sandbox.send(each)) for each in (tx, conflicting)]
    done, _ = await asyncio.wait(again, timeout=0.5)
    assert not done, "the node has a block that the index lacks"
    await sandbox.written.index(sandbox.node.blocks[-1].decoded())
    replies = [await each for each in again]
    assert [reply.status for reply in replies] == [200, 400]
    assert replies[1].headers["Error-Code"] == "inputs_not_unspent"
    monkeypatch.setattr(submission, "INDEXED_WITHIN_S", 0.1)
    sandbox.node.grow()  # and its block is never indexed
    assert (await sandbox.send(conflicting)).headers["Error-Code"] == "inputs_not_unspent"


async def test_a_transaction_is_read_before_the_node_sees_it(sandbox: Sandbox) -> None:
    wallet, source = sandbox.wallet, sandbox.outputs[0]
    payment = wallet.payment(source, HELD, 5 * ADA)
    unsigned = wallet.payment(source, HELD, 5 * ADA)
    unsigned.transaction_witness_set = pycardano.TransactionWitnessSet()
    foreign = pycardano.Address(wallet.address.payment_part, network=pycardano.Network.MAINNET)
    for tx, code in (
        (b"", "invalid_parameter"),
        (payment.to_cbor() + b"\0", "invalid_transaction"),
        (payment.to_cbor() + bytes(16_384), "transaction_too_large"),
        (b"\x9f" * 16_000, "invalid_transaction"),
        (b"\x81" * 16_000, "invalid_transaction"),
        (b"\x9b" + b"\xff" * 8, "invalid_transaction"),
        (unsigned, "transaction_not_signed"),
        (wallet.payment(source, HELD, ADA, ttl=3), "transaction_expired"),
        (wallet.payment(source, HELD, ADA, foreign), "foreign_transaction"),
        (wallet.payment(source, HELD, ADA, network_id=pycardano.Network.MAINNET), "foreign_transaction"),
        ("zz", "invalid_parameter"),
    ):
        reply = await sandbox.send(tx)
        assert (reply.status, reply.headers["Error-Code"]) == (400, code), reply.body
    for body in ({}, {"cbor": None}, {"cbor": 1}, {"cbor": "abc"}, {"cbor": "é0"}):
        reply = await sandbox.api.call("POST", SUBMIT, sandbox.key, json=body)
        assert (reply.status, reply.error[:5]) == (400, "cbor "), body
    assert sandbox.node.requests["submitTransaction"] == 0
    assert (await sandbox.send(unsigned, EVALUATE)).status == 200


async def test_refusals_have_the_form_and_words_that_clients_of_blockfrost_parse(sandbox: Sandbox) -> None:
    """Beside this service's own message. What is refused before the node is asked has them, too."""
    wallet, source = sandbox.wallet, sandbox.outputs[0]
    accepted = await sandbox.send(wallet.payment(source, HELD, 5 * ADA), f"{ROOT}/tx/submit")
    assert accepted.status == 200
    blockfrost_schemas.check("/tx/submit", accepted.body, method="POST")
    unsigned = wallet.payment(source, HELD, 7 * ADA)
    unsigned.transaction_witness_set = pycardano.TransactionWitnessSet()
    for tx, code, name in (
        (wallet.payment(source, HELD, 6 * ADA), "inputs_not_unspent", "BadInputsUTxO"),
        (wallet.payment(source, HELD, ADA, ttl=3), "transaction_expired", "OutsideValidityIntervalUTxO"),
        (unsigned, "transaction_not_signed", "MissingVKeyWitnessesUTXOW"),
    ):
        native, reply = await sandbox.send(tx), await sandbox.send(tx, f"{ROOT}/tx/submit")
        assert (reply.status, reply.headers["Error-Code"]) == (400, code)
        told = json.loads(reply.body["message"])
        assert name in told["contents"]["contents"]["contents"]["error"][0]
        assert told["message"] == native.error
    reply = await sandbox.send(b"\x80", f"{ROOT}/tx/submit")
    assert reply.body["message"].startswith("Invalid transaction: ")


@pytest.mark.parametrize("sandbox", [(7, 0)], indirect=True)
async def test_mutations_reach_the_node_only_if_they_have_the_shape_of_transactions(sandbox: Sandbox) -> None:
    wallet, outputs, dice = sandbox.wallet, sandbox.outputs, random.Random(SEED)
    real = [
        wallet.payment(outputs[0], HELD, 5 * ADA),
        wallet.mint(outputs[1], HELD, b"Token", 7),
        wallet.delegation(outputs[2], HELD, bytes(28)),
    ]
    mutations = [mutated(bytearray(dice.choice(real).to_cbor()), dice) for _ in range(1_000)]
    replies: list[Reply] = []
    for first in range(0, len(mutations), 25):
        replies += await asyncio.gather(*(sandbox.send(tx) for tx in mutations[first : first + 25]))
    by_us = {"invalid_transaction", "foreign_transaction", "transaction_not_signed", "transaction_expired"}
    codes = [reply.headers.get("Error-Code") for reply in replies]
    assert {reply.status for reply in replies} <= {200, 400}, set(codes)
    reached = sum(code not in by_us for code in codes)
    assert sandbox.node.requests["submitTransaction"] == reached
    assert 0 < reached < len(mutations)
    for tx, code in zip(mutations, codes, strict=True):
        assert code in by_us or is_shaped(tx), tx.hex()
        assert code != "invalid_transaction" or not is_transaction(tx), tx.hex()


def mutated(tx: bytearray, dice: random.Random) -> bytes:
    """One to three changes: a changed bit or byte, or bytes that are removed, repeated or added."""
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(tx))
        match dice.randrange(5):
            case 0:
                tx[at] ^= 1 << dice.randrange(8)
            case 1:
                tx[at] = dice.randrange(256)
            case 2:
                del tx[at : at + dice.randint(1, 40)]
            case 3:
                tx[at:at] = tx[at : at + dice.randint(1, 40)]
            case _:
                tx[at:at] = dice.randbytes(dice.randint(1, 9))
        if not tx:
            return b""
    return bytes(tx)


def is_shaped(cbor: bytes) -> bool:
    """Whether it is an array of a body, witnesses and the rest. The node judges what is in them."""
    try:
        body, witnesses, *rest = cbor2.loads(cbor, str_errors="replace")
    except cbor2.CBORDecodeValueError:
        return True  # it is well-formed; cbor2 demands another type as the content of a tag
    return isinstance(body, dict) and isinstance(witnesses, dict) and len(rest) in (1, 2)


def is_transaction(cbor: bytes) -> bool:
    """Whether it is one for pycardano, which does not mind further bytes."""
    try:
        pycardano.Transaction.from_cbor(cbor)
        file = io.BytesIO(cbor)
        cbor2.CBORDecoder(file).decode()
    except Exception:  # noqa: BLE001 - they raise many kinds
        return False
    return file.tell() == len(cbor)


async def test_submit_must_be_named_among_the_scopes_of_a_key(sandbox: Sandbox, db: asyncpg.Connection) -> None:
    tx = sandbox.wallet.payment(sandbox.outputs[0], HELD, 5 * ADA)
    assert (await sandbox.send(tx, EVALUATE)).status == 200
    for scopes in ([], ["transactions", "assets", "pools"]):
        key = await new_key(db, scopes)
        for path in (SUBMIT, EVALUATE):
            reply = await sandbox.api.call("POST", path, key, json={"cbor": "00"})
            assert (reply.status, reply.error) == (403, "Key does not cover submit"), scopes
        assert (await sandbox.api.get("/v1/tx/hash/" + "0" * 64, key)).status == 404
        assert restrictions.parse([], scopes).bars(KeyUse("submit")) == "scope"  # without Valkey
    assert restrictions.parse([], ["submit"]).bars(KeyUse("submit")) is None


@pytest.mark.parametrize("sandbox", [(7, 0)], indirect=True)
async def test_a_node_that_is_away_is_named_and_found_again(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tx = sandbox.wallet.payment(sandbox.outputs[0], HELD, 5 * ADA)
    assert (await sandbox.send(tx, EVALUATE)).status == 200
    sandbox.node.drop_connections()
    assert (await sandbox.send(tx, EVALUATE)).status == 200
    sandbox.node.delay_s = 2.0
    monkeypatch.setattr("api.sources.nodes.ANSWER_WITHIN_S", 0.1)
    late = await sandbox.send(tx)
    assert (late.status, late.headers["Error-Code"], late.headers["Retry-After"]) == (503, "node_not_available", "2")
    sandbox.node.delay_s = 0.0
    monkeypatch.setattr("api.sources.nodes.ANSWER_WITHIN_S", 8.0)
    assert (await sandbox.send(tx)).status == 200  # the node has the transaction, which is accepted again
