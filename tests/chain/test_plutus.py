"""The devnet runs Plutus scripts as a node does: it evaluates them, and refuses a transaction that misstates them."""

import shutil
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pycardano
import pytest
from pycardano import (
    ExecutionUnits,
    Redeemer,
    TransactionOutput,
    Value,
)

from devnet import addresses, evaluation, outputs, parameters, submitted
from devnet.case import references
from devnet.evaluation import Evaluable
from devnet.networks import MAINNET
from devnet.submitted import Submitted
from devnet.votes import Reference
from tests.chain.harness import blocks_of, recorded
from tests.chain.plutus import BAD, DATUM, GOOD, Devnet, Json, running
from tests.wallet import ADA, id_of

# Each language's costs of two constants and three functions, or one, by the cost models: 100 and 16000 a step.
UNITS = {1: (1_700, 256_100), 2: (1_700, 256_100), 3: (500, 64_100)}

needs_node_js = pytest.mark.skipif(
    shutil.which("npm") is None, reason="needs Node.js and npm, which evaluate Plutus scripts"
)


@pytest.fixture
async def devnet() -> AsyncIterator[Devnet]:
    async with running() as devnet:
        yield devnet


@needs_node_js
@pytest.mark.parametrize("version", [1, 2, 3])
async def test_pycardano_spends_from_a_plutus_script(devnet: Devnet, version: int) -> None:
    """It asks the devnet for the units, and hashes the cost models that the devnet tells."""
    script = GOOD[version - 1]
    stored = {"datum_hash": pycardano.datum_hash(DATUM)} if version == 1 else {"datum": DATUM}
    held = await devnet.lock(script, **stored)
    told: dict[str, Any] = {"datum": DATUM} if version == 1 else {}
    tx = await devnet.spend(held, script=script, **told)
    memory, cpu = UNITS[version]
    index = sorted((bytes(each.transaction_id), each.index) for each in tx.transaction_body.inputs).index(
        (bytes(held.input.transaction_id), 0)
    )
    validator_ = {"purpose": "spend", "index": index}
    assert await devnet.ask("evaluateTransaction", tx) == [
        {"validator": validator_, "budget": {"memory": memory, "cpu": cpu}}
    ]
    assert await devnet.ask("submitTransaction", tx) == {"transaction": {"id": id_of(tx)}}
    devnet.node.grow()
    shown = devnet.in_tip()[id_of(tx)]
    assert [(each["validator"], each["redeemer"]) for each in shown["redeemers"]] == [(validator_, "07")]
    assert shown.get("datums", {}) == ({addresses.blake2b_256(b"\x18\x2a"): "182a"} if version == 1 else {})
    assert [each["language"] for each in shown["scripts"].values()] == [f"plutus:v{version}"]


@needs_node_js
async def test_a_script_of_another_output_spends_and_mints(devnet: Devnet) -> None:
    script, policy = GOOD[2], GOOD[1]
    stored = await devnet.pay(TransactionOutput(devnet.wallet.address, 20 * ADA, script=script))
    held = await devnet.lock(script)
    minted = pycardano.MultiAsset.from_primitive({bytes(pycardano.plutus_script_hash(policy)): {b"T": 5}})

    def build() -> Any:
        builder = devnet.builder()
        builder.add_script_input(held, script=stored, redeemer=Redeemer(1))
        builder.add_minting_script(policy, redeemer=Redeemer(2))
        builder.mint = minted
        builder.add_output(TransactionOutput(devnet.wallet.address, Value(2 * ADA, minted)))
        return builder.build_and_sign([devnet.wallet.key], devnet.wallet.address)

    tx = await devnet.build(build)
    assert {each["validator"]["purpose"] for each in await devnet.ask("evaluateTransaction", tx)} == {"spend", "mint"}
    assert "transaction" in await devnet.ask("submitTransaction", tx)


@needs_node_js
@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_failing_script_is_named_and_costs_the_collateral(devnet: Devnet, version: int) -> None:
    script = BAD[version - 1]
    stored = {"datum_hash": pycardano.datum_hash(DATUM)} if version == 1 else {"datum": DATUM}
    held = await devnet.lock(script, **stored)
    told: dict[str, Any] = {"datum": DATUM} if version == 1 else {}
    tx = await devnet.spend(held, (100_000, 10**8), script=script, **told)
    refused = await devnet.ask("evaluateTransaction", tx)
    assert refused["code"] == 3010
    assert [(each["validator"]["purpose"], each["error"]["code"]) for each in refused["data"]] == [("spend", 3012)]
    refused = await devnet.ask("submitTransaction", tx)
    assert (refused["code"], refused["data"]["declaredSpending"]) == (3136, "inputs")
    tx.valid = False
    assert "transaction" in await devnet.ask("submitTransaction", tx)
    devnet.node.grow()
    assert devnet.in_tip()[id_of(tx)]["spends"] == "collaterals"
    reference = (str(held.input.transaction_id), held.input.index)
    ledger = devnet.node.ledger_after(len(devnet.node.blocks) - 1)
    assert reference in ledger.unspent, "its inputs are not spent"
    assert all((str(each.transaction_id), each.index) not in ledger.unspent for each in tx.transaction_body.collateral)


