"""The Python client's chain context for pycardano: its payments are confirmed, and it reads what the ledger has."""

import asyncio
import json
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import asyncpg
import cbor2
import pytest
from ledgerline_client import Ledgerline, LedgerlineError, chain_context
from ledgerline_client.chain_context import LedgerlineChainContext
from pycardano import CostModels, ExecutionUnits, Network, TransactionFailedException, UTxO, script_hash

from devnet import addresses
from devnet.generator import Generated
from devnet.parameters import protocol_parameters
from shared.ledger import NATIVE, script_hash_of
from tests.api.builds import delegation, mint, payment
from tests.api.sandboxes import VERSION, Sandbox
from tests.chain.model import Ledger
from tests.chain.model_owners import Owners
from tests.chain.written import Json, pays, person, tx
from tests.wallet import ADA, Wallet

CARRIER = person("carrier")
DATUM = cbor2.dumps(cbor2.CBORTag(121, [2**70, {}]))
PLUTUS = "4e4d01000033222220051200120011"
DEEP = (bytes.fromhex("820181") * 900 + cbor2.dumps([0, bytes(28)])).hex()
"""A native script of 900 levels; pycardano reads some two hundred."""
WORDY = "821800581c" + "00" * 28
"""A native script with a zero of two bytes, which pycardano would write in one."""


@pytest.fixture
def context(sandbox: Sandbox, submitter: str) -> LedgerlineChainContext:
    return LedgerlineChainContext(Ledgerline(f"http://127.0.0.1:{sandbox.api.port}", api_key=submitter))


async def test_a_payment_a_mint_and_a_delegation_are_confirmed(
    sandbox: Sandbox, context: LedgerlineChainContext
) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(sandbox.node.chain, Generated)
    pool = addresses.raw(next(iter(sandbox.node.chain.ledger.pools)))
    for build in (payment, mint, delegation):
        tx = await asyncio.to_thread(build, context, wallet, pool)
        assert await asyncio.to_thread(context.evaluate_tx, tx) == {}
        tx_hash = await asyncio.to_thread(context.submit_tx, tx)
        waiting = asyncio.create_task(asyncio.to_thread(context.wait_for, tx_hash))
        await sandbox.grow()
        found = await waiting
        assert found["tx_hash"] == tx_hash == str(tx.id)
        assert found["block_no"] == sandbox.node.blocks[-1].height
        held = [each.input for each in await asyncio.to_thread(context.utxos, wallet.address)]
        assert {each.index for each in held if str(each.transaction_id) == tx_hash} == {
            index for index, each in enumerate(tx.transaction_body.outputs) if each.address == wallet.address
        }
    assert {str(each) for each in tx.transaction_body.inputs} & {str(each) for each in held} == set()
    with pytest.raises(TransactionFailedException, match="spent already"):
        await asyncio.to_thread(context.submit_tx, spends_again(wallet, tx))


def spends_again(wallet: Wallet, tx: Any) -> Any:
    spent = tx.transaction_body.inputs[0]
    return wallet.payment((str(spent.transaction_id), spent.index), 100 * ADA, 5 * ADA)


async def test_a_payment_is_confirmed_by_later_blocks_also_after_a_fork(
    sandbox: Sandbox, context: LedgerlineChainContext
) -> None:
    tx = await asyncio.to_thread(payment, context, Wallet.of_faucet(), b"")
    tx_hash = await asyncio.to_thread(context.submit_tx, tx)
    with pytest.raises(TimeoutError, match="not confirmed"):
        await asyncio.to_thread(context.wait_for, tx_hash, within_s=0)
    await sandbox.grow()
    with pytest.raises(TimeoutError, match="not confirmed"):
        await asyncio.to_thread(context.wait_for, tx_hash, confirmations=1, within_s=0)
    waiting = asyncio.create_task(asyncio.to_thread(context.wait_for, tx_hash, confirmations=1))
    await sandbox.fork()
    await sandbox.grow()
    height = sandbox.node.blocks[-1].height
    await sandbox.grow()
    assert (await waiting)["block_no"] == height


