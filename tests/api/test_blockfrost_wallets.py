"""Wallets that nobody here wrote: the requests of Lace and of Trezor's backend for an account of 200 addresses.

The account's transactions are built and signed here and submitted to a devnet, so what a wallet should show is known
without the index.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pycardano
from pycardano import (
    Asset,
    AssetName,
    AuxiliaryData,
    DRep,
    DRepKind,
    ExtendedSigningKey,
    HDWallet,
    Metadata,
    MultiAsset,
    ScriptPubkey,
    StakeAndVoteDelegation,
    StakeCredential,
    StakeRegistrationConway,
    Transaction,
    TransactionBody,
    TransactionInput,
    TransactionOutput,
    TransactionWitnessSet,
    Value,
    VerificationKeyWitness,
    Withdrawals,
)

from api.blockfrost.shape import ROOT
from devnet import addresses as encoding
from devnet.generator import Generated
from shared.network import PREVIEW
from tests.api import sandboxes
from tests.api.client import Reply
from tests.api.replays import Activity, Backend, lace, lace_polls, trezor
from tests.api.sandboxes import Followed, Sandbox
from tests.chain.model import bech32_payload
from tests.chain.test_reward_epochs import begun, snapshots
from tests.wallet import ADA, Wallet

MNEMONIC = "test walk nut penalty hip pave soap entry language right filter choice"
FEE, DEPOSIT = ADA, 2 * ADA
STAKE = 500_000 * ADA
EXTERNAL, INTERNAL = 118, 80  # addresses of the first two transactions; two more follow
STRANGER = Wallet.numbered(7)
NAME = b"Token"


class Account:
    """The keys of a mnemonic (CIP-1852), apart from the service's own derivation."""

    def __init__(self) -> None:
        self._root = HDWallet.from_mnemonic(MNEMONIC)
        self.key = cache(self._key)
        self.stake_key = self._key(2, 0)
        self.stake_addresses = [self._stake_address(index) for index in range(6)]

    def address(self, role: int, index: int) -> Any:
        payment = self.key(role, index).to_verification_key().hash()
        return pycardano.Address(payment, self._stake_hash(self.stake_key), network=pycardano.Network.TESTNET)

    def address_text(self, role: int, index: int) -> str:
        return str(self.address(role, index))

    def joining(self, pool: str) -> list[Any]:
        """Certificates that register the account and delegate its stake, and its vote: a withdrawal needs one."""
        credential = StakeCredential(self._stake_hash(self.stake_key))
        abstain = DRep(DRepKind.ALWAYS_ABSTAIN)
        return [
            StakeRegistrationConway(credential, DEPOSIT),
            StakeAndVoteDelegation(credential, pycardano.PoolKeyHash(encoding.raw(pool)), abstain),
        ]

    def _key(self, role: int, index: int) -> Any:
        return ExtendedSigningKey.from_hdwallet(self._root.derive_from_path(f"m/1852'/1815'/0'/{role}/{index}"))

    def _stake_address(self, index: int) -> str:
        part = self._stake_hash(self._key(2, index))
        return str(pycardano.Address(staking_part=part, network=pycardano.Network.TESTNET))

    @staticmethod
    def _stake_hash(key: Any) -> Any:
        return key.to_verification_key().hash()


