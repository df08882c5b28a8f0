"""Transactions that pycardano's TransactionBuilder builds and signs over some chain context."""

from typing import Any

import pycardano
from pycardano import (
    Asset,
    AssetName,
    MultiAsset,
    StakeCredential,
    StakeDelegation,
    StakeRegistrationConway,
    TransactionBuilder,
    TransactionOutput,
    Value,
)

from tests.wallet import ADA, Wallet


def payment(context: Any, wallet: Wallet, pool: bytes) -> Any:  # noqa: ARG001 - all three have the same arguments
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