async def test_the_unspent_outputs_of_every_address_are_those_of_the_model(
    sandbox: Sandbox, context: LedgerlineChainContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_context, "PAGE", 7)
    blocks = [block.decoded() for block in sandbox.node.blocks]
    carrying = tx("carrying", *(pays(CARRIER, ("00", 2**63), **each) for each in carried()))
    await sandbox.written.append(blocks[-1]["slot"] + 1, carrying)
    blocks.append({"slot": blocks[-1]["slot"] + 1, "era": "conway", "transactions": [carrying]})
    ledger = Ledger("preview")
    for block in blocks:
        ledger.forward(block)
    owners = Owners(ledger)
    everywhere = sorted({address for address in owners.outputs if not address.startswith(("stake", "addr_vkh"))})
    read = {address: await asyncio.to_thread(context.utxos, address) for address in everywhere}
    unreadable = {script_hash_of(4, bytes.fromhex(PLUTUS)).hex()}
    unreadable |= {script_hash_of(NATIVE, bytes.fromhex(body)).hex() for body in (DEEP, WORDY)}
    for address, utxos in read.items():
        expected = [row for row in owners.unspent(address) if row["reference_script_hash"] not in unreadable]
        assert [shown(each) for each in utxos] == [without_time(row) for row in expected], address
    assert len(read[CARRIER]) == len(carried()) - 3
    hashed = next(each.output for each in read[CARRIER] if each.output.datum_hash)
    assert (await asyncio.to_thread(context.datum, hashed.datum_hash)).cbor == DATUM
    assert max(len(utxos) for utxos in read.values()) > chain_context.PAGE
    assert await asyncio.to_thread(context.utxos, person("nobody")) == []


def carried() -> list[Json]:
    """The contents of outputs: every kind of datum and of script."""
    native, deep, wordy = (
        {"language": "native", "json": {"clause": "signature", "from": "00" * 28}, "cbor": cbor}
        for cbor in ("8200581c" + "00" * 28, DEEP, WORDY)
    )
    plutus = [{"language": f"plutus:v{version}", "cbor": PLUTUS} for version in (1, 2, 3, 4)]
    return [
        {"datum": DATUM.hex()},
        {"datumHash": blake2b(DATUM, digest_size=32).hexdigest()},
        *({"script": script} for script in (native, deep, wordy, *plutus)),
        {"datum": DATUM.hex(), "script": native},
    ]


def shown(utxo: UTxO) -> Json:
    """An output as the API shows it."""
    output = utxo.output
    assets = {
        f"{policy_id.payload.hex()}.{name.payload.hex()}": quantity
        for policy_id, names in output.amount.multi_asset.items()
        for name, quantity in names.items()
    }
    inline = None if output.datum is None else output.datum.cbor
    hashed = output.datum_hash and str(output.datum_hash)
    assert inline is None or hashed is None, "the ledger knows one or the other"
    return {
        "tx_hash": str(utxo.input.transaction_id),
        "output_index": utxo.input.index,
        "address": str(output.address),
        "value": {"lovelace": output.amount.coin} | ({"assets": assets} if assets else {}),
        "data_hash": hashed if inline is None else blake2b(inline, digest_size=32).hexdigest(),
        "inline_datum": inline and inline.hex(),
        "reference_script_hash": output.script and str(script_hash(output.script)),
    }


def without_time(row: Json) -> Json:
    return {name: value for name, value in row.items() if name not in ("slot_no", "block_time")}


async def test_outputs_are_read_again_if_a_block_arrives_between_two_pages(
    sandbox: Sandbox, context: LedgerlineChainContext, submitter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_context, "PAGE", 15)
    wallet, loop = Wallet.of_faucet(), asyncio.get_running_loop()
    await asyncio.to_thread(context.submit_tx, await asyncio.to_thread(payment, context, wallet, b""))

    class Interrupted(Ledgerline):
        asked = 0

        def list_address_utxos(self, *args: Any, **options: Any) -> Any:
            self.asked += 1
            if self.asked == 2:
                asyncio.run_coroutine_threadsafe(sandbox.grow(), loop).result(60)
            return super().list_address_utxos(*args, **options)

    service = Interrupted(f"http://127.0.0.1:{sandbox.api.port}", api_key=submitter)
    read = await asyncio.to_thread(LedgerlineChainContext(service).utxos, wallet.address)
    assert service.asked == 4
    assert read == await asyncio.to_thread(context.utxos, wallet.address)