@needs_node_js
async def test_units_below_those_used_and_a_false_statement_are_refused(devnet: Devnet) -> None:
    held = await devnet.lock(GOOD[2])
    memory, cpu = UNITS[3]
    for units in ((memory - 1, cpu), (memory, cpu - 1)):
        refused = await devnet.ask("submitTransaction", await devnet.spend(held, units, script=GOOD[2]))
        assert (refused["code"], refused["data"]["declaredSpending"]) == (3136, "inputs")
        assert f"uses {memory} of memory and {cpu} of cpu" in refused["data"]["mismatchReason"]
    tx = await devnet.spend(held, (memory, cpu), script=GOOD[2])
    tx.valid = False
    assert await devnet.ask("submitTransaction", tx) == {
        "code": 3136,
        "message": "The transaction states another outcome of its Plutus scripts than they have.",
        "data": {"declaredSpending": "collaterals", "mismatchReason": "all scripts succeed"},
    }
    tx.valid = True
    assert "transaction" in await devnet.ask("submitTransaction", tx)


@needs_node_js
async def test_the_failing_one_of_several_scripts_is_named(devnet: Devnet) -> None:
    good, bad = await devnet.lock(GOOD[2]), BAD[2]
    minted = pycardano.MultiAsset.from_primitive({bytes(pycardano.plutus_script_hash(bad)): {b"T": 5}})

    def build() -> Any:
        builder = devnet.builder()
        builder.add_script_input(good, script=GOOD[2], redeemer=Redeemer(1, ExecutionUnits(10**5, 10**8)))
        builder.add_minting_script(bad, redeemer=Redeemer(2, ExecutionUnits(10**5, 10**8)))
        builder.mint = minted
        builder.add_output(TransactionOutput(devnet.wallet.address, Value(2 * ADA, minted)))
        return builder.build_and_sign([devnet.wallet.key], devnet.wallet.address)

    refused = await devnet.ask("evaluateTransaction", await devnet.build(build))
    assert [each["validator"] for each in refused["data"]] == [{"purpose": "mint", "index": 0}]


@needs_node_js
async def test_outputs_that_are_not_on_the_chain_can_be_added(devnet: Devnet) -> None:
    held = await devnet.lock(GOOD[2])
    tx = await devnet.spend(held, script=GOOD[2])
    added = {
        "transaction": {"id": "cd" * 32},
        "index": 3,
        "address": str(held.output.address),
        "value": {"ada": {"lovelace": 5 * ADA}},
    }
    elsewhere = pycardano.TransactionInput.from_primitive(["cd" * 32, 3])
    tx.transaction_body.reference_inputs = [elsewhere]
    assert (await devnet.ask("evaluateTransaction", tx))["code"] == 3004
    assert len(await devnet.ask("evaluateTransaction", tx, additionalUtxo=[added])) == 1
    known = added | {"transaction": {"id": str(held.input.transaction_id)}, "index": 0}
    assert (await devnet.ask("evaluateTransaction", tx, additionalUtxo=[added, known]))["code"] == 3002
    malformed = {"transaction": {"cbor": tx.to_cbor_hex()}, "additionalUtxo": [added | {"address": 5}]}
    assert (await devnet.ogmios.ask("evaluateTransaction", **malformed))["code"] == -32602


@needs_node_js
async def test_recorded_transactions_use_no_more_units_than_they_have_paid_for() -> None:
    """Those of mainnet whose inputs the recording has, with the cost models of their time."""
    evaluated = 0
    for tx, used in islice(resolved("mainnet-conway"), 3):
        found = await evaluation.evaluate(
            Evaluable(
                transaction=tx.cbor,
                redeemers=tuple(redeemer.pointer for redeemer in tx.redeemers),
                outputs=tuple((outputs.reference(source), outputs.encoded(output)) for source, output in used.items()),
                cost_models=tuple(parameters.cost_models(9).values()),
                network=MAINNET,
            )
        )
        assert found.keys() == {redeemer.pointer for redeemer in tx.redeemers}
        for redeemer in tx.redeemers:
            units = found[redeemer.pointer]
            assert units.memory == redeemer.memory
            assert redeemer.cpu * 0.7 < units.cpu <= redeemer.cpu
        evaluated += 1
    assert evaluated == 3


def resolved(name: str) -> Iterator[tuple[Submitted, dict[Reference, Json]]]:
    """The recorded transactions with redeemers whose outputs are known, and those outputs."""
    known: dict[Reference, Json] = {}
    for block in blocks_of(recorded(f"{name}.jsonl.xz")):
        for tx in block.get("transactions", ()):
            used = references([*tx["inputs"], *tx.get("references", ())])
            if "redeemers" in tx and all(reference in known for reference in used):
                read = submitted.read(bytes.fromhex(tx["cbor"]), (7, 0))
                yield read, {reference: known[reference] for reference in used}
            known |= {(tx["id"], index): output for index, output in enumerate(tx["outputs"])}


MACHINES = """
const { getHeapStatistics } = require("node:v8");
const heap = getHeapStatistics().heap_size_limit / 2 ** 20;
if (process.argv[2] === "scalus") {
  %s
} else {
  process.stdout.write(JSON.stringify({ error: `Spend[0] over budget, with ${heap} MiB` }));
}
"""


@needs_node_js
@pytest.mark.parametrize("end", ["process.exit(3);", "setInterval(() => {}, 1000);"])
async def test_aikens_machine_answers_if_scalus_dies(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a script that never ends, whether time or memory runs out first. Either machine's heap has a bound."""
    (tmp_path / "evaluate.cjs").write_text(MACHINES % end)
    monkeypatch.setattr(evaluation, "_FOLDER", tmp_path)
    monkeypatch.setattr(evaluation, "_install", lambda: None)
    case = Evaluable(b"", (("spend", 0), ("mint", 0)), (), ([], [], []), MAINNET)
    with pytest.raises(evaluation.Failed) as failed:
        await evaluation.evaluate(case)
    assert failed.value.pointer == ("spend", 0)
    said, heap, _ = failed.value.error.rsplit(" ", 2)
    assert said == "over budget, with"
    assert float(heap) < 1_024
