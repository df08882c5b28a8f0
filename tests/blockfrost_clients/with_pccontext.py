"""A payment, a mint and a delegation with pccontext, a chain context of pycardano, on the preview network.

URL=https://…/blockfrost/api PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… python with_pccontext.py
"""

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pccontext
import pycardano
from pccontext import BlockFrostChainContext, Network
from pycardano import (
    Address,
    Asset,
    AssetName,
    HDWallet,
    MultiAsset,
    PoolKeyHash,
    PoolOperator,
    ScriptPubkey,
    StakeCredential,
    StakeDelegation,
    StakeRegistrationConway,
    Transaction,
    TransactionBuilder,
    TransactionInput,
    TransactionOutput,
    Value,
)

Asked = TypeVar("Asked")

ADA = 1_000_000
GIVEN = {name: os.environ[name] for name in ("URL", "PROJECT_ID", "MNEMONIC", "RECEIVER", "POOL", "UNUSED", "BUSY")}
DATUMS, DATUM, DATUM_HASH = (os.environ[name] for name in ("DATUMS", "DATUM", "DATUM_HASH"))

context = BlockFrostChainContext(GIVEN["PROJECT_ID"], Network.PREVIEW, GIVEN["URL"])
payment_key, stake_key = (
    pycardano.ExtendedSigningKey.from_hdwallet(
        HDWallet.from_mnemonic(GIVEN["MNEMONIC"]).derive_from_path(f"m/1852'/1815'/0'/{role}/0")
    )
    for role in (0, 2)
)
payment_hash, stake_hash = (key.to_verification_key().hash() for key in (payment_key, stake_key))
address = Address(payment_hash, stake_hash, network=pycardano.Network.TESTNET)
stake_address = str(Address(staking_part=stake_hash, network=pycardano.Network.TESTNET))


def main() -> None:
    ask_about_the_network()
    ask_about_outputs()
    ask_about_pools()
    print("payment   ", pay())
    print("mint      ", mint())
    print("delegation", delegate())
    read_a_refusal()


def ask_about_the_network() -> None:
    block, (tip, last_block_slot) = between_blocks(lambda: (context.chain_tip, context.last_block_slot))
    assert (tip.slot, tip.hash, tip.block, tip.epoch) == (block.slot, block.hash, block.height, block.epoch)
    assert last_block_slot == block.slot
    assert context.era == pccontext.Era.CONWAY
    assert context.genesis_param.network_magic == 2
    parameters = context.protocol_param
    assert (parameters.key_deposit, parameters.max_collateral_inputs) == (2 * ADA, 3)
    raw = context.api.epoch_latest_parameters(return_type="json")["cost_models_raw"]
    assert {name: list(model.values()) for name, model in parameters.cost_models.items()} == raw


def ask_about_outputs() -> None:
    busy = context.utxos(GIVEN["BUSY"])
    assert len({(str(utxo.input.transaction_id), utxo.input.index) for utxo in busy}) == int(os.environ["BUSY_OUTPUTS"])
    assert context.utxos(GIVEN["UNUSED"]) == []
    carrying = context.utxos(DATUMS)
    assert [utxo.output.datum.cbor.hex() for utxo in carrying if utxo.output.datum] == [DATUM]
    assert [str(utxo.output.datum_hash) for utxo in carrying if utxo.output.datum_hash] == [DATUM_HASH]
    assert context.api.script_datum_cbor(DATUM_HASH).cbor == DATUM


def ask_about_pools() -> None:
    assert GIVEN["POOL"] in [pool.encode() for pool in context.stake_pools()]
    _, (info, told) = between_blocks(lambda: (context.stake_pool_info(GIVEN["POOL"]), context.api.pool(GIVEN["POOL"])))
    assert (info.live_stake, info.live_pledge, info.active_stake) == tuple(
        int(amount) for amount in (told.live_stake, told.live_pledge, told.active_stake)
    )
    assert info.pool_params.operator == PoolOperator.decode(GIVEN["POOL"]).pool_key_hash
    assert (info.pool_params.pledge, info.pool_params.cost) == (int(told.declared_pledge), int(told.fixed_cost))
    stakes = {entry.pool_id: entry.stake for entry in context.spo_stake_distribution()}
    assert stakes[GIVEN["POOL"]] == info.active_stake


def between_blocks(ask: Callable[[], Asked]) -> tuple[Any, Asked]:
    """The last block, and answers to several requests from when it was the last: a new one changes what is equal."""
    while True:
        block, asked = context.api.block_latest(), ask()
        if context.api.block_latest().hash == block.hash:
            return block, asked


def pay() -> str:
    builder = new_builder()
    builder.add_output(TransactionOutput(Address.decode(GIVEN["RECEIVER"]), 5 * ADA))
    tx = send(builder, payment_key)
    found = context.utxo(TransactionInput(tx.id, 0))
    assert found is not None
    paid, is_spent = found
    assert (str(paid.output.address), paid.output.amount.coin, is_spent) == (GIVEN["RECEIVER"], 5 * ADA, False)
    spent = context.utxo(tx.transaction_body.inputs[0])
    assert spent is not None and spent[1]
    return str(tx.id)


def mint() -> str:
    policy = ScriptPubkey(payment_hash)
    builder = new_builder()
    builder.mint = MultiAsset({policy.hash(): Asset({AssetName(b"Token"): 7})})
    builder.native_scripts = [policy]
    builder.add_output(TransactionOutput(address, Value(3 * ADA, builder.mint)))
    tx = send(builder, payment_key)
    [held] = [utxo for utxo in context.utxos(address) if utxo.output.amount.multi_asset]
    assert (held.input.transaction_id, held.output.amount.multi_asset) == (tx.id, builder.mint)
    return str(tx.id)


def delegate() -> str:
    credential = StakeCredential(stake_hash)
    pool = PoolKeyHash(bytes(PoolOperator.decode(GIVEN["POOL"]).pool_key_hash))
    builder = new_builder()
    builder.certificates = [StakeRegistrationConway(credential, 2 * ADA), StakeDelegation(credential, pool)]
    tx = send(builder, payment_key, stake_key)
    [info] = context.stake_address_info(stake_address)
    assert (info.address, info.active, info.stake_delegation) == (stake_address, True, GIVEN["POOL"])
    assert (info.reward_account_balance, info.delegate_representative) == (0, None)
    return str(tx.id)


def read_a_refusal() -> None:
    """A payment that was valid until slot 1 only is refused with the ledger's name for it."""
    builder = new_builder()
    builder.ttl = 1
    builder.add_output(TransactionOutput(address, 5 * ADA))
    try:
        context.submit_tx(builder.build_and_sign([payment_key], change_address=address))
    except pycardano.TransactionFailedException as failed:
        assert "Error code: 400" in str(failed) and "OutsideValidityIntervalUTxO" in str(failed), failed
    else:
        raise AssertionError("not refused")


def new_builder() -> TransactionBuilder:
    builder = TransactionBuilder(context)
    builder.add_input_address(address)
    return builder


def send(builder: TransactionBuilder, *keys: pycardano.ExtendedSigningKey) -> Transaction:
    """Balances, signs, evaluates and submits; returns the transaction once it is in a block."""
    tx = builder.build_and_sign(list(keys), change_address=address)
    assert context.evaluate_tx(tx) == {}
    assert context.submit_tx_cbor(tx.to_cbor()) == str(tx.id)
    while context.utxo(TransactionInput(tx.id, 0)) is None:
        time.sleep(0.2)
    return tx


main()
