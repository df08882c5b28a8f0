"""A transaction in the making: gathers what it does, and balances it when done."""

from itertools import islice
from random import Random
from typing import Any

import cbor2
import msgspec

from devnet import addresses, parameters
from devnet.addresses import Credential
from devnet.cast import Cast
from devnet.dialect import plain
from devnet.ledger import Asset, Ledger, Reference

Json = dict[str, Any]
Assets = dict[Asset, int]

MAX_QUANTITY = 2**64 - 1  # what one output can hold of one asset
_LEAST = 1_500_000  # lovelace that an output takes with it


class Impossible(Exception):
    """The chain isn't ready for this transaction: nobody owns what it needs."""


class Draft:
    """Collects a transaction's parts against a ledger that it doesn't change.

    `lovelace` and `assets` are what inputs, withdrawals, refunds and mints brought less what was given away so far:
    `done` pays the difference back to whoever gets the change.
    """

    def __init__(self, ledger: Ledger, cast: Cast, random: Random, era: str, slot: int) -> None:
        self.ledger, self.cast, self.random, self.era, self.slot = ledger, cast, random, era, slot
        self.tx: Json = {"spends": "inputs", "inputs": [], "outputs": []}
        self.lovelace = 0
        self.assets: Assets = {}
        self.signers: list[str] = []
        self._taken: set[Reference] = set()
        self._lender: str | None = None

    def since(self, era: str) -> bool:
        return parameters.PROTOCOL_MAJOR[self.era] >= parameters.PROTOCOL_MAJOR[era]

    def references(self, address: str, most: int = 12) -> list[Reference]:
        """The oldest outputs at an address that this transaction doesn't use yet."""
        wallet = self.ledger.wallets.get(address, ())
        return list(islice((reference for reference in wallet if reference not in self._taken), most))

    def spend(self, reference: Reference) -> Json:
        """Add an input and return the output that it spends."""
        output = self.ledger.unspent[reference]
        self.tx["inputs"].append(self._use(reference))
        self._take(output["value"], 1)
        self.signers.append(output["address"])
        return output

    def collateral(self, address: str, tokens: bool = False) -> Json:
        """Put up an output and return its value; it has tokens only where they will come back."""
        for reference in self.references(address):
            value: Json = self.ledger.unspent[reference]["value"]
            if value["ada"]["lovelace"] >= 3 * _LEAST and (tokens or len(value) == 1):
                self.tx.setdefault("collaterals", []).append(self._use(reference))
                return value
        raise Impossible

    def refer(self, reference: Reference) -> None:
        """Look at an output without spending it."""
        self.tx.setdefault("references", []).append(self._use(reference))

    def fund(self, lovelace: int, address: str | None = None) -> str:
        """Spend outputs of an address, of somebody if None, until the draft holds so much; who paid.

        A faucet helps out when they don't suffice.
        """
        payer = address or self.cast.somebody(self.random)
        for reference in self.references(payer, most=4) if self._wants(lovelace) else ():
            if self._wants(lovelace):
                self.spend(reference)
        for faucet in self.cast.faucets if self._wants(lovelace) else ():
            for reference in self.references(faucet, most=1):
                if self._wants(lovelace):
                    self.spend(reference)
                    payer = self._lender = faucet
        if self._wants(lovelace):
            raise Impossible
        return payer

    def pay(self, address: str, lovelace: int, assets: Assets | None = None, **more: Any) -> None:
        """Add an output; `more` are its datum, datumHash and script."""
        value = parameters.ada(lovelace)
        for (policy, name), quantity in (assets or {}).items():
            value.setdefault(policy, {})[name] = quantity
        self._take(value, -1)
        self.tx["outputs"].append({"address": address, "value": value, **more})

    def mint(self, policy: str, name: str, quantity: int) -> None:
        """Make units of an asset, or destroy as many as the quantity is negative."""
        names = self.tx.setdefault("mint", {}).setdefault(policy, {})
        names[name] = names.get(name, 0) + quantity
        self.assets[policy, name] = self.assets.get((policy, name), 0) + quantity
        self.tx.setdefault("scripts", {})[policy] = {
            "language": "native",
            "json": {"clause": "signature", "from": policy},
        }

    def certify(self, certificate: Json, deposit: int = 0, refund: int = 0) -> None:
        self.tx.setdefault("certificates", []).append(certificate)
        self.lovelace += refund - deposit

    def withdraw(self, credential: Credential) -> None:
        """Take everything that a reward account holds, as the ledger demands."""
        lovelace = self.ledger.accounts[credential].rewards
        self.tx.setdefault("withdrawals", {})[self.cast.reward_address(credential)] = parameters.ada(lovelace)
        self.lovelace += lovelace

    def describe(self, labels: dict[int, Any]) -> None:
        """Attach metadata, each label with its CBOR and what plain JSON can say of it."""
        shown = {}
        for label, value in labels.items():
            shown[str(label)] = {"cbor": cbor2.dumps(value).hex()}
            if (said := plain(value)) is not None:
                shown[str(label)]["json"] = said
        self.tx["metadata"] = {"hash": addresses.blake2b_256(cbor2.dumps(labels)), "labels": shown}

    def done(self, change: str | None = None) -> Json:
        """Pay fee and change; the transaction with its id. Its CBOR is filler of a plausible length."""
        size = 180 + 40 * len(self.tx["inputs"]) + len(msgspec.json.encode(self.tx)) // 4
        fee = 155_381 + 44 * size
        payer = self.fund(fee + 2 * _LEAST + 200_000 * len(self.assets))
        owners = (signer for signer in self.signers if signer not in self.cast.script_addresses)
        change = change or next(owners, payer)
        if self._lender and self._lender != change and self.lovelace > fee + 6 * _LEAST:
            self.pay(self._lender, self.lovelace - fee - 4 * _LEAST)
        self.give_change(change, fee)
        if self.era != "byron":
            self.tx["fee"] = parameters.ada(fee)
        return self.sealed(size)

    def give_change(self, address: str, fee: int) -> None:
        """Everything that is left, less the fee; in several outputs where one can't hold it."""
        self.lovelace -= fee
        if address in self.cast.faucets and any(self.assets.values()):  # they keep nothing but ada
            address = self.cast.somebody(self.random)
        left = {asset: quantity for asset, quantity in self.assets.items() if quantity}
        while too_much := {asset: MAX_QUANTITY for asset, quantity in left.items() if quantity > MAX_QUANTITY}:
            self.pay(address, _LEAST, too_much)
            left = {asset: quantity for asset, quantity in self.assets.items() if quantity}
        self.pay(address, self.lovelace, left)
        assert not self.lovelace and not any(self.assets.values())

    def sealed(self, size: int) -> Json:
        """Name the transaction by its content and sign it."""
        body = msgspec.json.encode(self.tx)
        id_ = addresses.blake2b_256(body)
        owners = dict.fromkeys(self.signers) or {"": None}
        signatories = [_signature(id_, owner, self.era) for owner in owners]
        filler = bytes.fromhex(id_) * (size // 32 + 1)
        content = cbor2.dumps([filler[:size], {}, self.tx.get("spends") != "collaterals", None])
        return {"id": id_, **self.tx, "signatories": signatories, "cbor": content.hex()}

    def part(self) -> "Draft":
        """A sub-transaction in the making, which spends nothing that this transaction or its other parts spend."""
        part = Draft(self.ledger, self.cast, self.random, self.era, self.slot)
        del part.tx["spends"]
        part._taken = self._taken
        return part

    def embrace(self, part: "Draft") -> None:
        """Take in a finished sub-transaction, and what it leaves over."""
        self.tx.setdefault("subTransactions", []).append(part.sealed(200))
        self.lovelace += part.lovelace
        for asset, quantity in part.assets.items():
            self.assets[asset] = self.assets.get(asset, 0) + quantity

    def _wants(self, lovelace: int) -> bool:
        """Every transaction spends at least one output, whatever else brings it lovelace."""
        return self.lovelace < lovelace or not self.tx["inputs"]

    def _use(self, reference: Reference) -> Json:
        self._taken.add(reference)
        return {"transaction": {"id": reference[0]}, "index": reference[1]}

    def _take(self, value: Json, sign: int) -> None:
        for policy, names in value.items():
            if policy == "ada":
                self.lovelace += sign * names["lovelace"]
                continue
            for name, quantity in names.items():
                self.assets[policy, name] = self.assets.get((policy, name), 0) + sign * quantity


def _signature(id_: str, owner: str, era: str) -> Json:
    """A signature in form only. Byron's owners of later eras show what their address hides."""
    signatory = {"key": addresses.blake2b_256(owner.encode()), "signature": id_ + id_}
    if era != "byron" and owner[:1] in "2DAF" and owner:
        signatory |= {"chainCode": id_, "addressAttributes": "a0"}
    return signatory
