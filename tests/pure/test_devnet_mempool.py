"""The devnet accepts transactions as a node does, with the messages of both versions of Ogmios."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pycardano
import pytest

from devnet import addresses, control, faucet
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from tests.chain.ogmios import VERSIONS, OgmiosClient, client, strange
from tests.wallet import ADA, FEE, Wallet, id_of

Json = dict[str, Any]

HELD = faucet.OUTPUT_LOVELACE


class Devnet(msgspec.Struct):
    """A running devnet, a client, and outputs of the faucet that no test has spent yet."""

    node: NodeServer
    ogmios: OgmiosClient
    outputs: list[tuple[str, int]]
    wallet: Wallet = msgspec.field(default_factory=Wallet.of_faucet)

    async def submit(self, tx: Any) -> Json:
        cbor = tx if isinstance(tx, str) else tx.to_cbor_hex()
        return dict(await self.ogmios.ask("submitTransaction", transaction={"cbor": cbor}))

    def in_tip(self) -> set[str]:
        return {tx["id"] for tx in self.node.blocks[-1].decoded()["transactions"]}


@asynccontextmanager
async def running(version: tuple[int, int]) -> AsyncIterator[Devnet]:
    chain = Generated(Options(seed=8, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=40), 60)
    async with NodeServer(chain, dialect=Dialect(version)) as node, client(node) as ogmios:
        found = await ogmios.ask("queryLedgerState/utxo", addresses=[faucet.address(0)])
        assert len(found) == faucet.OUTPUTS
        yield Devnet(node, ogmios, [(each["transaction"]["id"], each["index"]) for each in found])


@pytest.fixture(params=VERSIONS, ids=["6", "7"])
async def devnet(request: pytest.FixtureRequest) -> AsyncIterator[Devnet]:
    async with running(request.param) as found:
        yield found


def pool_of(node: NodeServer) -> bytes:
    return addresses.raw(next(iter(node.chain.ledger.pools)))  # type: ignore[attr-defined]  # a generated chain


async def test_payment_mint_and_delegation_appear_in_the_next_block_under_their_own_ids(devnet: Devnet) -> None:
    wallet, outputs = devnet.wallet, devnet.outputs
    sent = [
        wallet.payment(outputs[0], HELD, 5 * ADA),
        wallet.mint(outputs[1], HELD, b"Token", 7),
        wallet.delegation(outputs[2], HELD, pool_of(devnet.node)),
    ]
    sent.append(wallet.payment((id_of(sent[0]), 0), 5 * ADA, 2 * ADA))  # it spends an output of the mempool
    for tx in sent:
        assert await devnet.submit(tx) == {"transaction": {"id": id_of(tx)}}
    devnet.node.grow()
    assert devnet.in_tip() >= {id_of(tx) for tx in sent}
    assert not devnet.node.mempool.waiting
    blocks = [tx for tx in devnet.node.blocks[-1].decoded()["transactions"] if tx["id"] in map(id_of, sent)]
    assert [tx["cbor"] for tx in blocks] == [tx.to_cbor_hex() for tx in sent]
    assert blocks[1]["mint"] == {str(wallet.policy.hash()): {b"Token".hex(): 7}}
    found = await devnet.ogmios.ask(
        "queryLedgerState/utxo", outputReferences=[{"transaction": {"id": id_of(sent[3])}, "index": 0}]
    )
    assert [each["value"] for each in found] == [{"ada": {"lovelace": 2 * ADA}}]


def broken(wallet: Wallet, source: tuple[str, int], pool: bytes) -> dict[int, Any]:
    """A transaction that breaks a rule, by the code of the rule."""
    other = Wallet.numbered(5)
    paid = [pycardano.TransactionOutput(wallet.address, HELD - FEE)]
    stake = other.stake_key.to_verification_key().hash()
    foreign = pycardano.Address(stake, network=pycardano.Network.MAINNET)
    minted = pycardano.MultiAsset({other.policy.hash(): pycardano.Asset({pycardano.AssetName(b"X"): 1})})
    unsigned = wallet.payment(source, HELD, ADA)
    unsigned.transaction_witness_set = pycardano.TransactionWitnessSet()
    forged = wallet.payment(source, HELD, ADA)
    forged.transaction_body.fee += 1
    delegation = [pycardano.StakeDelegation(pycardano.StakeCredential(stake), pycardano.PoolKeyHash(pool))]
    body = wallet.body
    holding = [pycardano.TransactionOutput(wallet.address, pycardano.Value(HELD - FEE, minted))]
    return {
        3100: forged,
        3101: unsigned,
        3102: wallet.signed(body(source, holding, mint=minted)),
        3103: wallet.signed(body(source, holding, mint=minted), scripts=[other.policy]),
        3104: wallet.signed(body(source, paid), scripts=[other.policy]),
        3106: wallet.signed(body(source, paid, auxiliary_data_hash=pycardano.AuxiliaryDataHash(bytes(32)))),
        3117: wallet.payment(("ab" * 32, 0), HELD, ADA),
        3118: wallet.payment(source, HELD, ADA, ttl=5),
        3119: wallet.signed(body(source, [pycardano.TransactionOutput(wallet.address, ADA)] * 500)),
        3122: wallet.signed(body(source, [pycardano.TransactionOutput(wallet.address, HELD - 9)], fee=9)),
        3123: wallet.signed(body(source, [pycardano.TransactionOutput(wallet.address, HELD)])),
        3124: wallet.payment(source, HELD, ADA, foreign),
        3125: wallet.payment(source, HELD, 9),
        3140: wallet.delegation(source, HELD, bytes(28)),
        3146: wallet.signed(body(source, paid, certificates=delegation), more_keys=[other.stake_key]),
    }


async def refusals(devnet: Devnet) -> list[Json]:
    """The answers to transactions that break a rule, and to bytes that are none."""
    refused = []
    for code, tx in broken(devnet.wallet, devnet.outputs[0], pool_of(devnet.node)).items():
        answer = await devnet.submit(tx)
        assert answer["code"] == code, answer
        refused.append(answer)
    for nonsense in ("", "8400", "ff" * 40, "84a0a0f5f6"):
        answer = await devnet.submit(nonsense)
        assert answer["code"] == -32602
        refused.append(answer)
    return [{"jsonrpc": "2.0", "method": "submitTransaction", "error": each, "id": 1} for each in refused]


async def test_a_transaction_that_breaks_a_rule_is_refused_with_ogmios_message(devnet: Devnet) -> None:
    assert strange(devnet.node.dialect.version, await refusals(devnet)) == {}
    assert not devnet.node.mempool.waiting


async def monitored(devnet: Devnet) -> list[Json]:
    """The answers to a client that monitors the mempool by snapshots."""
    answers = []

    async def ask(method: str, **params: Any) -> Any:
        answer = await devnet.ogmios.ask(method, **params)
        kind = "error" if isinstance(answer, dict) and "code" in answer else "result"
        answers.append({"jsonrpc": "2.0", "method": method, kind: answer, "id": 1})
        return answer

    tx = devnet.wallet.payment(devnet.outputs[0], HELD, 5 * ADA)
    assert (await ask("sizeOfMempool"))["code"] == 4000
    assert (await ask("acquireMempool"))["acquired"] == "mempool"
    assert await ask("evaluateTransaction", transaction={"cbor": tx.to_cbor_hex()}) == []
    acquiring = await devnet.ogmios.send("acquireMempool")  # it waits for another snapshot
    submitting = await devnet.ogmios.send("submitTransaction", transaction={"cbor": tx.to_cbor_hex()})
    assert {(await devnet.ogmios.receive())["id"] for _ in range(2)} == {acquiring, submitting}
    assert await ask("hasTransaction", id=id_of(tx)) is True
    assert (await ask("sizeOfMempool"))["transactions"] == {"count": 1}
    assert (await ask("nextTransaction", fields="all"))["transaction"]["id"] == id_of(tx)
    assert await ask("nextTransaction") == {"transaction": None}
    assert await ask("releaseMempool") == {"released": "mempool"}
    assert (await ask("nextTransaction"))["code"] == 4000
    return answers


async def test_the_mempool_is_monitored_by_snapshots(devnet: Devnet) -> None:
    assert strange(devnet.node.dialect.version, await monitored(devnet)) == {}


async def test_a_fork_returns_transactions_to_the_mempool_or_drops_them(devnet: Devnet) -> None:
    node = devnet.node
    tx = devnet.wallet.payment(devnet.outputs[0], HELD, 5 * ADA)
    pace = control.Pace()
    await devnet.submit(tx)
    async with control.listening(node, pace, "127.0.0.1", 0) as url, aiohttp.ClientSession(url) as http:

        async def post(path: str, **query: str) -> Json:
            async with http.post(path, params=query) as answer:
                return dict(await answer.json())

        assert (await post("/grow"))["mempool"] == []
        assert id_of(tx) in devnet.in_tip()
        assert (await post("/fork"))["mempool"] == [id_of(tx)]
        await post("/grow", blocks="1")
        assert id_of(tx) in devnet.in_tip()
        assert (await post("/fork", depth="2", forget="true"))["mempool"] == []
        assert (await post("/stall"))["stalled"] and pace.stalled
        assert await post("/fork", depth="0") == {"error": "depth must be between 1 and 100"}
    late = devnet.wallet.payment(devnet.outputs[0], HELD, 6 * ADA, ttl=node.blocks[-1].slot + 2)
    assert "transaction" in await devnet.submit(late)
    while node.blocks[-1].slot < late.transaction_body.ttl:
        node.grow()
    assert not node.mempool.waiting


async def test_pycardano_builds_a_payment_on_the_devnets_ogmios() -> None:
    chain = Generated(Options(seed=8, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=40), 60)
    async with NodeServer(chain, dialect=Dialect((6, 14))) as node:
        wallet, port = Wallet.of_faucet(), int(node.url.rpartition(":")[2])

        def pay() -> Any:
            context = pycardano.OgmiosChainContext("127.0.0.1", port)
            builder = pycardano.TransactionBuilder(context)
            builder.add_input_address(wallet.address)
            builder.add_output(pycardano.TransactionOutput(wallet.address, 7 * ADA))
            tx = builder.build_and_sign([wallet.key], wallet.address)
            context.submit_tx(tx)
            return tx

        tx = await asyncio.to_thread(pay)
        node.grow()
        assert id_of(tx) in {each["id"] for each in node.blocks[-1].decoded()["transactions"]}
