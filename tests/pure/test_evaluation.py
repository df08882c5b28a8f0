"""The devnet without Node.js, and the turns of its evaluations."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from devnet import evaluation, submission
from devnet.evaluation import Evaluable
from devnet.node import MAX_SCRIPT_RUNS
from tests.chain.plutus import DATUM, GOOD, Devnet, running
from tests.wallet import ADA


@pytest.fixture
async def devnet() -> AsyncIterator[Devnet]:
    async with running() as devnet:
        yield devnet


async def test_without_node_js_the_answer_says_what_is_missing(devnet: Devnet, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await devnet.lock(GOOD[2])
    tx = await devnet.spend(held, (500, 64_100), script=GOOD[2])
    monkeypatch.setattr("devnet.evaluation.shutil.which", lambda _program: None)
    reason = "Plutus scripts are evaluated by Node.js, and there is no program 'node' here"
    refused = await devnet.ask("evaluateTransaction", tx)
    assert (refused["code"], refused["data"]) == (3004, {"reason": reason})
    refused = await devnet.ask("submitTransaction", tx)
    assert (refused["code"], refused["data"]) == (3997, {"error": reason})
    payment = devnet.wallet.payment((str(held.input.transaction_id), 1), 10, 5 * ADA)
    assert await devnet.ask("evaluateTransaction", payment) == []


async def test_the_devnet_bounds_the_processes_of_node_js(devnet: Devnet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 evaluations at once, as many run at a time as MAX_SCRIPT_RUNS."""
    tx = await devnet.spend(await devnet.lock(GOOD[1], datum=DATUM), units=(1, 1), script=GOOD[1])
    running, most = 0, 0

    async def run(case: Evaluable) -> dict[Any, evaluation.Units]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return dict.fromkeys(case.redeemers, evaluation.Units(1, 1))

    monkeypatch.setattr(evaluation, "evaluate", run)
    params = msgspec.Raw(msgspec.json.encode({"transaction": {"cbor": tx.to_cbor_hex()}}))
    answers = (submission.answer(devnet.node, "evaluateTransaction", params) for _ in range(12))
    assert [len(found) for found in await asyncio.gather(*answers)] == [1] * 12
    assert most == MAX_SCRIPT_RUNS