class Made(msgspec.Struct):
    """Transactions that were submitted, and the outputs that they made and spent."""

    outputs: dict[tuple[str, int], tuple[str, Counter[str]]] = {}
    spent: set[tuple[str, int]] = set()
    blocks: dict[str, tuple[int, int]] = {}
    txs: list[Any] = []

    def add(self, tx: Any, block: Any) -> None:
        tx_hash = str(tx.id)
        self.txs.append(tx)
        self.blocks[tx_hash] = block
        self.spent |= {references(each) for each in tx.transaction_body.inputs}
        for index, output in enumerate(tx.transaction_body.outputs):
            self.outputs[tx_hash, index] = str(output.address), amounts(output.amount)

    def unspent(self, addresses: set[str]) -> dict[tuple[str, int], tuple[str, int, int]]:
        """The address, the lovelace and the height of each unspent output at some addresses."""
        return {
            place: (address, held["lovelace"], self.blocks[place[0]][0])
            for place, (address, held) in self.outputs.items()
            if address in addresses and place not in self.spent
        }

    def balance(self, addresses: set[str]) -> dict[str, int]:
        total = Counter[str]()
        for place in self.unspent(addresses):
            total.update(self.outputs[place][1])
        return dict(total)

    def activities(self, addresses: set[str]) -> list[Activity]:
        """What each transaction changed at some addresses, newest first."""
        found = []
        for tx in reversed(self.txs):
            change, tx_hash = Counter[str](), str(tx.id)
            sources = [self.outputs.get(references(each)) for each in tx.transaction_body.inputs]
            results = [self.outputs[tx_hash, index] for index in range(len(tx.transaction_body.outputs))]
            touched = [each for each in (*sources, *results) if each is not None and each[0] in addresses]
            for address, held in results:
                if address in addresses:
                    change.update(held)
            for source in sources:
                if source is not None and source[0] in addresses:
                    change.subtract(source[1])
            if touched:
                height, time = self.blocks[tx_hash]
                gained = {unit: quantity for unit, quantity in change.items() if quantity}
                found.append(Activity(tx_hash, height, tx.transaction_body.fee, gained, time))
        return found


def references(source: Any) -> tuple[str, int]:
    return str(source.transaction_id), source.index


def amounts(value: Any) -> Counter[str]:
    held = Counter({"lovelace": value.coin})
    for policy, names in value.multi_asset.items():
        held.update({policy.to_primitive().hex() + name.payload.hex(): quantity for name, quantity in names.items()})
    return held


class Spender(msgspec.Struct):
    """Builds transactions from outputs that are known, submits them, and puts each in a block."""

    sandbox: Sandbox | Followed
    key: str
    made: Made

    async def get(self, path: str) -> Reply:
        return await self.sandbox.api.call("GET", ROOT + path, headers={"project_id": self.key})

    async def spend(
        self, sources: Sequence[tuple[tuple[str, int], Any]], outputs: list[Any], *keys: Any, **changes: Any
    ) -> str:
        """Spend outputs with their keys. Further keys sign, too; `changes` are scripts, metadata, fields of a body."""
        scripts, auxiliary = changes.pop("scripts", None), changes.pop("auxiliary", None)
        inputs = [TransactionInput.from_primitive([tx_hash, index]) for (tx_hash, index), _ in sources]
        body = TransactionBody(inputs=inputs, outputs=outputs, fee=FEE, **changes)
        signers = {bytes(key.payload): key for key in (*(key for _, key in sources), *keys)}.values()
        witnesses = [VerificationKeyWitness(key.to_verification_key(), key.sign(body.hash())) for key in signers]
        witness_set = TransactionWitnessSet(vkey_witnesses=witnesses, native_scripts=scripts)
        tx = Transaction(body, witness_set, auxiliary_data=auxiliary)
        headers = {"project_id": self.key, "Content-Type": "application/cbor"}
        reply = await self.sandbox.api.call("POST", f"{ROOT}/tx/submit", headers=headers, data=tx.to_cbor())
        assert (reply.status, reply.body) == (200, str(tx.id))
        await self.sandbox.grow()
        block = self.sandbox.node.blocks[-1].decoded()
        self.made.add(tx, (block["height"], int(PREVIEW.slot_time(block["slot"]).timestamp())))
        return str(tx.id)


