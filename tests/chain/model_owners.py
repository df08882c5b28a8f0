"""The answers that the API must give about addresses, stake accounts and outputs; see model.py."""

from collections import defaultdict
from hashlib import blake2b
from typing import Any

import cbor2

from tests.chain.model import (
    Json,
    Ledger,
    Output,
    OutputReference,
    Transaction,
    bech32,
    bech32_payload,
    fingerprint,
    stake_address_of,
    value_of,
)
from tests.chain.model_assets import AssetKey, text_of

ORIGINS = ("verificationKey", "script")


def first_uses(ledger: Ledger) -> list[str]:
    """All addresses in the order in which outputs first paid to them, by transaction and index."""
    known = ledger.transactions
    genesis = {reference: output for reference, output in ledger.unspent.items() if reference[0] not in known}
    for tx in ledger.transactions.values():
        genesis.update(
            (reference, source)
            for reference, source in tx.inputs
            if source is not None and reference[0] not in ledger.transactions
        )
    before = [genesis[reference].address for reference in sorted(genesis, reverse=True)]  # as in _add_outputs
    paid = [output.address for tx in ledger.transactions.values() for _, output in tx.outputs]
    return list(dict.fromkeys([*before, *paid]))


def owners_of(address: str) -> list[str]:
    """An address, its stake address and its payment credential, as far as it has them."""
    return [owner for owner in (address, stake_address_of(address), payment_credential_of(address)) if owner]


def payment_credential_of(address: str) -> str | None:
    """The hash in the payment part of an address, as the hash of a key (CIP-5, CIP-19). Byron's have none."""
    return bech32("addr_vkh", bech32_payload(address)[1:29]) if address.startswith("addr") else None


