"""A submitted transaction, and the ledger, era and slot in which it is checked."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from devnet import addresses
from devnet.addresses import LedgerCredential
from devnet.ledger import Ledger
from devnet.networks import Network
from devnet.submitted import Submitted
from devnet.votes import Reference
from devnet.witnesses import Pointer

Json = dict[str, Any]


class Purpose(msgspec.Struct, frozen=True):
    """What a script must approve. `index` counts all inputs, policies, certificates or withdrawals in their order.

    `shown` is it in Ogmios' JSON. `output` is the output that is spent, if it is one.
    """

    pointer: Pointer
    script: str
    shown: Json
    output: Json | None = None


class Case:
    """A transaction in a state of the ledger.

    `additional` are outputs that it may use beside those of the ledger, which they override.
    """

    def __init__(
        self, tx: Submitted, ledger: Ledger, era: str, slot: int, additional: dict[Reference, Json] | None = None
    ) -> None:
        self.tx, self.ledger, self.era, self.slot = tx, ledger, era, slot
        self.content = tx.content
        self._additional = additional or {}

    @property
    def network(self) -> Network:
        return self.ledger.network

    @property
    def certificates(self) -> list[Json]:
        certificates: list[Json] = self.content.get("certificates", [])
        return certificates

    @property
    def spent(self) -> list[Json]:
        """The outputs that it spends. Raises KeyError if one does not exist."""
        return self.outputs("inputs")

    def outputs(self, name: str) -> list[Json]:
        """The outputs of its inputs, references or collaterals. Raises KeyError if one does not exist."""
        return [
            self._additional[reference] if reference in self._additional else self.ledger.unspent[reference]
            for reference in references(self.content.get(name, []))
        ]

    def unknown(self, *names: str) -> list[Json]:
        """Of its inputs, references or collaterals, those that don't exist."""
        shown = [reference for name in names for reference in self.content.get(name, [])]
        return [
            in_json
            for in_json, reference in zip(shown, references(shown), strict=True)
            if reference not in self.ledger.unspent and reference not in self._additional
        ]

    def needed(self) -> Iterator[LedgerCredential]:
        """The credentials that must approve: of inputs, withdrawals, certificates, policies, and extra signatories."""
        yield from (addresses.payment_part(output["address"]) for output in (*self.spent, *self.outputs("collaterals")))
        yield from (LedgerCredential("verificationKey", hash_) for hash_ in self._extra)
        for approval in self._approved():
            yield approval.who

    @cached_property
    def purposes(self) -> tuple[Purpose, ...]:
        """What scripts must approve, in the order of redeemers."""
        spending = (
            Purpose(("spend", index), who.hash, {"purpose": "spend", "outputReference": reference}, output)
            for index, (reference, output) in enumerate(zip(self.content["inputs"], self.spent, strict=True))
            if (who := addresses.payment_part(output["address"])).is_script
        )
        others = (
            Purpose((kind, index), who.hash, {"purpose": kind, **shown})
            for (kind, index), who, shown in self._approved()
            if who.is_script
        )
        return (*spending, *others)

    @cached_property
    def reference_scripts(self) -> list[tuple[str, Json]]:
        """The scripts, by hash, of the outputs that it spends or reads; the same one as often as it occurs."""
        scripts = []
        for output in (*self.spent, *self.outputs("references")):
            script = output.get("script", {})
            if "cbor" in script:  # those of generated outputs have none if they are native
                scripts.append((hash_of(script), script))
        return scripts

    @cached_property
    def scripts(self) -> dict[str, Json]:
        """The scripts that it can use, by hash: its own, and those of outputs that it spends or reads."""
        return dict(self.reference_scripts) | self.tx.scripts

    @cached_property
    def plutus_purposes(self) -> tuple[Purpose, ...]:
        """What Plutus scripts must approve."""
        return tuple(purpose for purpose in self.purposes if is_plutus(self.scripts.get(purpose.script)))

    @property
    def _extra(self) -> list[str]:
        hashes: list[str] = self.content.get("requiredExtraSignatories", [])
        return hashes

    def _approved(self) -> "Iterator[_Approval]":
        """What must be approved beside inputs: policies, certificates and withdrawals."""
        for index, policy in enumerate(self.content.get("mint", {})):
            yield _Approval(("mint", index), LedgerCredential("script", policy), {"policy": policy})
        for index, entries in enumerate(self.tx.certificates):
            first = entries[0]
            if first["type"] != "stakeCredentialRegistration" or "deposit" in first:
                yield _Approval(("publish", index), whose(first), {"certificate": first})
        for index, address in enumerate(self.content.get("withdrawals", {})):
            yield _Approval(("withdraw", index), addresses.reward_credential(address), {"rewardAccount": address})


class _Approval(NamedTuple):
    """A thing that a credential must approve: which one, in words and in Ogmios' JSON."""

    pointer: Pointer
    who: LedgerCredential
    shown: Json


def references(inputs: list[Json]) -> list[Reference]:
    return [(source["transaction"]["id"], source["index"]) for source in inputs]


def whose(certificate: Json) -> LedgerCredential:
    return LedgerCredential(certificate["from"], certificate["credential"])


def is_plutus(script: Json | None) -> bool:
    return script is not None and script["language"] != "native"


def language_no(script: Json) -> int:
    """0 for a native script, otherwise the version of Plutus."""
    return 0 if script["language"] == "native" else int(script["language"][-1])


def hash_of(script: Json) -> str:
    return addresses.script_hash(language_no(script), bytes.fromhex(script["cbor"]))