async def test_parameters_are_exact_and_cost_models_in_the_order_of_the_ledger(
    sandbox: Sandbox, context: LedgerlineChainContext, db: asyncpg.Connection
) -> None:
    models = {f"plutus:v{1 + place}": [place * 1_000 - n for n in range(size)] for place, size in enumerate(SIZES)}
    told = protocol_parameters("conway", VERSION) | {"plutusCostModels": models}
    await db.execute("UPDATE chain_preview.epoch_parameters SET parameters = $1::text::json", json.dumps(told))
    await db.execute("UPDATE chain_preview.ledger_state SET slot_no = slot_no")  # as a reading does
    of = await asyncio.to_thread(lambda: context.protocol_param)
    assert (of.min_fee_coefficient, of.min_fee_constant, of.max_tx_size, of.max_val_size) == (44, 155_381, 16_384, 5000)
    assert (of.price_mem, of.price_step) == (Fraction(577, 10_000), Fraction(721, 10_000_000))
    assert (of.collateral_percent, of.max_collateral_inputs, of.coins_per_utxo_byte) == (150, 3, 4_310)
    assert (of.max_tx_ex_mem, of.max_tx_ex_steps) == (14_000_000, 10_000_000_000)
    assert (of.key_deposit, of.pool_deposit) == (2 * ADA, 500 * ADA)
    assert of.min_fee_reference_scripts == {"base": 15, "range": 25_600, "multiplier": Fraction(6, 5)}
    assert of.maximum_reference_scripts_size == {"bytes": 204_800}
    written = CostModels({n: of.cost_models[f"PlutusV{1 + n}"] for n in range(3)}).to_shallow_primitive()
    in_bytes = b"\x9f" + b"".join(cbor2.dumps(cost) for cost in models["plutus:v1"]) + b"\xff"
    assert written == {b"\x00": in_bytes, 1: models["plutus:v2"], 2: models["plutus:v3"]}

    genesis = await asyncio.to_thread(lambda: context.genesis_param)
    assert genesis.active_slots_coefficient == Fraction(1, 20)
    assert (genesis.network_magic, genesis.epoch_length, genesis.slot_length) == (2, 86_400, 1)
    assert (genesis.system_start, genesis.max_lovelace_supply) == (1_666_656_000, 45_000_000_000 * ADA)
    now = await asyncio.to_thread(lambda: (context.network, context.epoch, context.last_block_slot))
    tip = sandbox.node.blocks[-1].slot
    assert now == (Network.TESTNET, tip // 86_400, tip)


SIZES = (166, 175, 297)
"""The number of parameters in the cost models of mainnet."""


async def test_budgets_have_the_names_of_pycardano(
    context: LedgerlineChainContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    purposes = ("spend", "mint", "publish", "withdraw", "vote", "propose")
    budgets = [{"purpose": each, "index": place, "memory": 7, "cpu": 2**60} for place, each in enumerate(purposes)]
    monkeypatch.setattr(Ledgerline, "evaluate_transaction", lambda _, cbor: {"data": {"budgets": budgets}})  # noqa: ARG005
    units = ExecutionUnits(7, 2**60)
    assert context.evaluate_tx_cbor(b"\x00") == {
        f"{name}:{place}": units
        for place, name in enumerate(("spend", "mint", "certificate", "withdrawal", "voting", "proposing"))
    }


async def test_a_key_without_submit_is_refused_with_its_code(
    sandbox: Sandbox, context: LedgerlineChainContext, key: str
) -> None:
    tx = await asyncio.to_thread(payment, context, Wallet.of_faucet(), b"")
    reader = LedgerlineChainContext(Ledgerline(f"http://127.0.0.1:{sandbox.api.port}", api_key=key))
    with pytest.raises(LedgerlineError, match="Key does not cover submit"):
        await asyncio.to_thread(reader.submit_tx, tx)