class Owners:
    """The property of addresses, accounts and payment credentials, collected from a ledger at this moment."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.outputs: dict[str, list[tuple[OutputReference, Output]]] = defaultdict(list)
        self.transactions: dict[str, list[Transaction]] = defaultdict(list)
        self.addresses: dict[str, list[str]] = defaultdict(list)
        self.first_address: dict[str, str] = {}
        """By payment credential."""
        self.made: dict[OutputReference, Output] = {}
        self.spent_by: dict[OutputReference, Transaction] = {}
        self._add_outputs(ledger)
        self._add_transactions(ledger)
        for address in first_uses(ledger):
            account, payment = stake_address_of(address), payment_credential_of(address)
            if account is not None:
                self.addresses[account].append(address)
            if payment is not None:
                self.first_address.setdefault(payment, address)

    def _add_outputs(self, ledger: Ledger) -> None:
        genesis = [reference for reference in ledger.unspent if reference[0] not in ledger.transactions]
        genesis.sort(reverse=True)  # in place of their position on the chain, the last hash first
        later = [reference for reference in ledger.unspent if reference[0] in ledger.transactions]
        for reference in (*genesis, *later):
            output = ledger.unspent[reference]
            self.made[reference] = output
            for owner in owners_of(output.address):
                self.outputs[owner].append((reference, output))

    def _add_transactions(self, ledger: Ledger) -> None:
        self.made.update(ledger.dropped)
        for tx in ledger.transactions.values():
            self.made.update({(tx.tx_hash, index): output for index, output in tx.outputs})
            self.spent_by.update({reference: tx for reference, _ in tx.inputs})
            self.made.update({reference: source for reference, source in tx.inputs if source is not None})
            for owner in {owner for address in tx.addresses() for owner in owners_of(address)}:
                self.transactions[owner].append(tx)

    def position(self, tx: Transaction) -> Json:
        return {"tx_hash": tx.tx_hash, "slot_no": tx.slot, "block_time": self.ledger.clock.time(tx.slot)}

    def summary(self, owner: str) -> Json:
        """The common part of GET /v1/addresses/:address and /v1/accounts/:stake_address."""
        transactions = self.transactions.get(owner, [])
        return {
            "lovelace": sum(output.lovelace for _, output in self.outputs.get(owner, [])),
            "utxo_count": len(self.outputs.get(owner, [])),
            "asset_count": len(self.held(owner)),
            "transaction_count": len(transactions),
            "first_transaction": self.position(transactions[0]) if transactions else None,
            "last_transaction": self.position(transactions[-1]) if transactions else None,
        }

    def totals(self, owner: str) -> Json:
        """GET /v1/addresses/:address/totals, and those of accounts and payment credentials."""
        received: dict[AssetKey | None, int] = defaultdict(int, {None: 0})  # None: lovelace
        sent: dict[AssetKey | None, int] = defaultdict(int, {None: 0})
        for reference, output in self.made.items():
            if owner in owners_of(output.address):
                for sums in (received, sent) if reference in self.spent_by else (received,):
                    sums[None] += output.lovelace
                    for asset, quantity in output.assets.items():
                        sums[asset] += quantity
        return {
            "received_lovelace": str(received.pop(None)),
            "sent_lovelace": str(sent.pop(None)),
            "transaction_count": len(self.transactions.get(owner, [])),
            "assets": [
                {"policy_id": policy, "asset_name": name, "received": str(quantity), "sent": str(sent[policy, name])}
                for (policy, name), quantity in sorted((key, each) for key, each in received.items() if key)
            ],
        }

    def genesis_outputs(self, owner: str) -> int:
        """How many outputs of the genesis belong to an owner."""
        return sum(
            owner in owners_of(output.address)
            for (tx_hash, _), output in self.made.items()
            if tx_hash not in self.ledger.transactions
        )

    def held(self, owner: str) -> dict[AssetKey, int]:
        held: dict[AssetKey, int] = defaultdict(int)
        for _, output in self.outputs.get(owner, []):
            for asset, quantity in output.assets.items():
                held[asset] += quantity
        return held

    def holdings(self, owner: str) -> list[Json]:
        """All rows of …/assets, in no order."""
        return [
            {
                "policy_id": policy,
                "asset_name": name,
                "asset_name_ascii": text_of(bytes.fromhex(name)),
                "fingerprint": fingerprint(policy, name),
                "quantity": str(quantity),
            }
            for (policy, name), quantity in self.held(owner).items()
        ]

    def output(self, reference: OutputReference, output: Output) -> Json:
        """One row of …/utxos."""
        tx = self.ledger.transactions.get(reference[0])
        return {
            "tx_hash": reference[0],
            "output_index": reference[1],
            "slot_no": None if tx is None else tx.slot,
            "block_time": None if tx is None else self.ledger.clock.time(tx.slot),
            "address": output.address,
            "value": value_of(output, grouped=False),
            "data_hash": output.datum_hash if output.datum is None else hash_of(output.datum),
            "inline_datum": output.datum,
            "reference_script_hash": None if output.script is None else script_hash(output.script),
        }

    def unspent(self, owner: str, asset: AssetKey | None = None) -> list[Json]:
        """All rows of …/utxos, oldest first."""
        return [
            self.output(reference, output)
            for reference, output in self.outputs.get(owner, [])
            if asset is None or asset in output.assets
        ]

    def made_output(self, reference: OutputReference) -> Json:
        """GET /v1/utxos/:tx_hash/:index."""
        spender = self.spent_by.get(reference)
        return self.output(reference, self.made[reference]) | {
            "spent_by": None if spender is None else self.position(spender),
            "dropped_slot_no": self.ledger.dropped_at.get(reference),
        }

    def address(self, address: str) -> Json:
        """GET /v1/addresses/:address."""
        kind, payment, stake = "byron", None, None
        if address.startswith("addr"):
            raw = bech32_payload(address)
            number = raw[0] >> 4
            kind = "base" if number < 4 else "pointer" if number < 6 else "enterprise"
            payment = {"id": raw[1:29].hex(), "origin": ORIGINS[number & 1]}
            if kind == "base":
                stake = {"id": raw[29:57].hex(), "origin": ORIGINS[number >> 1]}
        return {
            "address": address,
            "kind": kind,
            "payment_credential": payment,
            "stake_credential": stake,
            "stake_address": stake_address_of(address),
            **self.summary(address),
        }

    def payment_credential(self, credential: str) -> Json:
        """GET /v1/payment-credentials/:credential."""
        first = self.first_address.get(credential)
        return {
            "id": bech32_payload(credential).hex(),
            "origin": None if first is None else ORIGINS[bech32_payload(first)[0] >> 4 & 1],
            **self.summary(credential),
        }

    def withdrawals(self, account: str) -> list[Json]:
        """All rows of …/withdrawals, oldest first."""
        return [
            self.position(tx) | {"lovelace": tx.withdrawals[account]}
            for tx in self.ledger.transactions.values()
            if account in tx.withdrawals
        ]

    def account_holders(self) -> tuple[dict[AssetKey, list[Json]], dict[str, list[Json]]]:
        """The accounts that hold each asset and each policy, greatest first."""
        by_asset: dict[AssetKey, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        by_policy: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for output in self.ledger.unspent.values():
            who = stake_address_of(output.address) or output.address
            for asset, quantity in output.assets.items():
                by_asset[asset][who] += quantity
                by_policy[asset[0]][who] += quantity
        return (
            {asset: account_rows(held) for asset, held in by_asset.items()},
            {policy: account_rows(held) for policy, held in by_policy.items()},
        )


def hash_of(datum: str) -> str:
    return blake2b(bytes.fromhex(datum), digest_size=32).hexdigest()


def script_hash(script: Json) -> str:
    """The hash of the language's number and the script's bytes. Ogmios sends those of native ones only on request."""
    language = script["language"]
    number = 0 if language == "native" else int(language.removeprefix("plutus:v"))
    body = bytes.fromhex(script["cbor"]) if "cbor" in script else native_body(script["json"])
    return blake2b(bytes([number]) + body, digest_size=28).hexdigest()


def native_body(clause: Json) -> bytes:
    """The CBOR of a native script, as most libraries write it."""
    return bytes(cbor2.dumps(native_tree(clause)))


def native_tree(clause: Json) -> list[Any]:
    match clause["clause"]:
        case "signature":
            return [0, bytes.fromhex(clause["from"])]
        case "all" | "any" as kind:
            return [("all", "any").index(kind) + 1, [native_tree(part) for part in clause["from"]]]
        case "some":
            return [3, clause["atLeast"], [native_tree(part) for part in clause["from"]]]
        case kind:
            return [("after", "before").index(kind) + 4, clause["slot"]]


def account_rows(held: dict[str, int]) -> list[Json]:
    rows: list[Json] = []
    for who, quantity in sorted(held.items(), key=lambda row: -row[1]):
        is_account = who.startswith("stake")
        rows.append(
            {
                "stake_address": who if is_account else None,
                "address": None if is_account else who,
                "quantity": str(quantity),
            }
        )
    return rows