async def test_lace_and_trezor_show_an_account_of_200_addresses(sandbox: Sandbox, submitter: str) -> None:
    account, spender = Account(), Spender(sandbox, submitter, Made())
    assert isinstance(sandbox.node.chain, Generated)
    pool = next(iter(sandbox.node.chain.ledger.pools))
    unit, delegation = await fill(spender, account, pool)
    made = spender.made
    used = {address for address, _ in made.outputs.values()} & {
        account.address_text(role, index) for role in (0, 1) for index in range(140)
    }
    assert len(used) == 200
    held, tip = made.balance(used), sandbox.node.blocks[-1].decoded()

    backend = Backend(spender.get)
    shown = await lace(backend, account.stake_addresses)
    assert shown.addresses == used
    assert shown.balance == held
    assert shown.activities == made.activities(used)
    assert shown.tip == (tip["height"], tip["id"], tip["slot"])
    assert (shown.epoch_length, shown.key_deposit) == (PREVIEW.epoch_slots, DEPOSIT)
    assert shown.staking == {
        "active": True,
        "registered": True,
        "rewards": 0,
        "withdrawable": 0,
        "controlled": held["lovelace"],
    }
    assert (shown.delegations, shown.rewards, shown.withdrawals) == ([(delegation, pool)], [], [])
    assert shown.registrations == [(delegation, "registered")]
    assert shown.tokens == {unit: ("A token", 7)}
    assert shown.pool[0] == pool

    asked = Backend(spender.get)
    suite = await trezor(asked, account.address_text, account.stake_addresses[0])
    assert (suite.used, suite.unused) == (used, 80)  # of role 0 up to index 159, of role 1 up to 119
    assert suite.outputs == made.unspent(used)
    assert suite.transactions == made.activities(used)
    assert suite.block == (tip["height"], tip["id"])
    assert suite.staking == (True, pool, 0)
    assert min(backend.requests, asked.requests) > 200

    paid, other = account.address_text(0, 0), account.address_text(0, 1)
    newest = [(await spender.get(f"/addresses/{each}/transactions?order=desc")).body[0] for each in (paid, other)]
    again = await pay(spender, account.address(0, 0))
    assert await lace_polls(backend, paid, newest[0]) == [again]
    assert await lace_polls(backend, other, newest[1]) == []


