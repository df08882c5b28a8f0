"""Evaluates the Plutus scripts of a transaction, in a process of Node.js: docs/decisions/0059.

npm's `scalus` evaluates. What it refuses is evaluated by aiken's machine, npm's `@lucid-evolution/uplc`, whose errors
name the redeemer, and which stops at the largest budget of a transaction. Neither is part of this project: both are
installed with the first evaluation, below `devnet/evaluator`.
"""

import asyncio
import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

import cbor2
import msgspec

from devnet import cbor, parameters
from devnet.networks import Network
from devnet.witnesses import PURPOSES, Pointer

Json = dict[str, Any]

_FOLDER = Path(__file__).parent / "evaluator"
_INSTALL_WITHIN_S = 120
_SCALUS_WITHIN_S = 5.0
_AIKEN_WITHIN_S = 20.0
_MAX_HEAP_MIB = 512  # of a process; a unit of memory is 8 bytes, and a transaction may have some ten million
_FAILURE = re.compile(r"(Spend|Mint|Cert|Withdraw|Reward|Vote|Propose)\w*\[(\d+)\]\s*(.*)", re.DOTALL)
_PURPOSES = {
    "Spend": "spend", "Mint": "mint", "Cert": "publish", "Withdraw": "withdraw", "Reward": "withdraw",
    "Vote": "vote", "Propose": "propose",
}  # fmt: skip


class Units(msgspec.Struct, frozen=True):
    """Execution units."""

    memory: int
    cpu: int


class Missing(Exception):
    """Something that the evaluation needs is not on this machine; the message says what."""


class Unclear(Exception):
    """The machines can't evaluate the transaction; the message is theirs."""


class Failed(Exception):
    """A script has failed: the first that the machines met."""

    def __init__(self, pointer: Pointer, error: str, traces: list[str]) -> None:
        super().__init__(error)
        self.pointer, self.error, self.traces = pointer, error, traces


class Evaluable(msgspec.Struct, frozen=True):
    """What the machines need: a transaction, the outputs that it spends or refers to, and the protocol's parameters.

    `outputs` are pairs of a reference and an output, both in CBOR; `cost_models` those of PlutusV1, V2 and V3.
    """

    transaction: bytes
    redeemers: tuple[Pointer, ...]
    outputs: tuple[tuple[bytes, bytes], ...]
    cost_models: tuple[list[int], ...]
    network: Network


class _Scalus(msgspec.Struct):
    budgets: list[tuple[str, int, int, int]] | None = None
    error: str = ""
    traces: list[str] | None = None


class _Aiken(msgspec.Struct):
    redeemers: list[str] | None = None
    error: str = ""


async def evaluate(case: Evaluable) -> dict[Pointer, Units]:
    """The units that each redeemer's script uses. Raises Failed, Unclear and Missing."""
    await asyncio.to_thread(_install)
    asked = msgspec.json.encode(_question(case))
    try:
        outcome = msgspec.json.decode(await _run("scalus", asked, _SCALUS_WITHIN_S), type=_Scalus)
    except TimeoutError:
        outcome = _Scalus(error=f"it takes longer than {_SCALUS_WITHIN_S:.0f} s")
    except Unclear as cause:
        outcome = _Scalus(error=str(cause))
    if outcome.budgets is not None:
        return {(purpose, index): Units(memory, cpu) for purpose, index, memory, cpu in outcome.budgets}
    if outcome.traces is not None and len(case.redeemers) == 1:
        raise Failed(case.redeemers[0], outcome.error, outcome.traces)
    return await _by_aiken(asked, outcome)


async def _by_aiken(asked: bytes, refused: _Scalus) -> dict[Pointer, Units]:
    """The same, after the other machine has refused or failed. Raises Failed and Unclear."""
    try:
        outcome = msgspec.json.decode(await _run("aiken", asked, _AIKEN_WITHIN_S), type=_Aiken)
    except TimeoutError:
        raise Unclear(f"{refused.error}; it takes longer than {_AIKEN_WITHIN_S:.0f} s") from None
    if outcome.redeemers is not None and refused.traces is None:
        return dict(map(_units, outcome.redeemers))
    if failure := _FAILURE.search(outcome.error):
        purpose, index, error = failure.groups()
        raise Failed((_PURPOSES[purpose], int(index)), error.strip() or outcome.error, refused.traces or [])
    raise Unclear(refused.error or outcome.error)


def _units(redeemer: str) -> tuple[Pointer, Units]:
    purpose, index, _, units = cbor.read(bytes.fromhex(redeemer)).items()
    memory, cpu = (count.number() for count in units.items())
    return (PURPOSES[purpose.number()], index.number()), Units(memory, cpu)


def _question(case: Evaluable) -> Json:
    """What `evaluate.cjs` reads. Bytes are in hex; the time of slot 0 of the eras with seconds is in milliseconds."""
    network, first = case.network, case.network.byron_slots
    unspent = cbor.map_of(case.outputs)
    return {
        "transaction": case.transaction.hex(),
        "unspent": unspent.hex(),
        "inputs": [reference.hex() for reference, _ in case.outputs],
        "outputs": [output.hex() for _, output in case.outputs],
        "costModels": case.cost_models,
        "costModelsCbor": cbor2.dumps(dict(enumerate(case.cost_models))).hex(),
        "most": parameters.MAX_TRANSACTION_UNITS,
        "slots": {
            "zeroTime": int(network.time_of(first).timestamp()) * 1_000,
            "zeroSlot": first,
            "slotLength": 1_000,
        },
    }


async def _run(machine: Literal["scalus", "aiken"], asked: bytes, within_s: float) -> bytes:
    """The answer of a machine. Raises TimeoutError, and Unclear if its process fails."""
    process = await asyncio.create_subprocess_exec(
        "node",
        f"--max-old-space-size={_MAX_HEAP_MIB}",
        "evaluate.cjs",
        machine,
        cwd=_FOLDER,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        answer, complaint = await asyncio.wait_for(process.communicate(asked), within_s)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = complaint.decode(errors="replace").strip().splitlines()
        raise Unclear(f"{machine} ended with status {process.returncode}: {lines[-1] if lines else 'no message'}")
    return answer


def _install() -> None:
    """Install the locked packages, once. Raises Missing."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Missing(f"Plutus scripts are evaluated by Node.js, and there is no program {program!r} here")
    locked = hashlib.sha256((_FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = _FOLDER / "node_modules" / ".complete"
    with (_FOLDER / "package.json").open() as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)  # processes share the folder
        if stamp.exists() and stamp.read_text() == locked:
            return
        command = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        try:
            done = subprocess.run(
                command, cwd=_FOLDER, capture_output=True, text=True, timeout=_INSTALL_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise Missing(f"npm has not installed the evaluator within {_INSTALL_WITHIN_S} s") from None
        if done.returncode != 0:
            raise Missing(f"npm can't install the evaluator: {done.stderr.strip()[-200:]}")
        stamp.write_text(locked)
