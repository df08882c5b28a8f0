"""A wallet for tests: it builds and signs real transactions with pycardano, from the devnet's faucet key or its own."""

import os
from typing import Any

import msgspec

from devnet import faucet

os.environ.setdefault("CBOR_C_EXTENSION", "1")

import pycardano
from pycardano import (
    Asset,
    AssetName,
    AuxiliaryData,
    Metadata,
    MultiAsset,
    ScriptAll,
    ScriptPubkey,
    StakeCredential,
    StakeDelegation,
    StakeRegistrationConway,
    Transaction,
    TransactionBody,
    TransactionInput,
    TransactionOutput,
    TransactionWitnessSet,
    Value,
    VerificationKeyWitness,
)

FEE = 400_000
ADA = 1_000_000

Reference = tuple[str, int]


class Wallet(msgspec.Struct):
    """A payment key and a stake key on a test network. Its transactions spend the given outputs."""

    key: Any
    stake_key: Any

    @classmethod
    def of_faucet(cls) -> "Wallet":
        return cls(pycardano.PaymentSigningKey(bytes.fromhex(faucet.SIGNING_KEY)), _stake_key(1))

    @classmethod
    def numbered(cls, number: int) -> "Wallet":
        """Another wallet, always the same for a number."""
        return cls(pycardano.PaymentSigningKey(number.to_bytes(32)), _stake_key(number))

    @property
    def address(self) -> Any:
        """The enterprise address, as of the faucet."""
        return pycardano.Address(self.key.to_verification_key().hash(), network=pycardano.Network.TESTNET)

    @property
    def policy(self) -> Any:
        """A native script that requires this wallet's signature."""
        return ScriptAll([ScriptPubkey(self.key.to_verification_key().hash())])

    def payment(self, source: Reference, held: int, lovelace: int, to: Any = None, **changes: Any) -> Any:
        """Pays lovelace and returns the rest. `changes` are fields of the body."""
        outputs = [TransactionOutput(to or self.address, lovelace)]
        outputs.append(TransactionOutput(self.address, held - lovelace - FEE))
        return self.signed(self.body(source, outputs, **changes))

    def mint(self, source: Reference, held: int, name: bytes, quantity: int) -> Any:
        """Mints an asset of the wallet's own policy, with metadata."""
        assets = MultiAsset({self.policy.hash(): Asset({AssetName(name): quantity})})
        auxiliary = AuxiliaryData(
            Metadata({721: {self.policy.hash().to_primitive().hex(): {name.decode(): {"name": "T"}}}})
        )
        body = self.body(
            source,
            [TransactionOutput(self.address, Value(held - FEE, assets))],
            mint=assets,
            auxiliary_data_hash=auxiliary.hash(),
        )
        return self.signed(body, scripts=[self.policy], auxiliary=auxiliary)

    def delegation(self, source: Reference, held: int, pool: bytes) -> Any:
        """Registers the stake key and delegates it."""
        credential = StakeCredential(self.stake_key.to_verification_key().hash())
        certificates = [
            StakeRegistrationConway(credential, 2 * ADA),
            StakeDelegation(credential, pycardano.PoolKeyHash(pool)),
        ]
        body = self.body(source, [TransactionOutput(self.address, held - FEE - 2 * ADA)], certificates=certificates)
        return self.signed(body, more_keys=[self.stake_key])

    def body(self, source: Reference, outputs: list[Any], **changes: Any) -> Any:
        inputs = [TransactionInput.from_primitive([source[0], source[1]])]
        return TransactionBody(**{"inputs": inputs, "outputs": outputs, "fee": FEE, **changes})

    def signed(
        self, body: Any, scripts: Any = None, auxiliary: Any = None, more_keys: Any = (), key: Any = None
    ) -> Any:
        """Signs with the wallet's key or another one, and with more keys."""
        signers = (key or self.key, *more_keys)
        witnesses = [VerificationKeyWitness(each.to_verification_key(), each.sign(body.hash())) for each in signers]
        return Transaction(
            body, TransactionWitnessSet(vkey_witnesses=witnesses, native_scripts=scripts), auxiliary_data=auxiliary
        )


def _stake_key(number: int) -> Any:
    return pycardano.StakeSigningKey(bytes([7]) * 28 + number.to_bytes(4))


def id_of(tx: Any) -> str:
    return str(tx.id)