async def test_lace_shows_the_rewards_that_the_ledger_paid(
    environment: dict[str, str],
    submitter: str,
    no_aggregator: None,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    """The index follows the node, and reads what accounts hold in each epoch. One withdrawal comes in between.

    NOTE: the devnet pays for the blocks of the last epoch, Cardano for those of the one before. So a first reward comes
    before there is a reason for it on Cardano, and is in the sum only.
    """
    async with sandboxes.followed(environment, tmp_path) as sandbox:
        account, spender = Account(), Spender(sandbox, submitter, Made())
        stake, pool = account.stake_addresses[0], next(iter(sandbox.chain.ledger.pools))
        began = await sandbox.begin_epoch()
        paid_to = await pay(spender, account.address(0, 0), lovelace=STAKE)
        joined = await spender.spend(
            [((paid_to, 0), account.key(0, 0))],
            [TransactionOutput(account.address(1, 0), STAKE - DEPOSIT - FEE)],
            account.stake_key,
            certificates=account.joining(pool),
        )
        while await sandbox.begin_epoch() < began + 4:
            pass
        raw = bech32_payload(stake)
        withdrawn = sum(of.get(raw, 0) for of in begun(sandbox.chain)[1].values())
        withdrawal = await spender.spend(
            [((joined, 0), account.key(1, 0))],
            [TransactionOutput(account.address(1, 1), STAKE - DEPOSIT - 2 * FEE + withdrawn)],
            account.stake_key,
            withdraws=Withdrawals({raw: withdrawn}),
        )
        while await sandbox.begin_epoch() < began + 6:
            pass

        paid = {epoch: of[raw] for epoch, of in begun(sandbox.chain)[1].items() if raw in of}
        assert list(paid) == [began + 3, began + 4, began + 5, began + 6]
        shown = await lace(Backend(spender.get), account.stake_addresses)
        assert shown.rewards == [(epoch - 2, paid[epoch], pool) for epoch in (began + 6, began + 5, began + 4)]
        held = shown.balance["lovelace"]
        assert shown.balance == spender.made.balance(shown.addresses)
        assert shown.staking == {
            "active": True,
            "registered": True,
            "rewards": sum(paid.values()),
            "withdrawable": sum(paid.values()) - withdrawn,
            "controlled": held + sum(paid.values()) - withdrawn,
        }
        assert (shown.delegations, shown.withdrawals) == ([(joined, pool)], [withdrawal])
        assert shown.activities == spender.made.activities(shown.addresses)
        assert shown.pool[::2] == (pool, sandbox.chain.ledger.live_stakes()[pool])

        reply = await spender.get(f"/accounts/{stake}/rewards")
        assert reply.headers["Known-Epochs"] == f"{began - 2}-{began + 4}"
        history = (await spender.get(f"/accounts/{stake}/history")).body
        told = {each["active_epoch"]: {each["pool_id"]: int(each["amount"])} for each in history}
        assert told == staked_by_epoch(sandbox.chain, stake)


def staked_by_epoch(chain: Generated, stake: str) -> dict[int, dict[str, int]]:
    """The stake of an account by epoch and pool, in the ledger's snapshots."""
    taken = {
        epoch: {pool: members[stake] for pool, members in pools.items() if stake in members}
        for epoch, pools in snapshots(chain).items()
    }
    return {epoch: pools for epoch, pools in taken.items() if pools}


async def fill(spender: Spender, account: Account, pool: str) -> tuple[str, str]:
    """Use 200 addresses of an account, mint a token and delegate; returns the token's unit and the delegation's hash.

    Index 130 comes after a gap of addresses that are not used.
    """
    external = [account.address(0, index) for index in range(EXTERNAL)]
    first = await pay(spender, *external, lovelace=3 * ADA)
    sources = [((first, index), account.key(0, index)) for index in range(40)]
    internal = [TransactionOutput(account.address(1, index), 1_300_000) for index in range(INTERNAL)]
    rest = 40 * 3 * ADA - INTERNAL * 1_300_000 - FEE
    second = await spender.spend(sources, [*internal, TransactionOutput(STRANGER.address, rest)])

    policy = ScriptPubkey(account.key(0, 40).to_verification_key().hash())
    tokens = MultiAsset({policy.hash(): Asset({AssetName(NAME): 7})})
    policy_id = policy.hash().to_primitive().hex()
    metadata = AuxiliaryData(Metadata({721: {policy_id: {NAME.decode(): {"name": "A token", "image": "ipfs://x"}}}}))
    await spender.spend(
        [((first, 40), account.key(0, 40)), ((second, 0), account.key(1, 0))],
        [TransactionOutput(account.address(0, 130), Value(4_300_000 - FEE, tokens))],
        mint=tokens,
        scripts=[policy],
        auxiliary=metadata,
        auxiliary_data_hash=metadata.hash(),
    )
    delegation = await spender.spend(
        [((first, 41), account.key(0, 41)), ((first, 42), account.key(0, 42))],
        [TransactionOutput(account.address(1, INTERNAL), 6 * ADA - DEPOSIT - FEE)],
        account.stake_key,
        certificates=account.joining(pool),
    )
    return policy_id + NAME.hex(), delegation


async def pay(spender: Spender, *to: Any, lovelace: int = 5 * ADA) -> str:
    """A payment from the faucet to each address."""
    faucet = Wallet.of_faucet()
    listed = (await spender.get(f"/addresses/{faucet.address}/utxos?order=desc")).body
    source = max(listed, key=lambda each: int(each["amount"][0]["quantity"]))
    change = int(source["amount"][0]["quantity"]) - len(to) * lovelace - FEE
    outputs = [TransactionOutput(address, lovelace) for address in to]
    outputs.append(TransactionOutput(faucet.address, change))
    return await spender.spend([((source["tx_hash"], source["output_index"]), faucet.key)], outputs)
