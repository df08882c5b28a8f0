"""Builds a transaction part by part, then balances it."""

from itertools import islice
from random import Random
from typing import Any

import cbor2
import msgspec

from devnet import addresses, bodies, cbor, parameters
from devnet.addresses import LedgerCredential
from devnet.cast import Cast
from devnet.dialect import plain
from devnet.ledger import Asset, Ledger
from devnet.votes import Reference

Json = dict[str, Any]
Assets = dict[Asset, int]

MAX_QUANTITY = 2**64 - 1  # of one asset in one output
_MIN_LOVELACE = 1_500_000  # of an output


class Impossible(Exception):
    """The transaction cannot be made yet: the chain lacks something that it needs."""


class Draft:
    """The parts of a transaction so far. Reads the ledger and does not change it.

    `lovelace` and `assets` are the balance: inputs, withdrawals, refunds and mints, less outputs, deposits and burns.
    `done` pays the balance as change.
    """

    def __init__(self, ledger: Ledger, cast: Cast, random: Random, era: str, slot: int) -> None:
        self.ledger, self.cast, self.random, self.era, self.slot = ledger, cast, random, era, slot
        self.tx: Json = {"spends": "inputs", "inputs": [], "outputs": []}
        self.lovelace = 0
        self.assets: Assets = {}
        self.signers: list[str] = []
        self.moved: list[bodies.Moved] = []
        self._taken: set[Reference] = set()
        self._lender: str | None = None

    def since(self, era: str) -> bool:
        return parameters.PROTOCOL_MAJOR[self.era] >= parameters.PROTOCOL_MAJOR[era]

    def references(self, address: str, limit: int = 12) -> list[Reference]:
        """The oldest outputs at an address that this transaction does not use yet."""
        wallet = self.ledger.wallets.get(address, ())
        return list(islice((reference for reference in wallet if reference not in self._taken), limit))

    def spend(self, reference: Reference) -> Json:
        """Add an input and return the output that it spends."""
        output = self.ledger.unspent[reference]
        self.tx["inputs"].append(self._use(reference))
        self._count(output["value"], 1)
        self.signers.append(output["address"])
        return output

    def collateral(self, address: str, tokens: bool = False) -> Json:
        """Use an output of an address as collateral and return its value; with tokens only if `tokens` allows them."""
        for reference in self.references(address):
            value: Json = self.ledger.unspent[reference]["value"]
            if value["ada"]["lovelace"] >= 3 * _MIN_LOVELACE and (tokens or len(value) == 1):
                self.tx.setdefault("collaterals", []).append(self._use(reference))
                return value
        raise Impossible

    def refer(self, reference: Reference) -> None:
        """Add a reference input."""
        self.tx.setdefault("references", []).append(self._use(reference))

    def fund(self, lovelace: int, address: str | None = None) -> str:
        """Spend outputs of an address (None: a random person's) until the balance is that high. Returns the payer.

        A faucet pays if those outputs do not suffice. Raises Impossible if no faucet can.
        """
        payer = address or self.cast.somebody(self.random)
        for reference in self.references(payer, limit=4) if self._wants(lovelace) else ():
            if self._wants(lovelace):
                self.spend(reference)
        for faucet in self.cast.faucets if self._wants(lovelace) else ():
            for reference in self.references(faucet, limit=1):
                if self._wants(lovelace):
                    self.spend(reference)
                    payer = self._lender = faucet
        if self._wants(lovelace):
            raise Impossible
        return payer

    def pay(self, address: str, lovelace: int, assets: Assets | None = None, **more: Any) -> None:
        """Add an output; `more` may contain its datum, datumHash and script."""
        value = parameters.ada(lovelace)
        for (policy, name), quantity in (assets or {}).items():
            value.setdefault(policy, {})[name] = quantity
        self._count(value, -1)
        self.tx["outputs"].append({"address": address, "value": value, **more})

    def mint(self, policy: str, name: str, quantity: int) -> None:
        """Mint units of an asset, or burn them if the quantity is negative."""
        names = self.tx.setdefault("mint", {}).setdefault(policy, {})
        names[name] = names.get(name, 0) + quantity
        self.assets[policy, name] = self.assets.get((policy, name), 0) + quantity
        self.tx.setdefault("scripts", {})[policy] = self.cast.minting_script(policy)

    def certify(self, certificate: Json, deposit: int = 0, refund: int = 0) -> None:
        self.tx.setdefault("certificates", []).append(certificate)
        self.lovelace += refund - deposit

    def withdraw(self, credential: LedgerCredential) -> None:
        """Withdraw the whole balance of a reward account: the ledger allows no partial withdrawal.

        Raises Impossible if the ledger allows none because the account has no representative.
        """
        if self.ledger.may_not_withdraw(credential):
            raise Impossible
        lovelace = self.ledger.accounts[credential].rewards
        self.tx.setdefault("withdrawals", {})[self.cast.reward_address(credential)] = parameters.ada(lovelace)
        self.lovelace += lovelace

    def move_rewards(self, pot: str, amounts: dict[LedgerCredential, int]) -> None:
        """Move lovelace from a pot of the ledger to accounts: a certificate that Ogmios shows as a proposal."""
        self.moved.append((pot, amounts))
        withdrawals = {who.hash: parameters.ada(lovelace) for who, lovelace in amounts.items()}
        action = {"type": "treasuryWithdrawals", "withdrawals": withdrawals, "guardrails": None}
        self.tx.setdefault("proposals", []).append({"action": action})

    def describe(self, labels: dict[int, Any]) -> None:
        """Attach metadata: each label with its CBOR and, if it has any, its plain JSON."""
        shown = {}
        for label, value in labels.items():
            content = cbor2.dumps(value)
            shown[str(label)] = {"cbor": content.hex()}
            if (said := plain(cbor.read(content))) is not None:
                shown[str(label)]["json"] = said
        self.tx["metadata"] = {"hash": addresses.blake2b_256(cbor2.dumps(labels)), "labels": shown}

    def done(self, change: str | None = None) -> Json:
        """Pay fee and change, and return the transaction with its id. Its CBOR is filler of a plausible length."""
        size = 180 + 40 * len(self.tx["inputs"]) + len(msgspec.json.encode(self.tx)) // 4
        fee = parameters.MIN_FEE_CONSTANT + parameters.MIN_FEE_COEFFICIENT * size
        payer = self.fund(fee + 2 * _MIN_LOVELACE + 200_000 * len(self.assets))
        owners = (signer for signer in self.signers if signer not in self.cast.script_addresses)
        change = change or next(owners, payer)
        if self._lender and self._lender != change and self.lovelace > fee + 6 * _MIN_LOVELACE:
            self.pay(self._lender, self.lovelace - fee - 4 * _MIN_LOVELACE)
        self.give_change(change, fee)
        if self.era != "byron":
            self.tx["fee"] = parameters.ada(fee)
        return self.sealed(size)

    def give_change(self, address: str, fee: int) -> None:
        """Pay the remainder after the fee, in several outputs if one cannot hold it."""
        self.lovelace -= fee
        if address in self.cast.faucets and any(self.assets.values()):  # faucets hold only ada
            address = self.cast.somebody(self.random)
        left = {asset: quantity for asset, quantity in self.assets.items() if quantity}
        while too_much := {asset: MAX_QUANTITY for asset, quantity in left.items() if quantity > MAX_QUANTITY}:
            self.pay(address, _MIN_LOVELACE, too_much)
            left = {asset: quantity for asset, quantity in self.assets.items() if quantity}
        self.pay(address, self.lovelace, left)
        assert not self.lovelace and not any(self.assets.values())

    def sealed(self, size: int) -> Json:
        """The transaction with signatures, CBOR of about `size` bytes, and the hash of its body as its id."""
        if self.era != "byron":
            self._sort_inputs()
        body = bodies.encode_body(self.tx, addresses.blake2b_256(msgspec.json.encode(self.tx)), size, self.moved)
        id_ = addresses.blake2b_256(body)
        owners = dict.fromkeys(self.signers) or {"": None}
        signatories = [_signature(id_, owner, self.era) for owner in owners]
        content = bodies.encode(self.tx, body, self.era)
        return {"id": id_, **self.tx, "signatories": signatories, "cbor": content.hex()}

    def _sort_inputs(self) -> None:
        """Put the inputs into the ledger's order, which is that of redeemers' indexes, too."""
        spent = sorted(
            zip(self.tx["inputs"], self.signers, strict=True),
            key=lambda each: (each[0]["transaction"]["id"], each[0]["index"]),
        )
        self.tx["inputs"] = [reference for reference, _ in spent]
        scripts = [at for at, (_, owner) in enumerate(spent) if owner in self.cast.script_addresses]
        of_inputs = [
            each["validator"] for each in self.tx.get("redeemers", ()) if each["validator"]["purpose"] == "spend"
        ]
        for validator, at in zip(of_inputs, scripts, strict=True):
            validator["index"] = at

    def part(self) -> "Draft":
        """The draft of a sub-transaction, which spends no output that this transaction or its other parts use."""
        part = Draft(self.ledger, self.cast, self.random, self.era, self.slot)
        del part.tx["spends"]
        part._taken = self._taken
        return part

    def include(self, part: "Draft") -> None:
        """Add a finished sub-transaction, and add its surplus or deficit to the balance of this transaction."""
        self.tx.setdefault("subTransactions", []).append(part.sealed(200))
        self.lovelace += part.lovelace
        for asset, quantity in part.assets.items():
            self.assets[asset] = self.assets.get(asset, 0) + quantity

    def _wants(self, lovelace: int) -> bool:
        """Whether more inputs are needed: every transaction spends at least one output."""
        return self.lovelace < lovelace or not self.tx["inputs"]

    def _use(self, reference: Reference) -> Json:
        self._taken.add(reference)
        tx_id, index = reference
        return {"transaction": {"id": tx_id}, "index": index}

    def _count(self, value: Json, sign: int) -> None:
        for policy, names in value.items():
            if policy == "ada":
                self.lovelace += sign * names["lovelace"]
                continue
            for name, quantity in names.items():
                self.assets[policy, name] = self.assets.get((policy, name), 0) + sign * quantity


def _signature(id_: str, owner: str, era: str) -> Json:
    """A made-up signature. For Byron addresses it has the fields that later eras add."""
    signatory = {"key": addresses.blake2b_256(owner.encode()), "signature": id_ + id_}
    if era != "byron" and owner[:1] in "2DAF" and owner:
        signatory |= {"chainCode": id_, "addressAttributes": "a0"}
    return signatory
