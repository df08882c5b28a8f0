"""Unmodified third-party clients of Blockfrost: with another URL they build, evaluate, sign and submit."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import cbor2
import pycardano
import pytest
from blockfrost import ApiError
from pycardano import BlockFrostChainContext, HDWallet, TransactionBuilder, TransactionOutput

from devnet import addresses
from devnet.generator import Generated
from tests import programs
from tests.api.builds import delegation, mint, payment
from tests.api.node_programs import runs
from tests.api.sandboxes import Sandbox
from tests.wallet import ADA, Wallet

PROGRAMS = Path(__file__).parents[1] / "blockfrost_clients"
NO_EXTRAS = ("--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional")
BLOCK_EVERY_S = 0.3
MNEMONIC = "test walk nut penalty hip pave soap entry language right filter choice"
BUSY_OUTPUTS = 105  # more than a page
DATUM = 42


async def test_pycardano_pays_mints_and_delegates(sandbox: Sandbox, submitter: str) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(sandbox.node.chain, Generated)
    pool = addresses.raw(next(iter(sandbox.node.chain.ledger.pools)))
    context = await asyncio.to_thread(BlockFrostChainContext, submitter, base_url=sandbox.blockfrost)
    facts = await prepared(sandbox, submitter)
    assert await asyncio.to_thread(context.utxos, facts["UNUSED"]) == []
    assert len({each.input for each in await asyncio.to_thread(context.utxos, facts["BUSY"])}) == BUSY_OUTPUTS
    carrying = [each.output for each in await asyncio.to_thread(context.utxos, facts["DATUMS"])]
    assert [each.datum.cbor.hex() for each in carrying if each.datum] == [facts["DATUM"]]
    assert [str(each.datum_hash) for each in carrying if each.datum_hash] == [facts["DATUM_HASH"]]

    async def cbor_of(tx_hash: str) -> Any:
        """NOTE: blockfrost-python has no method for it."""
        return (await sandbox.api.get(f"/blockfrost/api/v0/txs/{tx_hash}/cbor", submitter)).body

    for build in (payment, mint, delegation):
        tx = await asyncio.to_thread(build, context, wallet, pool)
        assert await asyncio.to_thread(context.evaluate_tx, tx) == {}
        tx_hash = await asyncio.to_thread(context.submit_tx_cbor, tx.to_cbor())
        assert tx_hash == str(tx.id)
        with pytest.raises(ApiError) as missing:
            await asyncio.to_thread(context.api.transaction, tx_hash)
        assert missing.value.status_code == 404
        assert (await cbor_of(tx_hash))["status_code"] == 404
        await sandbox.grow()
        assert await cbor_of(tx_hash) == {"cbor": tx.to_cbor_hex()}
        found = await asyncio.to_thread(context.api.transaction, tx_hash)
        assert found.fees == str(tx.transaction_body.fee)
        assert int(found.deposit) == (2 * ADA if build is delegation else 0)
        made = (await asyncio.to_thread(context.api.transaction_utxos, tx_hash)).outputs
        assert [int(each.amount[0].quantity) for each in made] == [
            each.amount.coin for each in tx.transaction_body.outputs
        ]
        held = {(str(each.input.transaction_id), each.input.index) for each in await unspent(context, wallet)}
        assert {(tx_hash, each.output_index) for each in made if each.address == str(wallet.address)} <= held


async def test_pycardano_gets_the_refusal_of_the_node(sandbox: Sandbox, submitter: str) -> None:
    wallet = Wallet.of_faucet()
    context = await asyncio.to_thread(BlockFrostChainContext, submitter, base_url=sandbox.blockfrost)
    held = (await unspent(context, wallet))[0]
    source = str(held.input.transaction_id), held.input.index
    greedy = wallet.payment(source, held.output.amount.coin + 5 * ADA, 5 * ADA)
    with pytest.raises(pycardano.TransactionFailedException, match=r"Error code: 400.*value"):
        await asyncio.to_thread(context.submit_tx, greedy)


async def unspent(context: Any, wallet: Wallet) -> list[Any]:
    return list(await asyncio.to_thread(context.utxos, wallet.address))


@pytest.fixture(scope="module")
def packages() -> None:
    """Installs the locked npm packages beside the programs, once in a clean clone."""
    programs.found("npm")
    # NOTE: not `npm ci`, which requires a lock entry for each optional package, though none is installed.
    command = ("npm", "install", "--no-save", "--loglevel=error", *NO_EXTRAS)
    once(PROGRAMS / "package-lock.json", PROGRAMS / "node_modules", command)


@pytest.fixture(scope="module")
def pccontext_python() -> Path:
    """An interpreter with pccontext, which needs other versions than this one has; made once in a clean clone."""
    folder, lock = PROGRAMS / ".venv", PROGRAMS / "pccontext.txt"
    python = folder / "bin" / "python"
    once(lock, folder, programs.new_environment(folder))
    once(lock, folder / "lib", (*programs.pip_install(python), "--no-deps", "-r", str(lock)))
    return python


def once(lock: Path, installed: Path, command: tuple[str, ...]) -> None:
    """Runs a command unless it has completed with the same lock file. Skips the test if it fails."""
    version = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = installed / ".complete"
    if not stamp.exists() or stamp.read_text() != version:
        programs.install(*command, folder=PROGRAMS)
        stamp.write_text(version)


NODE_PROGRAMS = (
    "blockfrost-js",
    "mesh",
    "lucid",
    "cardano-sdk",
    "blaze",
    "evolution",
    "helios",
    "lucid-cardano",
)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("program", NODE_PROGRAMS)
async def test_a_node_js_program_pays_mints_and_delegates(sandbox: Sandbox, submitter: str, program: str) -> None:
    facts = await prepared(sandbox, submitter)
    if program == "mesh":
        facts["URL"] = facts["URL"].replace("://", f"://{submitter}@")
    async with growing(sandbox):
        await runs(PROGRAMS / f"{program}.mjs", **facts)


async def test_pccontext_pays_mints_and_delegates(sandbox: Sandbox, submitter: str, pccontext_python: Path) -> None:
    facts = await prepared(sandbox, submitter)
    facts["URL"] = sandbox.blockfrost
    async with growing(sandbox):
        await runs(PROGRAMS / "with_pccontext.py", interpreter=str(pccontext_python), **facts)


async def prepared(sandbox: Sandbox, key: str) -> dict[str, str]:
    """What a program is told about a devnet on which its wallet has 100 ada."""
    assert isinstance(sandbox.node.chain, Generated)
    context = await asyncio.to_thread(BlockFrostChainContext, key, base_url=sandbox.blockfrost)
    busy, datums = Wallet.numbered(8), Wallet.numbered(9)
    await asyncio.to_thread(fund, context, Wallet.of_faucet(), busy, datums)
    await sandbox.grow()
    return {
        "URL": f"{sandbox.blockfrost}/v0",
        "PROJECT_ID": key,
        "MNEMONIC": MNEMONIC,
        "RECEIVER": str(Wallet.numbered(7).address),
        "POOL": next(iter(sandbox.node.chain.ledger.pools)),
        "UNUSED": str(Wallet.numbered(6).address),
        "BUSY": str(busy.address),
        "BUSY_OUTPUTS": str(BUSY_OUTPUTS),
        "DATUMS": str(datums.address),
        "DATUM": cbor2.dumps(DATUM).hex(),
        "DATUM_HASH": str(pycardano.datum_hash(DATUM)),
    }


def fund(context: Any, wallet: Wallet, busy: Wallet, datums: Wallet) -> None:
    """Pay 100 ada to the first address of the mnemonic (CIP-1852), 1 ada often to another, and 2 ada with a datum."""
    keys = [HDWallet.from_mnemonic(MNEMONIC).derive_from_path(f"m/1852'/1815'/0'/{role}/0") for role in (0, 2)]
    hashes = [pycardano.VerificationKeyHash.from_primitive(addresses.blake2b_224(key.public_key)) for key in keys]
    builder = TransactionBuilder(context)
    builder.add_input_address(wallet.address)
    builder.add_output(TransactionOutput(pycardano.Address(*hashes, network=pycardano.Network.TESTNET), 100 * ADA))
    for _ in range(BUSY_OUTPUTS):
        builder.add_output(TransactionOutput(busy.address, ADA))
    builder.add_output(TransactionOutput(datums.address, 2 * ADA, datum=DATUM))
    hashed = TransactionOutput(datums.address, 2 * ADA, datum_hash=pycardano.datum_hash(DATUM))
    builder.add_output(hashed, datum=DATUM, add_datum_to_witness=True)
    context.submit_tx(builder.build_and_sign([wallet.key], change_address=wallet.address))


@asynccontextmanager
async def growing(sandbox: Sandbox) -> AsyncIterator[None]:
    """A block every BLOCK_EVERY_S."""

    async def grow() -> None:
        while True:
            await asyncio.sleep(BLOCK_EVERY_S)
            await sandbox.grow()

    task = asyncio.create_task(grow())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
