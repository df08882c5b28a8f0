"""Clients of Blockfrost that nobody here wrote, unmodified: with another URL they build, evaluate, sign and submit."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pycardano
import pytest
from blockfrost import ApiError
from pycardano import (
    Asset,
    AssetName,
    BlockFrostChainContext,
    MultiAsset,
    StakeCredential,
    StakeDelegation,
    StakeRegistrationConway,
    TransactionBuilder,
    TransactionOutput,
    Value,
)

from api.restrictions import SCOPES
from devnet import addresses
from devnet.generator import Generated
from tests.api import sandboxes
from tests.api.conftest import IssueKey
from tests.api.sandboxes import Sandbox
from tests.wallet import ADA, Wallet


@pytest.fixture
async def sandbox(environment: dict[str, str], no_worker: None) -> AsyncIterator[Sandbox]:  # noqa: ARG001
    async with sandboxes.opened(environment) as opened:
        yield opened


@pytest.fixture
async def submitter(issue_key: IssueKey, db: asyncpg.Connection) -> str:
    """An API key with every scope."""
    key = await issue_key()
    await db.execute("UPDATE partner.credential SET scopes = $1", list(SCOPES))
    return key


async def test_pycardano_pays_mints_and_delegates(sandbox: Sandbox, submitter: str) -> None:
    wallet = Wallet.of_faucet()
    assert isinstance(sandbox.node.chain, Generated)
    pool = addresses.raw(next(iter(sandbox.node.chain.ledger.pools)))
    context = await asyncio.to_thread(BlockFrostChainContext, submitter, base_url=sandbox.blockfrost)
    for build in (payment, mint, delegation):
        tx = await asyncio.to_thread(build, context, wallet, pool)
        assert await asyncio.to_thread(context.evaluate_tx, tx) == {}
        tx_hash = await asyncio.to_thread(context.submit_tx_cbor, tx.to_cbor())
        assert tx_hash == str(tx.id)
        with pytest.raises(ApiError) as missing:
            await asyncio.to_thread(context.api.transaction, tx_hash)
        assert missing.value.status_code == 404
        await sandbox.grow()
        found = await asyncio.to_thread(context.api.transaction, tx_hash)
        assert found.fees == str(tx.transaction_body.fee)
        assert int(found.deposit) == (2 * ADA if build is delegation else 0)
        made = (await asyncio.to_thread(context.api.transaction_utxos, tx_hash)).outputs
        assert [int(each.amount[0].quantity) for each in made] == [
            each.amount.coin for each in tx.transaction_body.outputs
        ]
        held = {(str(each.input.transaction_id), each.input.index) for each in await unspent(context, wallet)}
        assert {(tx_hash, each.output_index) for each in made if each.address == str(wallet.address)} <= held


async def test_pycardano_is_told_what_the_node_refuses(sandbox: Sandbox, submitter: str) -> None:
    wallet = Wallet.of_faucet()
    context = await asyncio.to_thread(BlockFrostChainContext, submitter, base_url=sandbox.blockfrost)
    held = (await unspent(context, wallet))[0]
    source = str(held.input.transaction_id), held.input.index
    greedy = wallet.payment(source, held.output.amount.coin + 5 * ADA, 5 * ADA)
    with pytest.raises(pycardano.TransactionFailedException, match=r"Error code: 400.*value"):
        await asyncio.to_thread(context.submit_tx, greedy)


async def unspent(context: Any, wallet: Wallet) -> list[Any]:
    return list(await asyncio.to_thread(context.utxos, wallet.address))


def payment(context: Any, wallet: Wallet, pool: bytes) -> Any:  # noqa: ARG001 - all three are called alike
    builder = TransactionBuilder(context)
    builder.add_input_address(wallet.address)
    builder.add_output(TransactionOutput(Wallet.numbered(7).address, 5 * ADA))
    return builder.build_and_sign([wallet.key], change_address=wallet.address)


def mint(context: Any, wallet: Wallet, pool: bytes) -> Any:  # noqa: ARG001
    builder = TransactionBuilder(context)
    builder.add_input_address(wallet.address)
    builder.mint = MultiAsset({wallet.policy.hash(): Asset({AssetName(b"Token"): 7})})
    builder.native_scripts = [wallet.policy]
    builder.add_output(TransactionOutput(wallet.address, Value(3 * ADA, builder.mint)))
    return builder.build_and_sign([wallet.key], change_address=wallet.address)


def delegation(context: Any, wallet: Wallet, pool: bytes) -> Any:
    credential = StakeCredential(wallet.stake_key.to_verification_key().hash())
    builder = TransactionBuilder(context)
    builder.add_input_address(wallet.address)
    builder.certificates = [
        StakeRegistrationConway(credential, 2 * ADA),
        StakeDelegation(credential, pycardano.PoolKeyHash(pool)),
    ]
    return builder.build_and_sign([wallet.key, wallet.stake_key], change_address=wallet.address)
